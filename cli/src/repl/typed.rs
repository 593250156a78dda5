//! Where the forms come from: a terminal with a history, or a file or a pipe.

use super::commands;
use super::prompt::Prompt;
use crate::exit::Failure;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use std::io::{BufRead, ErrorKind};
use std::path::{Path, PathBuf};

/// Where they come from.
pub(super) enum Typed {
    AtTerminal {
        editor: Box<Editor<Prompt, FileHistory>>,
        history: Option<PathBuf>,
    },
    /// A file or a pipe; lines are counted for its errors.
    Piped {
        lines: u64,
    },
}

impl Typed {
    /// The terminal, with the lines of earlier times.
    pub(super) fn at_terminal(prompt: Prompt) -> Result<Typed, Failure> {
        let failed = |error: ReadlineError| Failure::Prompt(error.to_string());
        let config = Config::builder()
            .history_ignore_dups(true)
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor: Editor<Prompt, FileHistory> = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(prompt));
        let history = history_file();
        if let Some(path) = &history {
            // There is none the first time.
            let _ = editor.load_history(path);
        }
        Ok(Typed::AtTerminal { editor: Box::new(editor), history })
    }

    /// The next form, or several, as they were typed; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Typed::AtTerminal { editor, .. } => loop {
                match editor.readline("ptc> ") {
                    Ok(line) => {
                        // A history that cannot be kept is no reason to stop.
                        let _ = editor.add_history_entry(line.trim_end());
                        return Ok(Some(line));
                    }
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(ReadlineError::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                        tell_line!("ptcl: that is not UTF-8");
                    }
                    Err(error) => return Err(Failure::Prompt(error.to_string())),
                }
            },
            Typed::Piped { lines } => {
                let mut text = String::new();
                while let Some(line) = piped_line(lines)? {
                    text.push_str(&line);
                    if commands::is_whole(&text) {
                        return Ok(Some(text));
                    }
                }
                // What is not complete at the end gets its error.
                Ok((!text.trim().is_empty()).then_some(text))
            }
        }
    }

    /// What completes names, to be told of new ones.
    pub(super) fn prompt(&mut self) -> Option<&mut Prompt> {
        match self {
            Typed::AtTerminal { editor, .. } => editor.helper_mut(),
            Typed::Piped { .. } => None,
        }
    }

    /// Keeps the lines that were typed.
    pub(super) fn end(&mut self) {
        if let Typed::AtTerminal { editor, history: Some(path) } = self
            && let Err(error) = editor.save_history(path)
        {
            tell_line!("ptcl: {}: {error}", path.display());
        }
    }
}

/// The next line that is UTF-8; of another it says so and goes on.
fn piped_line(lines: &mut u64) -> Result<Option<String>, Failure> {
    loop {
        let mut line = Vec::new();
        if std::io::stdin().lock().read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        *lines = lines.saturating_add(1);
        match String::from_utf8(line) {
            Ok(line) => return Ok(Some(line)),
            Err(error) => tell_line!("ptcl: line {lines} of standard input is skipped: {error}"),
        }
    }
}

/// Where lines are kept: `ptcl/history` in the user's directory for state, which is made.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    let dir = state.join("ptcl");
    match make_private(&dir) {
        Ok(()) => Some(dir.join("history")),
        Err(error) => {
            tell_line!("ptcl: no history is kept: {}: {error}", dir.display());
            None
        }
    }
}

/// Makes a directory that nobody else reads.
fn make_private(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
