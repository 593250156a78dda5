//! Templates: starting them, giving them orders, and starting them again when they die.
//!
//! A child is ordered before there is a job for it, so that it waits for the job and not the job for it. It is like any other
//! child, but for the time it waits; it serves when its limits are those of the next run.

use crate::cgroup::Group;
use crate::lockdown::{Layer, Layers, Plan, SetupError};
use crate::sys;
use crate::template::{ARGUMENT, Config, Order, REPORT_BYTES, Ready};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a template may take to be ready.
const READY: Duration = Duration::from_secs(10);

/// How long a template may say nothing before it counts as stuck. On a busy machine it may need a while to fork.
const SILENT_NS: u64 = 200_000_000;

/// A template that runs.
#[derive(Debug)]
pub(crate) struct Template {
    control: OwnedFd,
    process: Mutex<Child>,
    /// When it last said something, by the monotonic clock.
    heard_ns: AtomicU64,
    /// It outlives its processes, and then goes.
    pub(crate) group: Option<Arc<Group>>,
    pub(crate) layers: Layers,
    /// The name of the next child.
    next: AtomicU64,
    spare: Mutex<Option<Spare>>,
}

/// A child that was ordered before there was a job for it.
#[derive(Debug)]
struct Spare {
    order: Order,
    channels: Channels,
    /// How many runs in a row it did not suit.
    unsuited: u32,
}

/// After so many runs that a spare child did not suit there is to be another one.
const UNSUITED: u32 = 4;

/// A run's two channels: to its process, and to the template about it.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) run: OwnedFd,
    pub(crate) status: OwnedFd,
    /// The child's name.
    id: u64,
    /// The order, when the child was there before it.
    untold: Option<Order>,
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

