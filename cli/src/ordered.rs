//! Parallel work whose results are taken in order.
//!
//! Each worker finds its own work and does it. If its result is the next in order, the worker also takes the results
//! that follow. So no thread needs to be woken while there is work.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// The number of results per worker that may wait for an earlier one.
const AHEAD: usize = 8;
/// The stack size of a worker. Programs do not need it, but the analysis of nested source does.
const STACK_BYTES: usize = 8 << 20;

/// A piece of work.
pub(crate) type Work<T> = Box<dyn FnOnce() -> T + Send>;

/// What the consumer of the results gets.
pub(crate) enum Next<T> {
    /// A result.
    Done(T),
    /// The worker panicked; there is no result.
    Lost,
    /// No result is ready: a good time to flush output.
    Nothing,
}

/// The number of workers; 0 is one per core.
pub(crate) fn workers(jobs: u16) -> usize {
    match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs.into(),
    }
}

/// Runs the work that `next` returns on a number of workers, not too far ahead of the results. `take` gets the results
/// in order. Ends when there is no more work or `take` fails.
///
/// A worker starts when the one before it has found work, so no more are started than needed. If the system provides no
/// more threads, the existing ones do all the work.
pub(crate) fn in_order<T: Send>(
    workers: usize,
    next: impl FnMut() -> io::Result<Option<Work<T>>> + Send,
    take: impl FnMut(Next<T>) -> io::Result<()> + Send,
) -> io::Result<()> {
    let shared = Shared {
        source: Mutex::new(Source { next, is_over: Ok(false) }),
        results: Mutex::new(Results { first: 0, waiting: VecDeque::new(), take, taken: Ok(()), wants_room: false }),
        room: Condvar::new(),
        max: workers * AHEAD,
        to_begin: AtomicUsize::new(workers),
    };
    std::thread::scope(|scope| shared.begin(scope))?;
    let read = shared.source.into_inner().unwrap_or_else(PoisonError::into_inner).is_over;
    let mut results = shared.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // If the reader stopped because of the consumer, the consumer's error counts.
    results.taken.and_then(|()| (results.take)(Next::Nothing)).and(read.map(drop))
}

/// The state that the workers share.
struct Shared<N, T, F> {
    source: Mutex<Source<N>>,
    results: Mutex<Results<T, F>>,
    /// Notified when there is space for a result that a worker waits for, or when no more results are taken.
    room: Condvar,
    /// The maximum number of results that wait or are being computed.
    max: usize,
    /// The number of workers not started yet.
    to_begin: AtomicUsize,
}

impl<N, T, F> Shared<N, T, F>
where
    N: FnMut() -> io::Result<Option<Work<T>>> + Send,
    T: Send,
    F: FnMut(Next<T>) -> io::Result<()> + Send,
{
    /// Starts another worker, unless all are started.
    fn begin<'s>(&'s self, scope: &'s Scope<'s, '_>) -> io::Result<()> {
        let fewer = self.to_begin.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if fewer.is_ok() {
            let thread = std::thread::Builder::new().name("ptcl-worker".into()).stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, || self.work(scope))?;
        }
        Ok(())
    }

    /// The loop of a worker.
    fn work<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        let mut is_first = true;
        loop {
            // No other worker gets work meanwhile, so its number is its position in the order.
            let mut found = locked(&self.source);
            if !matches!(found.is_over, Ok(false)) {
                return;
            }
            // At the end the last slot stays empty.
            let Some(number) = self.place() else { return };
            let Some(work) = found.work() else { return };
            drop(found);
            if std::mem::take(&mut is_first) && self.begin(scope).is_err() {
                self.to_begin.store(0, Ordering::Relaxed);
            }
            // A worker that panicked must not leave a gap.
            let result = catch_unwind(AssertUnwindSafe(work)).map_or(Next::Lost, Next::Done);
            locked(&self.results).put(number, result, &self.room);
        }
    }

    /// Waits for space, and returns the number of the next piece of work. Returns `None` if no more results are taken.
    fn place(&self) -> Option<usize> {
        let mut results = locked(&self.results);
        while results.taken.is_ok() && results.waiting.len() >= self.max {
            results.wants_room = true;
            results = self.room.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
        results.taken.is_ok().then(|| {
            results.waiting.push_back(None);
            results.first + results.waiting.len() - 1
        })
    }
}

