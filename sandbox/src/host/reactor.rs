//! The reactor: one thread of the host that waits for the processes of all async runs, and wakes a run when its sockets
//! can be read. It is started for the first async run.

use super::socket_pair::SocketPair;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::thread;

/// The maximum number of events handled at once.
const AT_ONCE: usize = 256;

struct Reactor {
    epoll: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// The reactor of this process. If creating it fails, the next run tries again.
static REACTOR: OnceLock<Arc<Reactor>> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

impl Reactor {
    fn of_process() -> io::Result<Arc<Reactor>> {
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reactor) = REACTOR.get() {
            return Ok(reactor.clone());
        }
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let reactor = Arc::new(Reactor { epoll, state: Mutex::default() });
        let its_own = reactor.clone();
        thread::Builder::new().name("ptc-lisp-sockets".into()).spawn(move || its_own.serve())?;
        Ok(REACTOR.get_or_init(|| reactor).clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut events: Vec<Event> = Vec::with_capacity(AT_ONCE);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                // Cannot happen: the descriptor is this side's own.
                Err(_) => return,
            }
            for event in &events {
                let data = event.data;
                let waker = self.state().wakers.get(&data.u64()).cloned();
                if let Some(waker) = waker {
                    // Wakers are foreign code, whose panics must not end the thread.
                    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
                }
            }
        }
    }
}

/// Wakes a run when its process or its template has sent something, once each time it is armed.
pub(crate) struct Watch {
    reactor: Arc<Reactor>,
    pair: Arc<SocketPair>,
    number: u64,
}

impl Watch {
    /// Creates a watch that waits for nothing yet.
    ///
    /// # Errors
    /// Returns an error if no thread can be started or no descriptor is left.
    pub(crate) fn new(pair: Arc<SocketPair>, waker: &Waker) -> io::Result<Watch> {
        let reactor = Reactor::of_process()?;
        let mut state = reactor.state();
        state.last += 1;
        let number = state.last;
        state.wakers.insert(number, waker.clone());
        drop(state);
        let data = EventData::new_u64(number);
        // From here on, dropping it undoes the registrations.
        let watch = Watch { reactor, pair, number };
        epoll::add(&watch.reactor.epoll, &watch.pair.run, data, EventFlags::ONESHOT)?;
        epoll::add(&watch.reactor.epoll, watch.pair.status_fd(), data, EventFlags::ONESHOT)?;
        Ok(watch)
    }

    /// Waits for the template, and also for these events of the process if `run` is given.
    pub(crate) fn arm(&self, run: Option<EventFlags>) -> io::Result<()> {
        let (epoll, data) = (&self.reactor.epoll, EventData::new_u64(self.number));
        if let Some(wanted) = run {
            epoll::modify(epoll, &self.pair.run, data, wanted | EventFlags::ONESHOT)?;
        }
        Ok(epoll::modify(epoll, self.pair.status_fd(), data, EventFlags::IN | EventFlags::ONESHOT)?)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = epoll::delete(&self.reactor.epoll, &self.pair.run);
        let _ = epoll::delete(&self.reactor.epoll, self.pair.status_fd());
        let waker = self.reactor.state().wakers.remove(&self.number);
        drop(waker);
    }
}
