//! `ptcl batch`: requests in, answers out, one JSON object a line, in order, on all cores.

use crate::door::{Door, DoorOption};
use crate::exit::{Exit, Failure};
use crate::options::LimitOptions;
use lisp_runtime::answer_bytes_by;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    limits: LimitOptions,
    #[command(flatten)]
    door: DoorOption,
    /// Requests at work at once; 0 is one for each core
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

/// A longer line is no request.
const LINE_BYTES: u64 = 256 << 20;
/// Answers that may wait for an earlier one, for each worker.
const AHEAD: usize = 8;
/// The stack of a worker. Programs do not use it, the analysis of nested source does.
const STACK_BYTES: usize = 8 << 20;

/// A request under way: its answer comes here.
type Slot = Receiver<String>;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.jobs)
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Failure::Stream(io::Error::other(error)))?;
    let door = Arc::new(arguments.door.open(arguments.limits.engine()?, pool.current_num_threads())?);
    let ahead = pool.current_num_threads() * AHEAD;
    let (slots, queue) = mpsc::sync_channel(ahead);
    let writer = std::thread::Builder::new().name("ptcl-writer".into()).spawn(move || write_answers(&queue))?;
    let read = read_requests(&door, &pool, &slots);
    drop(slots);
    let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer broke")));
    // A reader that stops because nobody listens is the writer's failure.
    written?;
    read?;
    Ok(Exit::Ok)
}

/// Reads lines and puts them to work, in order and never too far ahead of the answers.
fn read_requests(door: &Arc<Door>, pool: &rayon::ThreadPool, slots: &SyncSender<Slot>) -> io::Result<()> {
    let mut input = io::stdin().lock();
    loop {
        let Some(line) = read_line(&mut input)? else { return Ok(()) };
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let (answer, slot) = mpsc::sync_channel(1);
        if slots.send(slot).is_err() {
            return Ok(());
        }
        let door = door.clone();
        pool.spawn(move || {
            let answered = answer_bytes_by(door.engine(), &line, |request| door.run(request));
            // Nobody listens when the writer is gone.
            let _ = answer.send(answered.to_json());
        });
    }
}

/// The next line, cut when it is longer than any request may be. `None` at the end.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if read as u64 == LINE_BYTES && line.last() != Some(&b'\n') {
        line = vec![b'?'];
        skip_line(input)?;
    }
    Ok(Some(line))
}

fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (used, done) = match buffer.iter().position(|&b| b == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(used);
        if done {
            return Ok(());
        }
    }
}

/// Writes answers in order, each as soon as it and those before it are there.
fn write_answers(queue: &Receiver<Slot>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    loop {
        let slot = match queue.try_recv() {
            Ok(slot) => slot,
            Err(TryRecvError::Disconnected) => return out.flush(),
            Err(TryRecvError::Empty) => {
                out.flush()?;
                match queue.recv() {
                    Ok(slot) => slot,
                    Err(_) => return Ok(()),
                }
            }
        };
        let answer = match slot.try_recv() {
            Ok(answer) => answer,
            Err(_) => {
                out.flush()?;
                // A worker that broke gives no answer; the line must not be missing.
                slot.recv().unwrap_or_else(|_| r#"{"schema":"ptc-lisp/1","verdict":"host_fault"}"#.to_owned())
            }
        };
        out.write_all(answer.as_bytes())?;
        out.write_all(b"\n")?;
    }
}
