//! Work done side by side, whose results are taken in order.

use std::io;
use std::sync::mpsc::{self, Receiver, TryRecvError};

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
pub(crate) fn in_order<T: Send + 'static>(
    pool: &rayon::ThreadPool,
    mut next: impl FnMut() -> io::Result<Option<Work<T>>>,
    take: impl FnMut(Next<T>) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let (slots, queue) = mpsc::sync_channel(pool.current_num_threads() * AHEAD);
    let taker = std::thread::Builder::new().name("ptcl-writer".into()).spawn(move || take_all(&queue, take))?;
    let read = loop {
        match next() {
            Ok(Some(work)) => {
                let (result, slot) = mpsc::sync_channel(1);
                if slots.send(slot).is_err() {
                    break Ok(());
                }
                // Nobody listens when the taker is gone.
                pool.spawn(move || drop(result.send(work())));
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    drop(slots);
    let taken = taker.join().unwrap_or_else(|_| Err(io::Error::other("the writer broke")));
    // A reader that stops because nobody listens is the taker's failure.
    taken.and(read)
}

fn take_all<T>(queue: &Receiver<Receiver<T>>, mut take: impl FnMut(Next<T>) -> io::Result<()>) -> io::Result<()> {
    loop {
        let slot = match queue.try_recv() {
            Ok(slot) => slot,
            Err(TryRecvError::Disconnected) => return take(Next::Nothing),
            Err(TryRecvError::Empty) => {
                take(Next::Nothing)?;
                match queue.recv() {
                    Ok(slot) => slot,
                    Err(_) => return Ok(()),
                }
            }
        };
        let result = match slot.try_recv() {
            Ok(result) => Next::Done(result),
            Err(_) => {
                take(Next::Nothing)?;
                slot.recv().map_or(Next::Lost, Next::Done)
            }
        };
        take(result)?;
    }
}
