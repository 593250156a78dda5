//! Work done side by side, whose results are taken in order.
//!
//! Each worker finds its own work, does it, and takes the results that are next in order when one of them is its own: so a
//! piece of work wakes no thread as long as there is more.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Results that may wait for an earlier one, for each worker.
const AHEAD: usize = 8;
/// The stack of a worker. Programs do not use it, the analysis of nested source does.
const STACK_BYTES: usize = 8 << 20;

/// A piece of work.
pub(crate) type Work<T> = Box<dyn FnOnce() -> T + Send>;

/// What comes next, for who takes the results.
pub(crate) enum Next<T> {
    /// A result.
    Done(T),
    /// The worker broke; there is no result.
    Lost,
    /// Nothing is there yet: what was written may be shown meanwhile.
    Nothing,
}

/// The threads of the workers; 0 is one for each core.
pub(crate) fn pool(jobs: u16) -> io::Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.into()).stack_size(STACK_BYTES);
    pool.build().map_err(io::Error::other)
}

/// Has the work done that `next` finds, never too far ahead of the results, which `take` gets in order. Ends when there is no more, or
/// `take` fails.
pub(crate) fn in_order<T: Send>(
    pool: &rayon::ThreadPool,
    next: impl FnMut() -> io::Result<Option<Work<T>>> + Send,
    take: impl FnMut(Next<T>) -> io::Result<()> + Send,
) -> io::Result<()> {
    let source = Mutex::new(Source { next, is_over: Ok(false) });
    let results = Mutex::new(Results { first: 0, waiting: VecDeque::new(), take, taken: Ok(()) });
    let room = Condvar::new();
    let most = pool.current_num_threads() * AHEAD;
    pool.broadcast(|_| {
        loop {
            // Nobody else gets work meanwhile, so its number is its place in the order.
            let mut found = locked(&source);
            if !matches!(found.is_over, Ok(false)) {
                return;
            }
            // At the end the last place stays empty.
            let Some(number) = place(&results, &room, most) else { return };
            let Some(work) = found.work() else { return };
            drop(found);
            // A worker that broke must not leave a gap.
            let result = catch_unwind(AssertUnwindSafe(work)).map_or(Next::Lost, Next::Done);
            locked(&results).put(number, result, &room);
        }
    });
    let read = source.into_inner().unwrap_or_else(PoisonError::into_inner).is_over;
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A reader that stops because nobody listens is the taker's failure.
    results.taken.and_then(|()| (results.take)(Next::Nothing)).and(read.map(drop))
}

/// Where work comes from.
struct Source<N> {
    next: N,
    /// There is no more, or why no more could be found.
    is_over: io::Result<bool>,
}

impl<N> Source<N> {
    fn work<T>(&mut self) -> Option<Work<T>>
    where
        N: FnMut() -> io::Result<Option<Work<T>>>,
    {
        match (self.next)() {
            Ok(Some(work)) => return Some(work),
            Ok(None) => self.is_over = Ok(true),
            Err(error) => self.is_over = Err(error),
        }
        None
    }
}

/// Where results go.
struct Results<T, F> {
    /// How many were taken.
    first: usize,
    /// The places of those that are at work or wait for an earlier one, in order.
    waiting: VecDeque<Option<Next<T>>>,
    take: F,
    /// What came of the last one that was taken.
    taken: io::Result<()>,
}

impl<T, F: FnMut(Next<T>) -> io::Result<()>> Results<T, F> {
    /// Puts a result in its place, and takes those that are next in order.
    fn put(&mut self, number: usize, result: Next<T>, room: &Condvar) {
        if let Some(place) = self.waiting.get_mut(number - self.first) {
            *place = Some(result);
        }
        while self.taken.is_ok() && matches!(self.waiting.front(), Some(Some(_))) {
            if let Some(Some(result)) = self.waiting.pop_front() {
                self.first += 1;
                self.taken = (self.take)(result);
                room.notify_one();
            }
        }
        if self.taken.is_ok() {
            self.taken = (self.take)(Next::Nothing);
        }
        if self.taken.is_err() {
            room.notify_all();
        }
    }
}

/// The number of the next piece of work, when there is room for its result; `None` when nobody takes it any more.
fn place<T, F>(results: &Mutex<Results<T, F>>, room: &Condvar, most: usize) -> Option<usize> {
    let mut results = locked(results);
    while results.taken.is_ok() && results.waiting.len() >= most {
        results = room.wait(results).unwrap_or_else(PoisonError::into_inner);
    }
    results.taken.is_ok().then(|| {
        results.waiting.push_back(None);
        results.first + results.waiting.len() - 1
    })
}

/// Who broke has left nothing half done: `next` and `take` are run to the end or not at all.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