impl Template {
    fn start(program: &PathBuf, config: &Config, group: Option<Arc<Group>>) -> Result<Template, SetupError> {
        let failed = |error: io::Error| SetupError::new("template", error);
        let (control, theirs) = pair().map_err(failed)?;
        let config = serde_json::to_string(config).map_err(|error| failed(error.into()))?;
        let mut command = Command::new(program);
        command.arg(ARGUMENT).arg(config).env_clear().stdin(Stdio::from(theirs)).stdout(Stdio::null());
        if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
            command.env("LD_LIBRARY_PATH", path);
        }
        let process = command.stderr(Stdio::null()).current_dir("/").spawn().map_err(failed)?;
        // The other end of the control channel must not stay open here.
        drop(command);
        let mut template = Template {
            control,
            process: Mutex::new(process),
            heard_ns: AtomicU64::new(0),
            group,
            layers: Layers(Vec::new()),
            next: AtomicU64::new(1),
            spare: Mutex::default(),
        };
        template.layers = template.ready()?;
        Ok(template)
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
        let no_init = "it ended; its program must call lisp_sandbox::init() first in main";
        let ready: Ready = serde_json::from_slice(&report[..read]).map_err(|_| silent(no_init))?;
        ready
    }

    /// A child for an order: the spare one when it suits.
    fn order(&self, order: Order) -> io::Result<Channels> {
        match self.take_spare(&order) {
            Some(channels) => Ok(channels),
            None => self.make(order),
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
        let channels = place.take()?.channels;
        drop(place);
        // It may have died meanwhile, of whatever cause.
        let mut fds = [PollFd::new(&channels.run, PollFlags::empty())];
        let lives = matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(0));
        lives.then(|| Channels { untold: Some(Order { id: channels.id, ..*order }), ..channels })
    }

    /// Tells the template until when a spare child has time, now that it has a job.
    fn tell(&self, channels: &mut Channels) {
        if let Some(order) = channels.untold.take() {
            // A template that does not listen is found out when it has to reap.
            let _ = self.send(order, &[]);
        }
    }

    /// Orders a spare child where there is none, for a run like the one of `order`. A host without descriptors has none:
    /// then the next child is made when it is wanted.
    fn restock(&self, order: Order) {
        let mut place = lock(&self.spare);
        if place.is_none() && order.serves(&order) {
            let order = Order { kill_at: 0, ..order };
            *place = self.make(order).ok().map(|channels| Spare { order, channels, unsuited: 0 });
        }
    }

    /// Orders a child.
    fn make(&self, order: Order) -> io::Result<Channels> {
        let ((run, their_run), (status, their_status)) = (pair()?, pair()?);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(Order { id, ..order }, &[their_run.as_fd(), their_status.as_fd()])?;
        Ok(Channels { run, status, untold: None, id })
    }

    fn send(&self, order: Order, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        let bytes = order.to_bytes();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            // A template that is stopped fills its channel, and then has to go.
            match rustix::net::sendmsg(&self.control, &[IoSlice::new(&bytes)], &mut ancillary, flags) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// It has said something, about whichever run.
    pub(crate) fn was_heard(&self) {
        self.heard_ns.store(sys::monotonic_ns(), Ordering::Relaxed);
    }

    /// Has it been given time to answer an order of that moment, and said nothing at all since?
    pub(crate) fn is_silent_since(&self, ordered_ns: u64) -> bool {
        let late = sys::monotonic_ns().saturating_sub(ordered_ns) >= SILENT_NS;
        late && self.heard_ns.load(Ordering::Relaxed) < ordered_ns
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Templates that take turns.
#[derive(Debug)]
pub(crate) struct Pool {
    program: PathBuf,
    config: Config,
    required: Vec<Layer>,
    spares: bool,
    group: Option<Arc<Group>>,
    slots: Vec<Mutex<Option<Arc<Template>>>>,
    turn: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(
        program: PathBuf,
        plan: Plan,
        fail_at: Option<Layer>,
        required: Vec<Layer>,
        count: usize,
        spares: bool,
        total_memory: Option<u64>,
    ) -> Result<Pool, SetupError> {
        let slots = (0..count.max(1)).map(|_| Mutex::new(None)).collect();
        let group = match plan.wants(Layer::MemoryCgroup) {
            true => Group::new(total_memory).map(Arc::new).map_err(|error| error.to_string()),
            false => Err("it is turned off".to_owned()),
        };
        let config = Config { plan, fail_at, group: group.as_ref().map(|group| group.door()).map_err(Clone::clone) };
        let pool = Pool { program, config, required, spares, group: group.ok(), slots, turn: AtomicUsize::new(0) };
        for slot in &pool.slots {
            pool.template(slot)?;
        }
        Ok(pool)
    }

    /// The template of a slot; a new one when there is none.
    fn template(&self, slot: &Mutex<Option<Arc<Template>>>) -> Result<Arc<Template>, SetupError> {
        let mut slot = lock(slot);
        if let Some(template) = &*slot {
            return Ok(template.clone());
        }
        let template = Template::start(&self.program, &self.config, self.group.clone())?;
        for &layer in &self.required {
            if !template.layers.is_active(layer) {
                let why = match template.layers.state(layer) {
                    crate::State::Unavailable { why } => why.clone(),
                    crate::State::Degraded { why, .. } => why.clone(),
                    _ => "it is turned off".to_owned(),
                };
                return Err(SetupError::new(format_args!("{layer} is required"), why));
            }
        }
        Ok(slot.insert(Arc::new(template)).clone())
    }

    /// Orders a child of the next template; of a new one when that has died.
    pub(crate) fn order(&self, order: Order) -> Result<(Arc<Template>, Channels), SetupError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        let slot = &self.slots[turn];
        let mut last = None;
        for _ in 0..3 {
            let template = self.template(slot)?;
            match template.order(order) {
                Ok(channels) => return Ok((template, channels)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.discard(&template);
                    last = Some(error);
                }
                // It is the host that has no descriptors left.
                Err(error) if error.raw_os_error().is_some_and(|e| e == libc::EMFILE || e == libc::ENFILE) => {
                    return Err(SetupError::new("channels", error));
                }
                Err(error) => {
                    self.discard(&template);
                    last = Some(error);
                }
            }
        }
        Err(SetupError::new("template", last.unwrap_or_else(|| io::ErrorKind::Other.into())))
    }

    /// Tells the template what it has to know of a run that has its job, and orders the next spare child, where spare children are wanted.
    pub(crate) fn restock(&self, template: &Template, order: Order, channels: &mut Channels) {
        template.tell(channels);
        if self.spares {
            template.restock(order);
        }
    }

    /// Orders the first spare children.
    pub(crate) fn stock(&self, order: Order) {
        if self.spares {
            self.templates().iter().for_each(|template| template.restock(order));
        }
    }

    /// Ends a template that is of no use any more.
    pub(crate) fn discard(&self, template: &Arc<Template>) {
        for slot in &self.slots {
            let mut slot = lock(slot);
            if slot.as_ref().is_some_and(|here| Arc::ptr_eq(here, template)) {
                *slot = None;
            }
        }
        template.kill();
    }

    /// The templates that run.
    pub(crate) fn templates(&self) -> Vec<Arc<Template>> {
        self.slots.iter().filter_map(|slot| lock(slot).clone()).collect()
    }
}
