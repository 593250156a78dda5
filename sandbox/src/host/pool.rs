//! Templates: starting them, ordering children from them, and replacing them when they die.
//!
//! A child is ordered before there is a job for it, so that no job waits for a fork. Such a *spare* child is like any
//! other child and waits for its job. It is used if its limits are those of the next run.

use super::descriptors;
use super::socket_pair::SocketPair;
use crate::guest::layers::{Layer, LayerSet, Layers, SetupError, State};
use crate::guest::template::{ARGUMENT, CHILDREN, Config, MAX_TASKS, REPORT_BYTES, Ready};
use crate::kernel::cgroup::Group;
use crate::kernel::{sys, unix};
use crate::wire::frames;
use crate::wire::messages::{Deadline, Message, Order, send};
use lisp_runtime::DataSet;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::MemfdFlags;
use rustix::net::RecvFlags;
use rustix::process::Resource;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a template may take until it is ready.
const READY: Duration = Duration::from_secs(10);

/// How long a stopped template may leave a question unanswered before it is replaced.
const SILENT: Duration = Duration::from_millis(400);

/// How long the channel of a stopped template may stay full.
const STUCK: Duration = Duration::from_secs(1);

/// Both limits for a template that is not stopped. On a busy machine it may only be waiting for the processor, and
/// other runs depend on it.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running template.
#[derive(Debug)]
pub(crate) struct Template {
    control: OwnedFd,
    process: Mutex<Child>,
    /// When the first question was asked since its last message, by the monotonic clock; 0 if no question is open.
    asked_ns: AtomicU64,
    /// The group outlives the processes in it and is removed afterwards.
    pub(crate) group: Option<Arc<Group>>,
    pub(crate) layers: Layers,
    /// The number of the next pair.
    next: AtomicU64,
    /// Pairs that no run uses.
    free: Mutex<Vec<Arc<SocketPair>>>,
    spare: Mutex<Option<Spare>>,
    /// The number of runs that have a child or are about to get one.
    runs: AtomicUsize,
    /// Since when its channel has been full, and the smallest number of bytes in it since then.
    full: Mutex<Option<(Instant, usize)>>,
    /// Deadlines that did not fit into the channel.
    unsent: Mutex<Vec<Deadline>>,
}

/// A question to a template: when it was asked, by the monotonic clock.
#[derive(Debug)]
pub(crate) struct Question(u64);

/// Why an order got no child.
#[derive(Debug)]
pub(crate) enum NoChild {
    /// Every template has its maximum number of children.
    Crowded,
    /// The template has many messages to read.
    Busy,
    /// The host has no descriptors left.
    Descriptors(SetupError),
    Failed(SetupError),
}

/// A child that was ordered before there was a job for it.
#[derive(Debug)]
struct Spare {
    order: Order,
    channels: Channels,
    /// How many runs in a row it did not suit.
    unsuited: u32,
}

/// The number of runs in a row that a spare child may not suit before it is replaced.
const UNSUITED: u32 = 4;

/// The channels between a run and its template.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) pair: Arc<SocketPair>,
    /// Set if the child existed before its job: the template does not know the deadline yet.
    unsent_deadline: Option<Deadline>,
}

