//! Tool calls of a run's workers, made on other threads.

#[cfg(feature = "async")]
use lisp_runtime::remote::RunWaker;
use lisp_runtime::remote::{CallDone, HostCall, QueuedCall};
use rustix::event::EventfdFlags;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// The calls in progress, and the channel through which they return.
#[derive(Debug)]
pub(crate) struct Calls {
    sender: Sender<CallDone>,
    receiver: Receiver<CallDone>,
    woken: Arc<OwnedFd>,
    in_progress: BTreeMap<u64, QueuedCall>,
    /// Also woken when a call has ended.
    #[cfg(feature = "async")]
    run: Option<Arc<RunWaker>>,
}

impl Calls {
    pub(crate) fn new() -> io::Result<Calls> {
        let woken = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (sender, receiver) = mpsc::channel();
        Ok(Calls {
            sender,
            receiver,
            woken: Arc::new(woken),
            in_progress: BTreeMap::new(),
            #[cfg(feature = "async")]
            run: None,
        })
    }

    /// Returns a descriptor that becomes readable when a call has ended.
    pub(crate) fn woken(&self) -> Arc<OwnedFd> {
        self.woken.clone()
    }

    /// Also wakes `run` when a call has ended.
    #[cfg(feature = "async")]
    pub(crate) fn wake(&mut self, run: Arc<RunWaker>) {
        self.run = Some(run);
    }

    /// Makes a call on one of the engine's tool threads. Returns the call if there are no such threads.
    pub(crate) fn start(&mut self, number: u64, call: HostCall) -> Result<(), Box<HostCall>> {
        let (sender, woken) = (self.sender.clone(), self.woken.clone());
        #[cfg(feature = "async")]
        let run = self.run.clone();
        let queued = call.queue(move |ended| {
            // The receiver is gone once the run is over.
            if sender.send(ended).is_ok() {
                let _ = rustix::io::write(&*woken, &1_u64.to_ne_bytes());
                #[cfg(feature = "async")]
                run.inspect(std::task::Wake::wake_by_ref);
            }
        })?;
        self.in_progress.insert(number, queued);
        Ok(())
    }

    /// Returns the calls that have ended since the last time.
    pub(crate) fn ended(&mut self) -> Vec<CallDone> {
        let _ = rustix::io::read(&*self.woken, &mut [0; 8][..]);
        let ended: Vec<CallDone> = self.receiver.try_iter().collect();
        for call in &ended {
            self.in_progress.remove(&call.number());
        }
        ended
    }

    /// Returns true if no call can still be waiting for a thread.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_progress.is_empty()
    }

    /// Takes back all calls that are still waiting for a thread: they are not made.
    pub(crate) fn withdraw(&mut self) -> Vec<CallDone> {
        let back: Vec<CallDone> = self.in_progress.values().filter_map(QueuedCall::withdraw).collect();
        for call in &back {
            self.in_progress.remove(&call.number());
        }
        back
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        drop(self.withdraw());
    }
}
