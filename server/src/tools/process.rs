//! The process of an MCP server: starting it, its output, and how it ended.

use super::lenient::{readable, too_long};
use crate::config::{Scrubber, Secret};
use std::collections::VecDeque;
use std::io::Result;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// The number of last lines of standard error that an error shows, and the maximum characters of each.
const LINES: usize = 5;
const LINE_CHARS: usize = 300;
/// The maximum bytes of a line of standard error that are passed on.
const LINE_BYTES: usize = 65_536;
/// The number of last bytes of an overlong line that are searched for its ID.
const END_BYTES: usize = 256;
/// The size of the pipe between the server's output and its reader.
const PIPE: usize = 65_536;
/// How long to wait for the last lines of a process that has ended.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The process of a server, killed when this is dropped.
pub(super) struct Process {
    program: String,
    child: Child,
    last_lines: Arc<Mutex<VecDeque<String>>>,
    /// Collects the last lines; `None` once they have been waited for.
    log_reader: Option<tokio::task::JoinHandle<()>>,
}

/// The server's output and input.
pub(super) type Pipes = (DuplexStream, ChildStdin);

impl Process {
    /// Starts a server in a process group of its own, so that a terminal signal ends the service first. Its environment
    /// has `PATH` and the configured variables only. Its standard error goes to that of the service, without secrets.
    pub(super) fn start(
        program: &str,
        arguments: &[String],
        env: &[(String, Secret)],
        secrets: &Scrubber,
        max: usize,
    ) -> Result<(Self, Pipes)> {
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(env.iter().map(|(name, value)| (name, value.expose())));
        #[cfg(unix)]
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let missing = || std::io::Error::other("it has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let (near, far) = duplex(PIPE);
        tokio::spawn(pass_on(output, far, max));
        let last_lines = Arc::<Mutex<VecDeque<String>>>::default();
        let log_reader = Some(tokio::spawn(read_log(errors, last_lines.clone(), secrets.clone())));
        Ok((Process { program: program.to_owned(), child, last_lines, log_reader }, (near, input)))
    }

    /// Waits until the process has ended, and returns how. May be called again.
    pub(super) async fn status(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("{} ended ({status})", self.program),
            Err(error) => format!("{} cannot be waited for: {error}", self.program),
        }
    }

    /// Waits until the process has ended, and returns how, with its last lines. The lines may be about the calls of any
    /// tenant: they are for the operator, not for programs.
    pub(super) async fn ended(&mut self) -> String {
        let status = self.status().await;
        // Another process may hold the pipe open.
        if let Some(log_reader) = self.log_reader.take() {
            let _ = timeout(LAST_LINES, log_reader).await;
        }
        let last_lines = self.last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = last_lines.iter().cloned().collect::<Vec<_>>().join("\n");
        let last = match lines.is_empty() {
            true => "it wrote nothing on standard error".to_owned(),
            false => format!("it wrote on standard error:\n{lines}"),
        };
        format!("{status}; {last}")
    }

    /// Waits until the process has ended, and kills it after this time.
    pub(super) async fn close(mut self, within: Duration) {
        let _ = timeout(within, self.child.wait()).await;
    }
}

/// Passes messages on, one per line, repaired where needed. A line that is too long is not kept whole.
async fn pass_on(from: impl AsyncRead + Unpin, mut to: DuplexStream, max: usize) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Line::default();
    loop {
        let there = from.fill_buf().await?;
        if there.is_empty() {
            // A last line without a newline is not a message.
            return to.write_all(&line.kept).await;
        }
        let newline = there.iter().position(|byte| *byte == b'\n');
        let take = newline.map_or(there.len(), |at| at + 1);
        line.add(&there[..newline.unwrap_or(take)], max);
        from.consume(take);
        if newline.is_some() {
            to.write_all(&line.passed_on(max)).await?;
            line = Line::default();
        }
    }
}

/// A line being read; keeps at most the bytes that a message may have.
#[derive(Default)]
struct Line {
    kept: Vec<u8>,
    /// The last bytes of a line that is too long.
    end: Vec<u8>,
}

impl Line {
    fn add(&mut self, bytes: &[u8], max: usize) {
        let room = max.saturating_sub(self.kept.len()).min(bytes.len());
        let (kept, more) = bytes.split_at(room);
        self.kept.extend_from_slice(kept);
        self.end.extend_from_slice(&more[more.len().saturating_sub(END_BYTES)..]);
        self.end.drain(..self.end.len().saturating_sub(END_BYTES));
    }

    /// Returns the line for the reader. An answer that cannot be read becomes an error message.
    fn passed_on(&self, max: usize) -> Vec<u8> {
        let text = String::from_utf8_lossy(&self.kept);
        let text = match self.end.is_empty() {
            true => readable(text.trim_end_matches('\r')),
            false => too_long(&text, &String::from_utf8_lossy(&self.end), max).unwrap_or_default().into(),
        };
        format!("{text}\n").into_bytes()
    }
}

/// Passes lines on to the service's standard error and keeps the last ones, without secrets.
async fn read_log(from: impl AsyncRead + Unpin, last_lines: Arc<Mutex<VecDeque<String>>>, secrets: Scrubber) {
    let (mut from, mut own) = (BufReader::new(from), tokio::io::stderr());
    let mut line = Line::default();
    while let Ok(there) = from.fill_buf().await {
        if there.is_empty() {
            break;
        }
        let newline = there.iter().position(|byte| *byte == b'\n');
        let take = newline.map_or(there.len(), |at| at + 1);
        line.add(&there[..newline.unwrap_or(take)], LINE_BYTES);
        from.consume(take);
        if newline.is_some() {
            let _ = own.write_all(&log_line(&last_lines, &line, &secrets)).await;
            line = Line::default();
        }
    }
    if !line.kept.is_empty() {
        let _ = own.write_all(&log_line(&last_lines, &line, &secrets)).await;
    }
}

/// Keeps a line, and returns it as passed on.
fn log_line(last_lines: &Mutex<VecDeque<String>>, line: &Line, secrets: &Scrubber) -> Vec<u8> {
    let text = String::from_utf8_lossy(&line.kept);
    let (text, end) = match line.end.is_empty() {
        true => (secrets.scrub(&text), ""),
        false => (secrets.scrub_cut(&text), "... (cut)"),
    };
    keep_last(last_lines, &text);
    format!("{text}{end}\n").into_bytes()
}

fn keep_last(last_lines: &Mutex<VecDeque<String>>, line: &str) {
    let text: String = line.trim().chars().filter(|char| !char.is_control()).take(LINE_CHARS).collect();
    if text.is_empty() {
        return;
    }
    let mut last_lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
    if last_lines.len() == LINES {
        last_lines.pop_front();
    }
    last_lines.push_back(text);
}
