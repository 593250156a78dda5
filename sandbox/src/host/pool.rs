//! Templates: starting them, giving them orders, and starting them again when they die.
//!
//! A child is ordered before there is a job for it, so that it waits for the job and not the job for it. It is like any other
//! child, but for the time it waits; it serves when its limits are those of the next run.

use super::scheduling::Scheduler;
use super::socket_pair::SocketPair;
use crate::guest::layers::{Layer, LayerSet, Layers, SetupError, State};
use crate::guest::template::{ARGUMENT, CHILDREN, Config, REPORT_BYTES, Ready};
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

/// How long a template may take to be ready.
const READY: Duration = Duration::from_secs(10);

/// How long a template that is stopped may leave a question without an answer before another takes its place.
const SILENT: Duration = Duration::from_millis(400);

/// How long the channel of one that is stopped may stay full.
const STUCK: Duration = Duration::from_secs(1);

/// How long either may last with one that is not: on a busy machine it waits for its turn, and its children are the runs of others.
const PATIENCE: Duration = Duration::from_secs(10);

/// A template that runs.
#[derive(Debug)]
pub(crate) struct Template {
    control: OwnedFd,
    process: Mutex<Child>,
    /// When it was asked first since it last said something, by the monotonic clock; 0 is not at all.
    asked_ns: AtomicU64,
    /// It outlives its processes, and then goes.
    pub(crate) group: Option<Arc<Group>>,
    pub(crate) layers: Layers,
    /// The name of the next pair.
    next: AtomicU64,
    /// Pairs that no run has.
    free: Mutex<Vec<Arc<SocketPair>>>,
    spare: Mutex<Option<Spare>>,
    /// The runs that have a child, or are to have one.
    runs: AtomicUsize,
    /// Since when its channel has been full, and the fewest bytes it held since.
    full: Mutex<Option<(Instant, usize)>>,
    /// Deadlines that there was no room for.
    unsent: Mutex<Vec<Deadline>>,
}

/// A question to a template: when it was asked, by the monotonic clock.
#[derive(Debug)]
pub(crate) struct Question(u64);

/// Why there is no child for an order.
#[derive(Debug)]
pub(crate) enum NoChild {
    /// Each template has as many as it may have.
    Crowded,
    /// The template has much to read.
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

/// The number of runs in a row that a spare child may not suit before another takes its place.
const UNSUITED: u32 = 4;

/// What a run has of its template.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) pair: Arc<SocketPair>,
    /// What the template does not know yet, when the child was there before its job.
    unsent_deadline: Option<Deadline>,
}