impl Template {
    fn start(starter: &Starter, group: &Result<Arc<Group>, String>) -> Result<Template, SetupError> {
        let failed = |error: io::Error| SetupError::new("template", error);
        let (control, theirs) = frames::pair().map_err(failed)?;
        let config = Config {
            wanted: starter.wanted.clone(),
            group: group.as_ref().map(|group| group.join_file()).map_err(Clone::clone),
            sets: !starter.sets.is_empty(),
        };
        let config = serde_json::to_string(&config).map_err(|error| failed(error.into()))?;
        let sets = starter.sets_file().map_err(|error| SetupError::new("data sets", error))?;
        let mut command = Command::new(&starter.program);
        command.arg(ARGUMENT).arg(config).env_clear().stdin(Stdio::from(theirs));
        // Opened here, so that an error is not attributed to the program.
        let null = File::options().read(true).write(true).open("/dev/null");
        let null = null.map_err(|error| SetupError::new("/dev/null", error))?;
        command.stdout(match sets {
            Some(sets) => Stdio::from(sets),
            None => null.try_clone().map_err(failed)?.into(),
        });
        if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", path);
        }
        let process = command.stderr(null).current_dir("/").spawn().map_err(failed)?;
        // The other end of the control channel must not stay open here.
        drop(command);
        let mut template = Template::of(control, process, group.as_ref().ok().cloned());
        template.layers = template.ready()?;
        Ok(template)
    }

    /// Creates a template from a process that has not sent its first report yet.
    fn of(control: OwnedFd, process: Child, group: Option<Arc<Group>>) -> Template {
        Template {
            control,
            process: Mutex::new(process),
            asked_ns: AtomicU64::new(0),
            group,
            layers: Layers(Vec::new()),
            next: AtomicU64::new(1),
            free: Mutex::default(),
            spare: Mutex::default(),
            runs: AtomicUsize::new(0),
            full: Mutex::default(),
            unsent: Mutex::default(),
        }
    }

    fn ready(&self) -> Result<Layers, SetupError> {
        let silent = |why: &str| SetupError::new("template", why);
        let mut fds = [PollFd::new(&self.control, PollFlags::IN)];
        let timeout = Timespec { tv_sec: READY.as_secs() as i64, tv_nsec: 0 };
        if !matches!(rustix::event::poll(&mut fds, Some(&timeout)), Ok(1)) {
            return Err(silent("it does not get ready"));
        }
        let mut report = vec![0; REPORT_BYTES];
        let (read, _) = rustix::net::recv(&self.control, &mut report[..], RecvFlags::DONTWAIT)
            .map_err(|error| SetupError::new("template", error))?;
        let no_init = "it ended before it was ready: the system gave it too little, or its program does not call \
                       lisp_sandbox::init() first in main";
        let ready: Ready = serde_json::from_slice(&report[..read]).map_err(|_| silent(no_init))?;
        ready
    }

    /// Returns why a layer is not active in it; `None` if it is.
    fn lacks(&self, layer: Layer) -> Option<String> {
        match self.layers.state(layer) {
            State::Active => None,
            State::Unavailable { why } | State::Degraded { why, .. } => Some(why.clone()),
            State::Disabled => Some("it is turned off".to_owned()),
        }
    }

    /// Returns a child for an order: the spare one if it suits.
    fn order(&self, order: Order) -> io::Result<Channels> {
        match self.take_spare(&order) {
            Some(channels) => Ok(channels),
            None => self.make(order, None),
        }
    }

    fn take_spare(&self, order: &Order) -> Option<Channels> {
        let mut place = lock(&self.spare);
        let spare = place.as_mut()?;
        if !spare.order.serves(order) {
            spare.unsuited += 1;
            if spare.unsuited > UNSUITED {
                // It ends because its channel is closed.
                *place = None;
            }
            return None;
        }
        let Channels { pair, .. } = place.take()?.channels;
        drop(place);
        // It may have died meanwhile, or its fork may have failed.
        if pair.receive().is_some() {
            return None;
        }
        let unsent_deadline = Some(Deadline { pair: pair.id, kill_at: order.kill_at });
        Some(Channels { pair, unsent_deadline })
    }

    /// Sends the template the deadline of a spare child that now has a job. Then orders the next spare child, if
    /// wanted, for a run like the one of `order`. If the host has no descriptors left, the next child is ordered on
    /// demand instead.
    fn restock(&self, order: Option<Order>, deadline: Option<Deadline>) {
        let mut place = lock(&self.spare);
        if let Some(order) = order.filter(|order| place.is_none() && order.serves(order)) {
            let order = Order { kill_at: 0, ..order };
            if let Ok(channels) = self.make(order, deadline) {
                *place = Some(Spare { order, channels, unsuited: 0 });
                return;
            }
        }
        drop(place);
        if deadline.is_some() {
            // A template that does not read its channel is detected when it has to reap.
            let _ = self.send(Message { deadline, ..Message::default() }, &[]);
        }
    }

    /// Asks for a descriptor of the process of a pair, which must be dead at `kill_at` if that is given. If the process
    /// is reaped, the template has already reported that. `None` if there is no room for the question.
    pub(crate) fn request_pidfd(&self, pair: &SocketPair, kill_at: Option<u64>) -> Option<Question> {
        let question = Question(sys::monotonic_ns());
        // Set before the template can answer.
        let _ = self.asked_ns.compare_exchange(0, question.0, Ordering::Relaxed, Ordering::Relaxed);
        let deadline = kill_at.map(|kill_at| Deadline { pair: pair.id, kill_at });
        match self.send(Message { deadline, show: Some(pair.id), order: None }, &[]) {
            Ok(()) => Some(question),
            Err(_) => {
                self.take_back_question(&question);
                None
            }
        }
    }

    /// Withdraws a question: its answer will not be read, so a missing answer does not count against the template.
    pub(crate) fn take_back_question(&self, question: &Question) {
        let _ = self.asked_ns.compare_exchange(question.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Sends the template the time when the process of a pair must be dead; 0 means never. A deadline that does not fit
    /// into the channel is sent before the next message.
    pub(crate) fn set_deadline(&self, pair: &SocketPair, kill_at: u64) {
        let deadline = Deadline { pair: pair.id, kill_at };
        let sent = self.send(Message { deadline: Some(deadline), ..Message::default() }, &[]);
        let mut unsent = lock(&self.unsent);
        unsent.retain(|earlier| earlier.pair != pair.id);
        if sent.is_err() {
            unsent.push(deadline);
        }
    }

    /// Returns true if it has many messages to read. Then the room left in its channel is reserved for orders.
    pub(crate) fn is_busy(&self) -> bool {
        /// About a tenth of the capacity of a channel.
        const MUCH: usize = 20 << 10;
        sys::unread(&self.control).is_ok_and(|bytes| bytes > MUCH)
    }

    /// Called when its channel is full. Returns true if it has read nothing for too long.
    pub(crate) fn is_stuck(&self) -> bool {
        let unread = sys::unread(&self.control).unwrap_or(0);
        let mut full = lock(&self.full);
        match &*full {
            Some((since, least)) if unread >= *least => self.is_given_up(since.elapsed(), STUCK),
            _ => {
                *full = Some((Instant::now(), unread));
                false
            }
        }
    }

    /// Counts one more run, unless it has its maximum number of children.
    fn admit(&self) -> bool {
        let more = |runs: usize| (runs < CHILDREN).then_some(runs + 1);
        self.runs.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Orders a child.
    fn make(&self, order: Order, deadline: Option<Deadline>) -> io::Result<Channels> {
        let free = lock(&self.free).pop();
        let (pair, theirs) = match free {
            Some(pair) => (pair, None),
            None => {
                let (pair, theirs) = SocketPair::new(self.next.fetch_add(1, Ordering::Relaxed))?;
                (Arc::new(pair), Some(theirs))
            }
        };
        // Unsent deadlines of the pair's last process do not apply to this one.
        lock(&self.unsent).retain(|earlier| earlier.pair != pair.id);
        let message = Message { order: Some(Order { pair: pair.id, ..order }), deadline, show: None };
        match &theirs {
            Some([run, status]) => self.send(message, &[run.as_fd(), status.as_fd()])?,
            None => self.send(message, &[])?,
        }
        Ok(Channels { pair, unsent_deadline: None })
    }

    /// Takes back the pair of a run that is reaped and read to its end. The next run reuses it if nothing for the old
    /// process is left unread, and that process cannot have left another one behind.
    pub(crate) fn take_back(&self, pair: &Arc<SocketPair>) {
        let alone = self.layers.is_active(Layer::Seccomp) && self.layers.is_active(Layer::ChildSeccomp);
        if alone && sys::unread(&pair.run).is_ok_and(|bytes| bytes == 0) {
            lock(&self.free).push(pair.clone());
        }
    }

    fn send(&self, message: Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_unsent()?;
        send(&self.control, message, fds)?;
        *lock(&self.full) = None;
        Ok(())
    }

    fn send_unsent(&self) -> io::Result<()> {
        let mut unsent = lock(&self.unsent);
        while let Some(&deadline) = unsent.last() {
            send(&self.control, Message { deadline: Some(deadline), ..Message::default() }, &[])?;
            unsent.pop();
            *lock(&self.full) = None;
        }
        Ok(())
    }

    /// Notes that the template has sent something, about any run.
    pub(crate) fn mark_responsive(&self) {
        self.asked_ns.store(0, Ordering::Relaxed);
    }

    /// Returns true if a question has been unanswered for too long.
    pub(crate) fn is_silent(&self) -> bool {
        let asked = self.asked_ns.load(Ordering::Relaxed);
        let since = Duration::from_nanos(sys::monotonic_ns().saturating_sub(asked));
        asked > 0 && self.is_given_up(since, SILENT)
    }

    /// Returns true if a template should be replaced after this idle time; the limit for one that is stopped is
    /// `stopped`.
    fn is_given_up(&self, idle: Duration, stopped: Duration) -> bool {
        idle >= PATIENCE || (idle >= stopped && self.is_stopped())
    }

    /// Returns true if it is stopped or has ended, but not if it only waits for the processor.
    pub(crate) fn is_stopped(&self) -> bool {
        let mut pid = self.pid();
        if self.layers.is_active(Layer::PidNamespace) {
            // The process that the host started may be the launcher, whose only child is the template.
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            match children.ok().and_then(|children| children.split_whitespace().next()?.parse().ok()) {
                Some(child) => pid = child,
                // It has no child any more, or this kernel does not list children.
                None => return process_state(pid).is_some_and(|state| "ZX".contains(state)),
            }
        }
        process_state(pid).is_some_and(|state| "TtZX".contains(state))
    }

    /// Ends it and all its children.
    pub(crate) fn kill(&self) {
        let mut process = lock(&self.process);
        let _ = process.kill();
        let _ = process.wait();
    }

    /// Returns the pid of the process that the host started: the template, or the launcher that waits for it.
    pub(crate) fn pid(&self) -> u32 {
        lock(&self.process).id()
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the state of a process as a letter, as in `/proc`.
fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it can contain any character.
    stat.rsplit_once(") ")?.1.chars().next()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a template. The error says so if it was killed because the group is full.
fn started(starter: &Starter, group: &Result<Arc<Group>, String>) -> Result<Template, SetupError> {
    super::spans::template(|| Template::start(starter, group)).map_err(|error| match group {
        Ok(group) if group.take_kill() => {
            let full = format!("all runs together may take {} bytes, and the template asked for more", group.limit());
            SetupError::new(Layer::MemoryCgroup, full)
        }
        _ => error,
    })
}

/// The settings with which templates are started.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(crate) program: PathBuf,
    pub(crate) wanted: LayerSet,
    pub(crate) sets: Vec<DataSet>,
}

impl Starter {
    /// Returns the data sets for one template, one per line, in an unnamed file: unlike a pipe it never blocks the
    /// host.
    fn sets_file(&self) -> io::Result<Option<File>> {
        if self.sets.is_empty() {
            return Ok(None);
        }
        let mut file = File::from(rustix::fs::memfd_create("data sets", MemfdFlags::CLOEXEC)?);
        let mut room = unix::soft_limit(Resource::Fsize)?.unwrap_or(u64::MAX);
        for set in &self.sets {
            let sent = set.sent().ok_or_else(|| io::Error::other("one has no text"))?;
            let mut line = serde_json::to_vec(&sent)?;
            line.push(b'\n');
            // Writing more than the host's own file size limit would kill the host.
            room = room.checked_sub(line.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
            file.write_all(&line)?;
        }
        Ok(Some(file))
    }
}

/// The slot of a template.
#[derive(Debug)]
enum Slot {
    Empty,
    /// A thread is starting one, without holding the lock.
    Starting,
    There(Arc<Template>),
}

/// Returns the maximum number of processes and threads of a pool, including a template that ends while another starts.
fn max_tasks(templates: usize) -> u64 {
    MAX_TASKS.saturating_mul(templates.max(1) as u64 + 1)
}

/// The templates, which take turns.
#[derive(Debug)]
pub(crate) struct Pool {
    starter: Starter,
    required: Vec<Layer>,
    spares: bool,
    total_memory: Option<u64>,
    /// The group that templates join, or why there is none. This is decided when the first template has started.
    group: Mutex<Result<Arc<Group>, String>>,
    slots: Vec<Mutex<Slot>>,
    /// The number of runs started: templates take turns.
    started: AtomicUsize,
    /// The number of runs that have ended and of templates that have started: both have returned descriptors. An order
    /// that found no child is not counted, so that it does not wait for itself.
    ended: AtomicUsize,
}

/// A run with a child, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) pool: Arc<Pool>,
    pub(crate) template: Arc<Template>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.pool.end(&self.template);
    }
}

impl Pool {
    pub(crate) fn new(
        starter: Starter,
        required: Vec<Layer>,
        count: usize,
        spares: bool,
        total_memory: Option<u64>,
    ) -> Result<Pool, SetupError> {
        let group = match starter.wanted.wants(Layer::MemoryCgroup) {
            true => Group::new(total_memory, max_tasks(count)).map(Arc::new).map_err(|error| error.to_string()),
            false => Err("it is turned off".to_owned()),
        };
        let first = started(&starter, &group).map_err(|error| match descriptors::failed_for_them(&error) {
            true => descriptors::with_limit(&error),
            false => error,
        })?;
        let group = group.and_then(|group| first.lacks(Layer::MemoryCgroup).map_or(Ok(group), Err));
        let slots = (0..count.max(1)).map(|_| Mutex::new(Slot::Empty)).collect();
        let group = Mutex::new(group);
        let pool = Pool {
            starter,
            required,
            spares,
            total_memory,
            group,
            slots,
            started: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        };
        pool.check(&first)?;
        *lock(&pool.slots[0]) = Slot::There(Arc::new(first));
        for at in 0..pool.slots.len() {
            if let Err(NoChild::Descriptors(error) | NoChild::Failed(error)) = pool.template(at) {
                return Err(error);
            }
        }
        Ok(pool)
    }

    /// Starts a template, in the group if the sandbox has one: a sandbox that started with a memory limit never
    /// continues without it. If the directory of the group is gone, no process is in it, and a new group is created.
    fn start(&self) -> Result<Template, SetupError> {
        let group = lock(&self.group).clone();
        let template = started(&self.starter, &group)?;
        let (Ok(group), Some(why)) = (&group, template.lacks(Layer::MemoryCgroup)) else { return Ok(template) };
        let failed = |why: String| SetupError::new(Layer::MemoryCgroup, why);
        if group.is_there() {
            return Err(failed(why));
        }
        let mut place = lock(&self.group);
        // Another run may have created it meanwhile.
        let made = match &*place {
            Ok(now) if !Arc::ptr_eq(now, group) => now.clone(),
            _ => Arc::new(
                Group::new(self.total_memory, max_tasks(self.slots.len()))
                    .map_err(|error| failed(error.to_string()))?,
            ),
        };
        *place = Ok(made);
        let group = place.clone();
        drop(place);
        let template = started(&self.starter, &group)?;
        template.lacks(Layer::MemoryCgroup).map_or(Ok(template), |why| Err(failed(why)))
    }

    /// Fails if a required layer is missing.
    fn check(&self, template: &Template) -> Result<(), SetupError> {
        let missing =
            |&layer| template.lacks(layer).map(|why| SetupError::new(format_args!("{layer} is required"), why));
        self.required.iter().find_map(missing).map_or(Ok(()), Err)
    }

    /// Returns the template of a slot; starts a new one if there is none.
    fn template(&self, at: usize) -> Result<Arc<Template>, NoChild> {
        {
            let mut slot = lock(&self.slots[at]);
            match &*slot {
                Slot::There(template) => return Ok(template.clone()),
                Slot::Starting => return Err(NoChild::Busy),
                Slot::Empty => *slot = Slot::Starting,
            }
        }
        let started = self.start().and_then(|template| {
            self.check(&template)?;
            Ok(Arc::new(template))
        });
        *lock(&self.slots[at]) = started.as_ref().map_or(Slot::Empty, |template| Slot::There(template.clone()));
        if started.is_ok() {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
        started.map_err(|error| match descriptors::failed_for_them(&error) {
            true => NoChild::Descriptors(descriptors::with_limit(&error)),
            false => NoChild::Failed(error),
        })
    }

    /// Orders a child of the next template that has room; a template that has died is replaced. A run that gets a child
    /// is [`Admitted`].
    pub(crate) fn order(&self, order: Order) -> Result<(Arc<Template>, Channels), NoChild> {
        let many = self.slots.len();
        let turn = self.started.fetch_add(1, Ordering::Relaxed) % many;
        let mut ordered = Err(NoChild::Crowded);
        for at in (turn..turn + many).map(|at| at % many) {
            let next = self.order_from(at, order);
            let goes_on = matches!(next, Err(NoChild::Crowded | NoChild::Busy | NoChild::Descriptors(_)));
            // Another template may have unused sockets. If not, the missing descriptors are the reason to report.
            if !matches!((&ordered, &next), (Err(NoChild::Descriptors(_)), Err(NoChild::Crowded | NoChild::Busy))) {
                ordered = next;
            }
            if !goes_on {
                break;
            }
        }
        ordered
    }

    /// Returns how many runs and starts of templates have returned their descriptors.
    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    /// Returns true if an order that found no descriptor may find one later: another run or template has some, or has
    /// returned them since `ended` was read, which was before the order.
    pub(crate) fn may_find_descriptors(&self, ended: usize) -> bool {
        let uses = |slot: &Mutex<Slot>| match &*lock(slot) {
            Slot::There(template) => template.runs.load(Ordering::SeqCst) > 0,
            Slot::Starting => true,
            Slot::Empty => false,
        };
        self.slots.iter().any(uses) || self.ended() != ended
    }

    /// Closes the sockets that no run uses, and ends the spare children. Returns true if there were any.
    pub(crate) fn give_up_unused(&self) -> bool {
        let give_up = |template: &Arc<Template>| {
            let free = std::mem::take(&mut *lock(&template.free));
            let spare = lock(&template.spare).take();
            !free.is_empty() || spare.is_some()
        };
        self.templates().iter().filter(|template| give_up(template)).count() > 0
    }

    /// Ends a run, which has closed its descriptors.
    fn end(&self, template: &Template) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        template.runs.fetch_sub(1, Ordering::SeqCst);
    }

    fn order_from(&self, at: usize, order: Order) -> Result<(Arc<Template>, Channels), NoChild> {
        let mut last = None;
        for _ in 0..3 {
            let template = self.template(at)?;
            if !template.admit() {
                return Err(NoChild::Crowded);
            }
            let error = match template.order(order) {
                Ok(channels) => return Ok((template, channels)),
                Err(error) => error,
            };
            template.runs.fetch_sub(1, Ordering::SeqCst);
            match error.raw_os_error() {
                // `ETOOMANYREFS` means that too many descriptors are in flight.
                Some(libc::EAGAIN | libc::ETOOMANYREFS) if !template.is_stuck() => return Err(NoChild::Busy),
                _ if descriptors::is_shortage(&error) => {
                    let error = SetupError::new("channels", error);
                    return Err(NoChild::Descriptors(descriptors::with_limit(&error)));
                }
                _ => {
                    self.discard(&template);
                    last = Some(error);
                }
            }
        }
        Err(NoChild::Failed(SetupError::new("template", last.unwrap_or_else(|| io::ErrorKind::Other.into()))))
    }

    /// Returns the maximum number of concurrent runs.
    pub(crate) fn max_runs(&self) -> usize {
        self.slots.len().saturating_mul(CHILDREN)
    }

    /// Sends the template what it has to know about a run that has its job, and orders the next spare child, if spare
    /// children are wanted.
    pub(crate) fn restock(&self, template: &Template, order: Order, channels: &mut Channels) {
        template.restock(self.spares.then_some(order), channels.unsent_deadline.take());
    }

    /// Orders the first spare children.
    pub(crate) fn stock(&self, order: Order) {
        if self.spares {
            self.templates().iter().for_each(|template| template.restock(Some(order), None));
        }
    }

    /// Ends a template that can no longer be used.
    pub(crate) fn discard(&self, template: &Arc<Template>) {
        for slot in &self.slots {
            let mut slot = lock(slot);
            if matches!(&*slot, Slot::There(here) if Arc::ptr_eq(here, template)) {
                *slot = Slot::Empty;
            }
        }
        template.kill();
    }

    /// Returns the running templates.
    pub(crate) fn templates(&self) -> Vec<Arc<Template>> {
        let there = |slot: &Mutex<Slot>| match &*lock(slot) {
            Slot::There(template) => Some(template.clone()),
            Slot::Empty | Slot::Starting => None,
        };
        self.slots.iter().filter_map(there).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::messages::receive;

    fn template() -> (Template, OwnedFd) {
        let (control, theirs) = frames::pair().unwrap();
        let process = Command::new("/bin/true").spawn().unwrap();
        let template = Template::of(control, process, None);
        (template, theirs)
    }

    /// Returns everything that the host has sent it.
    fn sent(theirs: &OwnedFd) -> Vec<Message> {
        let waits = || {
            let mut fds = [PollFd::new(theirs, PollFlags::IN)];
            rustix::event::poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
        };
        std::iter::from_fn(|| waits().then(|| receive(theirs).unwrap().0)).collect()
    }

    #[test]
    fn deadlines_that_found_no_room_come_first() {
        let (template, theirs) = template();
        let pairs: Vec<SocketPair> = (7..10).map(|id| SocketPair::new(id).unwrap().0).collect();
        while template.send(Message::default(), &[]).is_ok() {}
        template.set_deadline(&pairs[0], 1);
        template.set_deadline(&pairs[1], 2);
        template.set_deadline(&pairs[1], 3);
        assert!(sent(&theirs).iter().all(|message| message.deadline.is_none()));
        let question = template.request_pidfd(&pairs[2], None).unwrap();
        let sent: Vec<_> = sent(&theirs)
            .iter()
            .map(|message| (message.deadline.map(|it| (it.pair, it.kill_at)), message.show))
            .collect();
        assert_eq!(sent, [(Some((8, 3)), None), (Some((7, 1)), None), (None, Some(9))]);
        // A withdrawn question is not waited for, and a deadline is no question.
        assert_ne!(template.asked_ns.load(Ordering::Relaxed), 0);
        template.take_back_question(&question);
        template.set_deadline(&pairs[0], 1);
        assert_eq!(template.asked_ns.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_channel_is_stuck_when_nothing_is_taken_for_long() {
        let (template, theirs) = template();
        while template.send(Message::default(), &[]).is_ok() {}
        assert!(!template.is_stuck());
        std::thread::sleep(STUCK / 2);
        receive(&theirs).unwrap();
        assert!(!template.is_stuck());
        std::thread::sleep(STUCK * 3 / 4);
        assert!(!template.is_stuck());
        std::thread::sleep(STUCK / 2);
        assert!(template.is_stuck());
        receive(&theirs).unwrap();
        template.send(Message::default(), &[]).unwrap();
        assert!(template.full.lock().unwrap().is_none());
        // Deadlines sent late fill the channel again, which still counts as progress.
        while template.send(Message::default(), &[]).is_ok() {}
        assert!(!template.is_stuck());
        std::thread::sleep(STUCK * 3 / 4);
        for pair in (1..900).map(|id| SocketPair::new(id).unwrap().0) {
            template.set_deadline(&pair, 1);
        }
        receive(&theirs).unwrap();
        assert!(template.send(Message::default(), &[]).is_err());
        std::thread::sleep(STUCK / 2);
        assert!(!template.is_stuck());
    }

    #[test]
    fn one_that_is_slow_stays_and_one_that_is_stopped_goes() {
        let (control, _theirs) = frames::pair().unwrap();
        let process = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&process);
        let template = Template::of(control, process, None);
        let asked = |ago: Duration| {
            template.asked_ns.store(sys::monotonic_ns() - ago.as_nanos() as u64, Ordering::Relaxed);
            template.is_silent()
        };
        // It has been silent for long, but may only be waiting for the processor.
        assert!(!asked(SILENT * 2) && !asked(PATIENCE / 2));
        assert!(asked(PATIENCE), "not for ever");
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        while process_state(template.pid()) != Some('T') {
            std::thread::yield_now();
        }
        assert!(!asked(SILENT / 2) && asked(SILENT));
        template.kill();
        assert!(template.is_stopped() || process_state(template.pid()).is_none());
    }

    #[test]
    fn a_template_has_so_many_runs_and_no_more() {
        let (template, _theirs) = template();
        assert_eq!((0..CHILDREN + 9).filter(|_| template.admit()).count(), CHILDREN);
    }
}
