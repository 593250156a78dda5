//! Where input comes from: a terminal with a history, or a file or pipe.

use super::commands;
use super::lines::{Open, without_padding};
use super::prompt::{Prompt, Return};
use crate::exit::Failure;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor, EventHandler, KeyCode, KeyEvent, Modifiers};
use std::io::{BufRead, ErrorKind};
use std::path::{Path, PathBuf};

/// The source of the input.
pub(super) enum Typed {
    AtTerminal {
        editor: Box<Editor<Prompt, FileHistory>>,
        history: Option<PathBuf>,
    },
    /// A file or a pipe; lines are counted for error messages.
    Piped {
        lines: u64,
    },
}

impl Typed {
    /// A terminal, with the history of earlier sessions.
    pub(super) fn at_terminal(prompt: Prompt) -> Result<Typed, Failure> {
        let failed = |error: ReadlineError| Failure::Prompt(error.to_string());
        let config = Config::builder()
            .history_ignore_dups(true)
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            // The prompt of further lines is drawn like a colour. Whether there are colours is decided there.
            .color_mode(ColorMode::Forced)
            .build();
        let mut editor: Editor<Prompt, FileHistory> = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(prompt));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), EventHandler::Conditional(Box::new(Return)));
        let history = history_file();
        if let Some(path) = &history {
            // The file does not exist the first time.
            let _ = editor.load_history(path);
        }
        Ok(Typed::AtTerminal { editor: Box::new(editor), history })
    }

    /// Returns the next complete input, of one or more forms; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, Failure> {
        match self {
            Typed::AtTerminal { editor, .. } => loop {
                match editor.readline("ptc> ") {
                    Ok(line) => {
                        // Continue if the history cannot be kept.
                        let _ = editor.add_history_entry(line.trim_end());
                        return Ok(Some(without_padding(&line)));
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
                let mut open = Open::default();
                while let Some(line) = piped_line(lines)? {
                    // A text with an open bracket is not read again for each of its lines: there may be many.
                    let is_open = open.after(&line) && !text.is_empty();
                    text.push_str(&line);
                    if !is_open && commands::is_whole(&text) {
                        return Ok(Some(text));
                    }
                }
                // Incomplete input at the end is returned, to report its error.
                Ok((!text.trim().is_empty()).then_some(text))
            }
        }
    }

    /// The completer, to add new names.
    pub(super) fn prompt(&mut self) -> Option<&mut Prompt> {
        match self {
            Typed::AtTerminal { editor, .. } => editor.helper_mut(),
            Typed::Piped { .. } => None,
        }
    }

    /// Saves the history.
    pub(super) fn end(&mut self) {
        if let Typed::AtTerminal { editor, history: Some(path) } = self
            && let Err(error) = editor.save_history(path)
        {
            tell_line!("ptcl: {}: {error}", path.display());
        }
    }
}

/// Returns the next line that is valid UTF-8; reports and skips others.
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

/// The history file: `ptcl/history` in the user's state directory, which is created.
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

/// Creates a directory that only the user can read.
fn make_private(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
