//! Work done side by side, whose results are taken in order.
//!
//! Each worker finds its own work, does it, and takes the results that are next in order when one of them is its own: so a
//! piece of work wakes no thread as long as there is more.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

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

/// How many workers there may be; 0 is one for each core.
pub(crate) fn workers(jobs: u16) -> usize {
    match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs.into(),
    }
}

/// Has the work done that `next` finds, by at most so many workers and never too far ahead of the results, which `take` gets in
/// order. Ends when there is no more, or `take` fails.
///
/// A worker begins when the one before it has found work: there are never more than that takes. Where the system gives no more
/// threads, those that there are do all.
pub(crate) fn in_order<T: Send>(
    workers: usize,
    next: impl FnMut() -> io::Result<Option<Work<T>>> + Send,
    take: impl FnMut(Next<T>) -> io::Result<()> + Send,
) -> io::Result<()> {
    let shared = Shared {
        source: Mutex::new(Source { next, is_over: Ok(false) }),
        results: Mutex::new(Results { first: 0, waiting: VecDeque::new(), take, taken: Ok(()), wants_room: false }),
        room: Condvar::new(),
        most: workers * AHEAD,
        to_begin: AtomicUsize::new(workers),
    };
    std::thread::scope(|scope| shared.begin(scope))?;
    let read = shared.source.into_inner().unwrap_or_else(PoisonError::into_inner).is_over;
    let mut results = shared.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A reader that stops because nobody listens is the taker's failure.
    results.taken.and_then(|()| (results.take)(Next::Nothing)).and(read.map(drop))
}

/// What the workers share.
struct Shared<N, T, F> {
    source: Mutex<Source<N>>,
    results: Mutex<Results<T, F>>,
    /// Told of when there is room for a result that somebody wants, or nobody takes any more.
    room: Condvar,
    /// How many results may wait or be at work.
    most: usize,
    /// Workers that have not begun.
    to_begin: AtomicUsize,
}

impl<N, T, F> Shared<N, T, F>
where
    N: FnMut() -> io::Result<Option<Work<T>>> + Send,
    T: Send,
    F: FnMut(Next<T>) -> io::Result<()> + Send,
{
    /// Begins one more worker, if there may be one.
    fn begin<'s>(&'s self, scope: &'s Scope<'s, '_>) -> io::Result<()> {
        let fewer = self.to_begin.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if fewer.is_ok() {
            let thread = std::thread::Builder::new().name("ptcl-worker".into()).stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, || self.work(scope))?;
        }
        Ok(())
    }

    /// What a worker does.
    fn work<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        let mut is_first = true;
        loop {
            // Nobody else gets work meanwhile, so its number is its place in the order.
            let mut found = locked(&self.source);
            if !matches!(found.is_over, Ok(false)) {
                return;
            }
            // At the end the last place stays empty.
            let Some(number) = self.place() else { return };
            let Some(work) = found.work() else { return };
            drop(found);
            if std::mem::take(&mut is_first) && self.begin(scope).is_err() {
                self.to_begin.store(0, Ordering::Relaxed);
            }
            // A worker that broke must not leave a gap.
            let result = catch_unwind(AssertUnwindSafe(work)).map_or(Next::Lost, Next::Done);
            locked(&self.results).put(number, result, &self.room);
        }
    }

    /// The number of the next piece of work, when there is room for its result; `None` when nobody takes it any more.
    fn place(&self) -> Option<usize> {
        let mut results = locked(&self.results);
        while results.taken.is_ok() && results.waiting.len() >= self.most {
            results.wants_room = true;
            results = self.room.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
        results.taken.is_ok().then(|| {
            results.waiting.push_back(None);
            results.first + results.waiting.len() - 1
        })
    }
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
    /// A worker waits for room: only one can, which has the source. To tell nobody would be a call of the system all the same.
    wants_room: bool,
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

/// Who broke has left nothing half done: `next` and `take` are run to the end or not at all.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    /// What is taken of `count` pieces of work, each of which is done by `work` with its number.
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

    /// While the first piece of work is not done, no more is begun than may wait for it.
    #[test]
    fn nobody_gets_too_far_ahead() {
        const WORKERS: usize = 2;
        let begun = AtomicUsize::new(0);
        let most = Arc::new(AtomicUsize::new(0));
        let seen = most.clone();
        let done = Arc::new(AtomicUsize::new(0));
        let of_work = done.clone();
        let next = || {
            let at = begun.fetch_add(1, Ordering::SeqCst);
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
        assert_eq!(most.load(Ordering::SeqCst), WORKERS * AHEAD - 1);
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

    /// What is there is shown before anybody waits for more.
    #[test]
    fn results_are_shown_before_the_next_work_is_waited_for() {
        let shown = AtomicUsize::new(0);
        let mut number = 0;
        let next = || {
            number += 1;
            if number > 3 {
                return Ok(None);
            }
            // With one worker all before is done.
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
