//! Futures that wait within a run, each woken separately, and the waker of their run.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Wakes the task that polls a run. It stays the same when the run moves to another task.
#[derive(Default)]
pub struct RunWaker(Mutex<State>);

#[derive(Default)]
struct State {
    /// The task that polled the run last.
    driver: Option<Waker>,
    /// The calls that were woken.
    woken: Vec<u64>,
}

impl fmt::Debug for RunWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunWaker").finish_non_exhaustive()
    }
}

impl RunWaker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the task to wake from now on.
    pub fn set(&self, waker: &Waker) {
        let mut state = self.state();
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            let before = state.driver.replace(waker.clone());
            drop(state);
            // Dropping the old waker runs code of the executor, which may do anything.
            drop(before);
        }
    }
}

impl Wake for RunWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let driver = self.state().driver.clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

/// The waker of one call.
struct CallWaker {
    number: u64,
    run: Arc<RunWaker>,
    /// Whether it is already in the list of woken calls: it is there only once.
    is_woken: AtomicBool,
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.run.state().woken.push(self.number);
            self.run.wake_by_ref();
        }
    }
}

/// Waiting calls by number. Only those that were woken are polled.
pub struct CallFutures<F> {
    run: Arc<RunWaker>,
    calls: BTreeMap<u64, (F, Arc<CallWaker>)>,
}

impl<F> fmt::Debug for CallFutures<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFutures").field("waiting", &self.calls.len()).finish_non_exhaustive()
    }
}

impl<F: Future + Unpin> CallFutures<F> {
    /// Creates an empty set for the run that `run` wakes.
    pub fn new(run: Arc<RunWaker>) -> Self {
        CallFutures { run, calls: BTreeMap::new() }
    }

    /// Adds a call, which is polled the next time.
    pub fn insert(&mut self, number: u64, call: F) {
        let waker = Arc::new(CallWaker { number, run: self.run.clone(), is_woken: AtomicBool::new(true) });
        self.run.state().woken.push(number);
        self.calls.insert(number, (call, waker));
    }

    /// Returns whether no call waits.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Polls the calls that were woken, and removes those that are ready.
    pub fn poll(&mut self) -> Vec<(u64, F::Output)> {
        let woken = std::mem::take(&mut self.run.state().woken);
        let mut over = Vec::new();
        for number in woken {
            let Some((call, waker)) = self.calls.get_mut(&number) else { continue };
            // Before polling: it may be woken during the poll.
            waker.is_woken.store(false, Ordering::Release);
            let task = Waker::from(waker.clone());
            if let Poll::Ready(output) = Pin::new(call).poll(&mut Context::from_waker(&task)) {
                self.calls.remove(&number);
                over.push((number, output));
            }
        }
        over
    }

    /// Drops the calls that are no longer awaited.
    pub fn retain(&mut self, is_awaited: impl Fn(u64) -> bool) {
        self.calls.retain(|&number, _| is_awaited(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    struct Counts(AtomicUsize);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Is ready on its third poll; keeps its wakers.
    struct Third(usize, Arc<Mutex<Vec<Waker>>>);

    impl Future for Third {
        type Output = usize;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
            self.0 += 1;
            self.1.lock().unwrap().push(context.waker().clone());
            if self.0 == 3 { Poll::Ready(self.0) } else { Poll::Pending }
        }
    }

    #[test]
    fn only_those_that_are_woken_are_polled_and_the_run_is_woken_once_for_each() {
        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let run = Arc::new(RunWaker::default());
        run.set(&Waker::from(counts.clone()));
        let mut calls = CallFutures::new(run);
        let wakers = [Arc::default(), Arc::default()];
        for (number, wakers) in wakers.iter().enumerate() {
            calls.insert(number as u64, Third(0, Arc::clone(wakers)));
        }
        assert_eq!(calls.poll(), []);
        assert_eq!(calls.poll(), []);
        let polled = || wakers.each_ref().map(|wakers| wakers.lock().unwrap().len());
        assert_eq!(polled(), [1, 1]);
        let waker = wakers[1].lock().unwrap()[0].clone();
        for _ in 0..1_000 {
            waker.wake_by_ref();
        }
        assert_eq!((counts.0.load(Ordering::SeqCst), calls.poll(), polled()), (1, vec![], [1, 2]));
        waker.wake_by_ref();
        assert_eq!(calls.poll(), [(1, 3)]);
        // Woken once more after it is ready.
        waker.wake();
        assert_eq!((calls.poll(), polled()), (vec![], [1, 3]));
        calls.retain(|number| number != 0);
        assert!(calls.is_empty());
    }
}