impl Template {
    fn start(
        starter: &Starter,
        group: &Result<Arc<Group>, String>,
        processor: Option<usize>,
    ) -> Result<Template, SetupError> {
        let failed = |error: io::Error| SetupError::new("template", error);
        let (control, theirs) = frames::pair().map_err(failed)?;
        let config = Config {
            wanted: starter.wanted.clone(),
            fail_at: starter.fail_at,
            group: group.as_ref().map(|group| group.door()).map_err(Clone::clone),
            sets: !starter.sets.is_empty(),
            processor,
        };
        let config = serde_json::to_string(&config).map_err(|error| failed(error.into()))?;
        let sets = starter.sets_file().map_err(|error| SetupError::new("data sets", error))?;
        let mut command = Command::new(&starter.program);
        command.arg(ARGUMENT).arg(config).env_clear().stdin(Stdio::from(theirs));
        // Opened here, so that an error of it is not taken for one of the program.
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

    /// A process that has not yet said what it is.
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

    /// Why a layer does not hold in it, if it does not.
    fn lacks(&self, layer: Layer) -> Option<String> {
        match self.layers.state(layer) {
            State::Active => None,
            State::Unavailable { why } | State::Degraded { why, .. } => Some(why.clone()),
            State::Disabled => Some("it is turned off".to_owned()),
        }
    }

    /// A child for an order: the spare one when it suits.
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
                // The end of its channel ends it.
                *place = None;
            }
            return None;
        }
        let Channels { pair, .. } = place.take()?.channels;
        drop(place);
        // It may have died meanwhile, of whatever cause, or never have been made.
        if pair.receive().is_some() {
            return None;
        }
        let unsent_deadline = Some(Deadline { pair: pair.id, kill_at: order.kill_at });
        Some(Channels { pair, unsent_deadline })
    }

    /// Tells the template until when a spare child has time, now that it has a job, and orders the next one where there is
    /// to be one, for a run like the one of `order`. A host without descriptors has none: then the next child is made when it
    /// is wanted.
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
            // A template that does not listen is found out when it has to reap.
            let _ = self.send(Message { deadline, ..Message::default() }, &[]);
        }
    }

    /// Asks for a descriptor of the process of a pair, which is to be dead at `kill_at` if there is one. Of one that is reaped it has
    /// said so. `None` when there is no room for the question.
    pub(crate) fn request_pidfd(&self, pair: &SocketPair, kill_at: Option<u64>) -> Option<Question> {
        let question = Question(sys::monotonic_ns());
        // Before it can be answered.
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

    /// Nobody will read the answer: it is not to be missed.
    pub(crate) fn take_back_question(&self, question: &Question) {
        let _ = self.asked_ns.compare_exchange(question.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Tells it when the process of a pair is to be dead; 0 is never. What there is no room for goes in front of the next message.
    pub(crate) fn set_deadline(&self, pair: &SocketPair, kill_at: u64) {
        let deadline = Deadline { pair: pair.id, kill_at };
        let sent = self.send(Message { deadline: Some(deadline), ..Message::default() }, &[]);
        let mut unsent = lock(&self.unsent);
        unsent.retain(|earlier| earlier.pair != pair.id);
        if sent.is_err() {
            unsent.push(deadline);
        }
    }

    /// Has it much to do? Then orders need the room that there is in its channel.
    pub(crate) fn is_busy(&self) -> bool {
        /// A tenth or so of what a channel takes.
        const MUCH: usize = 20 << 10;
        sys::unread(&self.control).is_ok_and(|bytes| bytes > MUCH)
    }

    /// Its channel is full. Has it taken nothing for too long?
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

    /// Counts one more run, if it may have a child more.
    fn admit(&self) -> bool {
        let more = |runs: usize| (runs < CHILDREN).then_some(runs + 1);
        self.runs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
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
        // What was not told of the last process of the pair is not about this one.
        lock(&self.unsent).retain(|earlier| earlier.pair != pair.id);
        let message = Message { order: Some(Order { pair: pair.id, ..order }), deadline, show: None };
        match &theirs {
            Some([run, status]) => self.send(message, &[run.as_fd(), status.as_fd()])?,
            None => self.send(message, &[])?,
        }
        Ok(Channels { pair, unsent_deadline: None })
    }

    /// Takes back the pair of a run that is reaped and read to its end. The next run has it when nothing is left in it for
    /// the process that has gone, and no other can be left that this one started.
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

    /// Notes that the template has sent something, about whichever run.
    pub(crate) fn mark_responsive(&self) {
        self.asked_ns.store(0, Ordering::Relaxed);
    }

    /// Has the template sent nothing for too long after a request?
    pub(crate) fn is_silent(&self) -> bool {
        let asked = self.asked_ns.load(Ordering::Relaxed);
        let since = Duration::from_nanos(sys::monotonic_ns().saturating_sub(asked));
        asked > 0 && self.is_given_up(since, SILENT)
    }

    /// Is one that has done nothing for so long of no use any more? One that is stopped is after `stopped`.
    fn is_given_up(&self, idle: Duration, stopped: Duration) -> bool {
        idle >= PATIENCE || (idle >= stopped && self.is_stopped())
    }

    /// Does it stand still, or is it gone? One that waits for its turn does not.
    pub(crate) fn is_stopped(&self) -> bool {
        let mut pid = self.pid();
        if self.layers.is_active(Layer::PidNamespace) {
            // The process that the host started waits for the template, and for nobody else.
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            match children.ok().and_then(|children| children.split_whitespace().next()?.parse().ok()) {
                Some(child) => pid = child,
                // It has none any more, or this kernel does not say.
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

    /// The process that the host started: the template, or the launcher that waits for it.
    pub(crate) fn pid(&self) -> u32 {
        lock(&self.process).id()
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The state of a process in a letter, as `/proc` has it.
fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may have any character.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Has this process too few descriptors left to start a template?
fn lacks_descriptors() -> bool {
    let pairs: io::Result<Vec<_>> = (0..16).map(|_| frames::pair()).collect();
    pairs.is_err_and(|error| matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A template; an error says so when it was killed because the group is full.
fn started(
    starter: &Starter,
    group: &Result<Arc<Group>, String>,
    processor: Option<usize>,
) -> Result<Template, SetupError> {
    super::spans::template(|| Template::start(starter, group, processor)).map_err(|error| match group {
        Ok(group) if group.take_kill() => {
            let full = format!("all runs together may take {} bytes, and the template asked for more", group.limit());
            SetupError::new(Layer::MemoryCgroup, full)
        }
        _ => error,
    })
}

/// What templates are made of.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(crate) program: PathBuf,
    pub(crate) wanted: LayerSet,
    pub(crate) fail_at: Option<Layer>,
    pub(crate) sets: Vec<DataSet>,
}

impl Starter {
    /// The data sets for one template, a line each, in a file without a name: a template that does not read holds up no host.
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
            // Beyond the host's own limit for files a write ends the host.
            room = room.checked_sub(line.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
            file.write_all(&line)?;
        }
        Ok(Some(file))
    }
}

/// The place of a template.
#[derive(Debug)]
enum Slot {
    Empty,
    /// Somebody starts one, without holding up others.
    Starting,
    There(Arc<Template>),
}

/// Templates that take turns.
#[derive(Debug)]
pub(crate) struct Pool {
    starter: Starter,
    required: Vec<Layer>,
    spares: bool,
    total_memory: Option<u64>,
    /// The group that templates join, or why there is none. That is decided when the first has started.
    group: Mutex<Result<Arc<Group>, String>>,
    slots: Vec<Mutex<Slot>>,
    turns: Scheduler,
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
            true => Group::new(total_memory).map(Arc::new).map_err(|error| error.to_string()),
            false => Err("it is turned off".to_owned()),
        };
        let turns = Scheduler::of(count.max(1));
        let first = started(&starter, &group, turns.processor_of(0))?;
        let group = group.and_then(|group| first.lacks(Layer::MemoryCgroup).map_or(Ok(group), Err));
        let slots = (0..count.max(1)).map(|_| Mutex::new(Slot::Empty)).collect();
        let group = Mutex::new(group);
        let pool = Pool { starter, required, spares, total_memory, group, slots, turns };
        pool.check(&first)?;
        *lock(&pool.slots[0]) = Slot::There(Arc::new(first));
        for at in 0..pool.slots.len() {
            if let Err(NoChild::Descriptors(error) | NoChild::Failed(error)) = pool.template(at) {
                return Err(error);
            }
        }
        Ok(pool)
    }

    /// A template in the group, if the sandbox has one: it never goes on without the ceiling that it began with. A group whose
    /// directory is gone has nobody in it, and another takes its place.
    fn start(&self, processor: Option<usize>) -> Result<Template, SetupError> {
        let group = lock(&self.group).clone();
        let template = started(&self.starter, &group, processor)?;
        let (Ok(group), Some(why)) = (&group, template.lacks(Layer::MemoryCgroup)) else { return Ok(template) };
        let failed = |why: String| SetupError::new(Layer::MemoryCgroup, why);
        if group.is_there() {
            return Err(failed(why));
        }
        let mut place = lock(&self.group);
        // Another run may have made it meanwhile.
        let made = match &*place {
            Ok(now) if !Arc::ptr_eq(now, group) => now.clone(),
            _ => Arc::new(Group::new(self.total_memory).map_err(|error| failed(error.to_string()))?),
        };
        *place = Ok(made);
        let group = place.clone();
        drop(place);
        let template = started(&self.starter, &group, processor)?;
        template.lacks(Layer::MemoryCgroup).map_or(Ok(template), |why| Err(failed(why)))
    }

    /// Has it the layers without which nothing runs?
    fn check(&self, template: &Template) -> Result<(), SetupError> {
        let missing =
            |&layer| template.lacks(layer).map(|why| SetupError::new(format_args!("{layer} is required"), why));
        self.required.iter().find_map(missing).map_or(Ok(()), Err)
    }

    /// The template of a slot; a new one when there is none.
    fn template(&self, at: usize) -> Result<Arc<Template>, NoChild> {
        {
            let mut slot = lock(&self.slots[at]);
            match &*slot {
                Slot::There(template) => return Ok(template.clone()),
                Slot::Starting => return Err(NoChild::Busy),
                Slot::Empty => *slot = Slot::Starting,
            }
        }
        let started = self.start(self.turns.processor_of(at)).and_then(|template| {
            self.check(&template)?;
            Ok(Arc::new(template))
        });
        *lock(&self.slots[at]) = started.as_ref().map_or(Slot::Empty, |template| Slot::There(template.clone()));
        started.map_err(|error| match lacks_descriptors() {
            true => NoChild::Descriptors(error),
            false => NoChild::Failed(error),
        })
    }

    /// Orders a child of the next template that has room; of a new one when that has died. A run that gets one says when it is over.
    pub(crate) fn order(&self, order: Order) -> Result<(Arc<Template>, Channels), NoChild> {
        let turn = self.turns.begin();
        let many = self.slots.len();
        let mut ordered = Err(NoChild::Crowded);
        for at in (turn..turn + many).map(|at| at % many) {
            let next = self.order_from(at, order);
            let goes_on = matches!(next, Err(NoChild::Crowded | NoChild::Busy | NoChild::Descriptors(_)));
            // Another one may have sockets that no run has. Where none has, that there are none is the reason.
            if !matches!((&ordered, &next), (Err(NoChild::Descriptors(_)), Err(NoChild::Crowded | NoChild::Busy))) {
                ordered = next;
            }
            if !goes_on {
                break;
            }
        }
        if ordered.is_err() {
            self.turns.end();
        }
        ordered
    }

    /// Has any run a child? Then there will be descriptors, and room.
    pub(crate) fn is_at_work(&self) -> bool {
        self.templates().iter().any(|template| template.runs.load(Ordering::Relaxed) > 0)
    }

    /// A run is over.
    pub(crate) fn end(&self, template: &Template) {
        template.runs.fetch_sub(1, Ordering::Relaxed);
        self.turns.end();
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
            template.runs.fetch_sub(1, Ordering::Relaxed);
            match error.raw_os_error() {
                // The second is said of too many descriptors on their way.
                Some(libc::EAGAIN | libc::ETOOMANYREFS) if !template.is_stuck() => return Err(NoChild::Busy),
                Some(libc::EMFILE | libc::ENFILE) => {
                    return Err(NoChild::Descriptors(SetupError::new("channels", error)));
                }
                _ => {
                    self.discard(&template);
                    last = Some(error);
                }
            }
        }
        Err(NoChild::Failed(SetupError::new("template", last.unwrap_or_else(|| io::ErrorKind::Other.into()))))
    }

    /// The most runs at once.
    pub(crate) fn most_runs(&self) -> usize {
        self.slots.len().saturating_mul(CHILDREN)
    }

    /// Tells the template what it has to know of a run that has its job, and orders the next spare child, where spare children
    /// are wanted.
    pub(crate) fn restock(&self, template: &Template, order: Order, channels: &mut Channels) {
        template.restock(self.spares.then_some(order), channels.unsent_deadline.take());
    }

    /// Orders the first spare children.
    pub(crate) fn stock(&self, order: Order) {
        if self.spares {
            self.templates().iter().for_each(|template| template.restock(Some(order), None));
        }
    }

    /// Ends a template that is of no use any more.
    pub(crate) fn discard(&self, template: &Arc<Template>) {
        for slot in &self.slots {
            let mut slot = lock(slot);
            if matches!(&*slot, Slot::There(here) if Arc::ptr_eq(here, template)) {
                *slot = Slot::Empty;
            }
        }
        template.kill();
    }

    /// The templates that run.
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

    /// All that the host has told it.
    fn told(theirs: &OwnedFd) -> Vec<Message> {
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
        assert!(told(&theirs).iter().all(|message| message.deadline.is_none()));
        let question = template.request_pidfd(&pairs[2], None).unwrap();
        let told: Vec<_> = told(&theirs)
            .iter()
            .map(|message| (message.deadline.map(|it| (it.pair, it.kill_at)), message.show))
            .collect();
        assert_eq!(told, [(Some((8, 3)), None), (Some((7, 1)), None), (None, Some(9))]);
        // One whose asker is gone is not waited for, and a kill asks nothing.
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
        // What had found no room and is told now fills it again: that is progress, too.
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
        // It has said nothing for long, and may only wait for its turn.
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
