//! The process of an MCP server: how it is started, what it writes, and how it ended.

use super::lenient::lenient;
use crate::config::Secret;
use std::collections::VecDeque;
use std::io::Result;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// The last lines of a server's standard error that an error shows, and the most characters of each.
const LINES: usize = 5;
const LINE_CHARS: usize = 300;
/// The most bytes of a line that are kept.
const LINE_BYTES: usize = 4_096;
/// What stands between the server's output and its reader.
const PIPE: usize = 65_536;
/// How long the last lines of a process that has ended may take to come.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The process of a server. It is killed when this is dropped.
pub(super) struct Process {
    program: String,
    child: Child,
    said: Arc<Mutex<VecDeque<String>>>,
    listening: tokio::task::JoinHandle<()>,
}

/// What a server and its client say to each other.
pub(super) type Pipes = (DuplexStream, ChildStdin);

impl Process {
    /// Starts a server: with `PATH` and what the configuration says in its environment, and nothing else of the service's; in a
    /// process group of its own, so that a signal of the terminal ends the service first. What it writes on standard error goes to
    /// that of the service.
    pub(super) fn start(
        program: &str,
        arguments: &[String],
        env: &[(String, Secret)],
        most: usize,
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
        tokio::spawn(pass_on(output, far, most));
        let said = Arc::<Mutex<VecDeque<String>>>::default();
        let listening = tokio::spawn(listen(errors, said.clone()));
        Ok((Process { program: program.to_owned(), child, said, listening }, (near, input)))
    }

    /// Returns when the process has ended: how, and what it said last.
    pub(super) async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => self.end(status).await,
            Err(error) => format!("{} cannot be waited for: {error}", self.program),
        }
    }

    async fn end(&mut self, status: ExitStatus) -> String {
        // Another process may hold the pipe open.
        let _ = timeout(LAST_LINES, &mut self.listening).await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = said.iter().cloned().collect::<Vec<_>>().join("\n");
        let last = match lines.is_empty() {
            true => "it wrote nothing on standard error".to_owned(),
            false => format!("it wrote on standard error:\n{lines}"),
        };
        format!("{} ended ({status}); {last}", self.program)
    }

    /// Waits until it has ended, or kills it after a while.
    pub(super) async fn close(mut self, within: Duration) {
        let _ = timeout(within, self.child.wait()).await;
    }
}

/// Passes messages on, a line each, as far as they can be read; lines that are too long as they come.
async fn pass_on(from: impl AsyncRead + Unpin, mut to: DuplexStream, most: usize) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        let there = from.fill_buf().await?;
        if there.is_empty() {
            // Without its end the last line is no message.
            return to.write_all(&line).await;
        }
        let newline = there.iter().position(|byte| *byte == b'\n');
        let take = newline.map_or(there.len(), |at| at + 1);
        line.extend_from_slice(&there[..take]);
        from.consume(take);
        if newline.is_none() && line.len() <= most {
            continue;
        }
        match std::str::from_utf8(&line) {
            Ok(text) if newline.is_some() && line.len() <= most => {
                to.write_all(lenient(text.trim_end_matches(['\r', '\n'])).as_bytes()).await?;
                to.write_all(b"\n").await?;
            }
            _ => to.write_all(&line).await?,
        }
        line.clear();
    }
}

/// Passes lines on to the service's standard error, and keeps the last ones.
async fn listen(from: impl AsyncRead + Unpin, said: Arc<Mutex<VecDeque<String>>>) {
    let (mut from, mut own) = (BufReader::new(from), tokio::io::stderr());
    let mut line = Vec::new();
    while let Ok(there) = from.fill_buf().await {
        if there.is_empty() {
            break;
        }
        let newline = there.iter().position(|byte| *byte == b'\n');
        let take = newline.map_or(there.len(), |at| at + 1);
        let _ = own.write_all(&there[..take]).await;
        let room = LINE_BYTES.saturating_sub(line.len()).min(take);
        line.extend_from_slice(&there[..room]);
        from.consume(take);
        if newline.is_some() {
            keep(&said, &line);
            line.clear();
        }
    }
    keep(&said, &line);
}

fn keep(said: &Mutex<VecDeque<String>>, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let text: String = text.trim().chars().filter(|char| !char.is_control()).take(LINE_CHARS).collect();
    if text.is_empty() {
        return;
    }
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    if said.len() == LINES {
        said.pop_front();
    }
    said.push_back(text);
}