/// The source of work.
struct Source<N> {
    next: N,
    /// Whether there is no more work, or the error that ended it.
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

/// The results so far.
struct Results<T, F> {
    /// The number of results taken.
    first: usize,
    /// The slots of work in progress, and of results that wait for an earlier one, in order.
    waiting: VecDeque<Option<Next<T>>>,
    take: F,
    /// The result of the last `take`.
    taken: io::Result<()>,
    /// Whether a worker waits for space. Only the one that holds the source can. Avoids a system call for notifying no
    /// one.
    wants_room: bool,
}

impl<T, F: FnMut(Next<T>) -> io::Result<()>> Results<T, F> {
    /// Stores a result, and takes the ones that are next in order.
    fn put(&mut self, number: usize, result: Next<T>, room: &Condvar) {
        if let Some(place) = self.waiting.get_mut(number - self.first) {
            *place = Some(result);
        }
        while self.taken.is_ok() && matches!(self.waiting.front(), Some(Some(_))) {
            if let Some(Some(result)) = self.waiting.pop_front() {
                self.first += 1;
                self.taken = (self.take)(result);
                if std::mem::take(&mut self.wants_room) {
                    room.notify_one();
                }
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

/// Ignores poisoning: `next` and `take` run completely or not at all, so nothing is left half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    /// Returns what `take` got for `count` pieces of work, each given its number.
    fn taken(jobs: usize, count: usize, work: impl Fn(usize) -> usize + Send + Sync + 'static) -> Vec<Option<usize>> {
        let (mut number, work, mut all) = (0, Arc::new(work), Vec::new());
        let next = || {
            let (at, work) = (number, work.clone());
            number += 1;
            Ok((at < count).then(|| Box::new(move || work(at)) as Work<usize>))
        };
        let take = |next: Next<usize>| {
            match next {
                Next::Done(result) => all.push(Some(result)),
                Next::Lost => all.push(None),
                Next::Nothing => {}
            }
            Ok(())
        };
        in_order(jobs, next, take).unwrap();
        all
    }

    #[test]
    fn results_come_in_order_and_none_is_missing() {
        for (jobs, count) in [(1, 0), (1, 40), (3, 1), (3, 200), (40, 30)] {
            let slow_now_and_then = |at: usize| {
                if at.is_multiple_of(7) {
                    std::thread::sleep(Duration::from_millis(2));
                }
                at
            };
            let wanted: Vec<_> = (0..count).map(Some).collect();
            assert_eq!(taken(jobs, count, slow_now_and_then), wanted, "{jobs} workers");
        }
    }

    #[test]
    fn work_that_breaks_leaves_its_place() {
        let breaks = |at| if at == 3 { std::panic::panic_any("a test's panic") } else { at };
        assert_eq!(taken(2, 6, breaks), [Some(0), Some(1), Some(2), None, Some(4), Some(5)]);
    }

    /// While the first piece of work is not done, no more work starts than may wait for it.
    #[test]
    fn nobody_gets_too_far_ahead() {
        const WORKERS: usize = 2;
        let started = AtomicUsize::new(0);
        let max = Arc::new(AtomicUsize::new(0));
        let seen = max.clone();
        let done = Arc::new(AtomicUsize::new(0));
        let of_work = done.clone();
        let next = || {
            let at = started.fetch_add(1, Ordering::SeqCst);
            let (seen, done) = (seen.clone(), of_work.clone());
            Ok((at < 100).then(|| {
                Box::new(move || {
                    if at == 0 {
                        std::thread::sleep(Duration::from_millis(100));
                        seen.store(done.load(Ordering::SeqCst), Ordering::SeqCst);
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                }) as Work<()>
            }))
        };
        in_order(WORKERS, next, |_| Ok(())).unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 100);
        assert_eq!(max.load(Ordering::SeqCst), WORKERS * AHEAD - 1);
    }

    #[test]
    fn an_error_ends_it() {
        let (mut number, mut all) = (0, 0);
        let next = || {
            number += 1;
            if number > 10 { Err(io::Error::other("unreadable")) } else { Ok(Some(Box::new(|| ()) as Work<()>)) }
        };
        let take = |next| {
            all += usize::from(matches!(next, Next::Done(())));
            Ok(())
        };
        let ended = in_order(2, next, take);
        assert_eq!((ended.unwrap_err().to_string(), all), ("unreadable".to_owned(), 10));

        let endless = || Ok(Some(Box::new(|| ()) as Work<()>));
        let mut left = 20;
        let full = |_| {
            left -= 1;
            if left == 0 { Err(io::Error::other("full")) } else { Ok(()) }
        };
        let ended = in_order(3, endless, full);
        assert_eq!((ended.unwrap_err().to_string(), left), ("full".to_owned(), 0));
    }

    /// Results are flushed before waiting for more work.
    #[test]
    fn results_are_shown_before_the_next_work_is_waited_for() {
        let shown = AtomicUsize::new(0);
        let mut number = 0;
        let next = || {
            number += 1;
            if number > 3 {
                return Ok(None);
            }
            // With one worker, all earlier work is done.
            assert_eq!(shown.load(Ordering::SeqCst), number - 1);
            Ok(Some(Box::new(|| ()) as Work<()>))
        };
        let mut written = 0;
        let take = |next| {
            match next {
                Next::Nothing => shown.store(written, Ordering::SeqCst),
                _ => written += 1,
            }
            Ok(())
        };
        in_order(1, next, take).unwrap();
        assert_eq!(shown.load(Ordering::SeqCst), 3);
    }
}
