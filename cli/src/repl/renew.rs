//! Commands that continue the session in a new one: with more tools, or with other limits.

use super::Talk;
use crate::exit::{Exit, Failure};
use crate::isolation::TurnRunner;
use crate::limits;
use lisp_runtime::internal::near_names;
use lisp_runtime::{BuildError, Input, Limits, LimitsRequest, Tool, Tools};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What can be undone: the turns of the session, then those of the sessions that it continues.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The sessions, oldest first.
    sessions: Vec<Past>,
    /// The turns of the current session that succeeded and are not undone, each by the beginning of its text.
    turns: Vec<String>,
    /// Whether sessions were dropped: there were too many, or one could not be continued.
    is_cut: bool,
}

/// A session that another one continues, or replaces.
#[derive(Debug)]
struct Past {
    session: TurnRunner,
    turns: Vec<String>,
    /// Set if a session was loaded in place of this one.
    replaced: Option<Replaced>,
}

/// What `:undo` of a `:load` needs besides the session.
#[derive(Debug)]
struct Replaced {
    /// The file that was loaded.
    by: String,
    /// The texts of the turns, and the number of those before them.
    texts: (u64, Vec<String>),
}

/// What an undo took back.
enum Undone {
    Form(String),
    Load(String),
    Nothing,
    /// It could not be done, which was reported.
    Failed,
}

impl Earlier {
    /// The sessions that are kept.
    const MAX: usize = 8;

    pub(super) fn new() -> Self {
        Earlier::default()
    }

    /// Counts a turn of the current session that succeeded.
    pub(super) fn count(&mut self, text: &str) {
        self.turns.push(beginning(text));
    }

    /// Keeps the current session, which another one continues, unless it has nothing to undo.
    fn keep(&mut self, session: TurnRunner) {
        let turns = std::mem::take(&mut self.turns);
        if !turns.is_empty() {
            self.push(Past { session, turns, replaced: None });
        }
    }

    fn push(&mut self, past: Past) {
        if self.sessions.len() == Earlier::MAX {
            self.sessions.remove(0);
            self.is_cut = true;
        }
        self.sessions.push(past);
    }
}

/// Returns the first line of a form, cut if it is long.
fn beginning(text: &str) -> String {
    const CHARS: usize = 60;
    let text = text.trim();
    let line = text.lines().next().unwrap_or_default().trim_end();
    let mut start: String = line.chars().take(CHARS).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

/// Returns the definitions in the text of a saved session.
fn definitions_of(saved: &str) -> &str {
    let definitions = saved.split_once('\n').map_or("", |(_, rest)| rest);
    match definitions.starts_with("history\n") {
        true => "",
        false => definitions.split_once("\nhistory\n").map_or("", |(definitions, _)| definitions),
    }
}

impl Talk<'_> {
    /// Adds a tool that returns the value of a form. The session continues.
    pub(super) fn mock(&mut self, argument: &str) -> Result<(), Failure> {
        let Some((name, form)) = argument.split_once(char::is_whitespace) else {
            self.refuse(":mock takes NAME FORM, and makes (tool/NAME {...}) return the value of FORM");
            return Ok(());
        };
        self.turn(form.trim().to_owned())?;
        let Some(last) = self.last.as_ref().filter(|last| last.is_success()) else { return Ok(()) };
        let Some(json) = last.json() else {
            self.refuse(&format!("cannot make tool/{name}: a tool returns JSON, and this value has no JSON form"));
            return Ok(());
        };
        let mut mocks = self.mocks.clone();
        mocks.insert(name.strip_prefix("tool/").unwrap_or(name).to_owned(), json.to_owned());
        let tools = match made(&mocks) {
            Ok(tools) => tools,
            Err(error) => {
                self.refuse(&format!("ptcl: {error}"));
                return Ok(());
            }
        };
        if self.renew(self.input.clone().tools(tools))? {
            self.mocks = mocks;
            tell_line!("added tool/{}", name.strip_prefix("tool/").unwrap_or(name));
        }
        Ok(())
    }

    /// Shows one limit, or changes limits of the session.
    pub(super) fn one_limit(&mut self, asked: &str) -> Result<(), Failure> {
        if !asked.contains('=') {
            return self.show_limit(asked);
        }
        let given: Vec<String> = asked.split([',', ' ']).filter(|limit| !limit.is_empty()).map(str::to_owned).collect();
        let given = match limits::asked(":limits", &given) {
            Ok(given) => given,
            Err(failure) => {
                tell_line!("ptcl: {failure}");
                self.exit = failure.exit();
                return Ok(());
            }
        };
        let limits = self.limits.with(&given);
        let of_session =
            self.input.clone().limits_over(&given).limits_over(&with_room_to_save(&limits, &self.defaults));
        if self.renew(of_session)? {
            let before = std::mem::replace(&mut self.limits, limits);
            tell!("{}", limits::changed(&given, &before, &self.limits));
        }
        Ok(())
    }

    fn show_limit(&mut self, name: &str) -> Result<(), Failure> {
        match limits::line(&self.limits, name) {
            Some(line) => super::show(&line)?,
            None => {
                let near = near_names(name, Limits::NAMES.iter().copied(), 1);
                let hint = near.first().map_or(":limits lists them".to_owned(), |near| format!("did you mean {near}?"));
                self.refuse(&format!("unknown limit {name}: {hint}"));
            }
        }
        Ok(())
    }

    /// Returns whether a saved session is within `session_bytes`, which counts as in [`lisp_runtime::Engine::load_session`], or
    /// reports that it is not.
    pub(super) fn is_small_enough(&mut self, text: &str) -> bool {
        /// Bytes of the text that the limit does not count.
        const REST: u64 = 1_000;
        let (bytes, max) = (text.len() as u64, self.limits.session_bytes);
        let fits = max == 0 || bytes <= max.saturating_mul(2).saturating_add(REST);
        if !fits {
            tell_line!(
                "the saved session has {bytes} bytes; the limit session_bytes is {max}, for the definitions and for the results of the last turns: raise it with :limits session_bytes={bytes}"
            );
            self.exit = Exit::Limit;
        }
        fits
    }

    /// Continues the session in a new one that has this input. Returns whether it does.
    pub(super) fn renew(&mut self, input: Input<'static>) -> Result<bool, Failure> {
        self.session.cancel_handle().reset();
        let saved = self.session.save();
        let Some(text) = self.reported(saved) else { return Ok(false) };
        let loaded = self.runner.load(&text, self.with_data(input.clone()))?;
        let Some(loaded) = self.reported(loaded) else { return Ok(false) };
        let before = std::mem::replace(self.session, loaded);
        self.earlier.keep(before);
        self.input = input;
        Ok(true)
    }

    /// Replaces the session by one that was loaded.
    pub(super) fn begin_loaded(&mut self, loaded: TurnRunner, file: &str) {
        let session = std::mem::replace(self.session, loaded);
        let turns = std::mem::take(&mut self.earlier.turns);
        let texts = (self.texts.before, std::mem::take(&mut self.texts.turns));
        self.earlier.push(Past { session, turns, replaced: Some(Replaced { by: file.to_owned(), texts }) });
        self.texts.before = self.session.turns();
    }

    /// Undoes the last form that changed a definition, also one of a session that this one continues, or the last `:load`.
    pub(super) fn undo(&mut self) -> Result<(), Failure> {
        self.session.cancel_handle().reset();
        let before = self.definitions();
        let mut skipped = 0_usize;
        loop {
            match self.undo_one()? {
                // A form that only showed something.
                Undone::Form(_) if before.is_some() && self.definitions() == before => {
                    skipped += 1;
                    continue;
                }
                Undone::Form(form) if skipped == 0 => tell_line!("undid {form}"),
                Undone::Form(form) if skipped == 1 => {
                    tell_line!("undid {form} and the form after it, which changed no definition");
                }
                Undone::Form(form) => {
                    tell_line!("undid {form} and the {skipped} forms after it, which changed no definition");
                }
                Undone::Load(file) => tell_line!("undid :load {file}"),
                Undone::Nothing if skipped > 0 => self.refuse("nothing to undo: no form changed a definition"),
                Undone::Nothing => self.refuse("nothing to undo"),
                Undone::Failed => {}
            }
            return Ok(());
        }
    }

    /// Returns the definitions as text; `None` if they cannot be saved.
    fn definitions(&mut self) -> Option<String> {
        self.session.save().ok().map(|saved| definitions_of(&saved).to_owned())
    }

    /// Undoes the last form or `:load`.
    fn undo_one(&mut self) -> Result<Undone, Failure> {
        if !self.earlier.turns.is_empty() {
            let undone = self.session.undo();
            return Ok(match self.reported(undone) {
                Some(()) => Undone::Form(self.earlier.turns.pop().unwrap_or_default()),
                None => Undone::Failed,
            });
        }
        match self.earlier.sessions.pop() {
            Some(past) => self.undo_earlier(past),
            None if self.earlier.is_cut => {
                let max = Earlier::MAX;
                tell_line!(
                    "there is no form to undo: at most {max} sessions before :limits, :mock, :data or :load are kept for that"
                );
                self.exit = Exit::Limit;
                Ok(Undone::Failed)
            }
            None => Ok(Undone::Nothing),
        }
    }

    /// Continues an earlier session in place of the current one: as it was before a `:load`, or without its last turn.
    fn undo_earlier(&mut self, mut past: Past) -> Result<Undone, Failure> {
        if past.replaced.is_none() {
            let undone = past.session.undo();
            if self.reported(undone).is_none() {
                self.earlier.sessions.push(past);
                return Ok(Undone::Failed);
            }
        }
        let saved = past.session.save();
        let loaded = match self.reported(saved) {
            Some(text) => self.runner.load(&text, self.input_with_data())?,
            None => Err(None),
        };
        let Some(loaded) = self.reported(loaded) else {
            // The next one would take back two forms.
            (self.earlier.sessions, self.earlier.is_cut) = (Vec::new(), true);
            return Ok(Undone::Failed);
        };
        *self.session = loaded;
        let undone = match past.replaced.take() {
            Some(Replaced { by, texts }) => {
                (self.texts.before, self.texts.turns) = texts;
                Undone::Load(by)
            }
            None => {
                self.texts.cut_to(self.session.turns());
                Undone::Form(past.turns.pop().unwrap_or_default())
            }
        };
        if !past.turns.is_empty() {
            self.earlier.sessions.push(past);
        }
        Ok(undone)
    }
}

/// Returns the `session_bytes` of a session with these limits: at least the default. A session is saved under its own limits when
/// it gets others; if they were too low, nothing could raise them. What `:save` and `:load` may take is checked there.
pub(super) fn with_room_to_save(limits: &Limits, defaults: &Limits) -> LimitsRequest {
    let bytes = match limits.session_bytes {
        0 => 0,
        bytes => bytes.max(defaults.session_bytes),
    };
    let mut room = LimitsRequest::default();
    room.session_bytes = Some(bytes);
    room
}

/// Creates tools that always return the same value.
fn made(mocks: &BTreeMap<String, String>) -> Result<Tools, BuildError> {
    let mut tools = Tools::new();
    for (name, json) in mocks {
        let value = RawValue::from_string(json.clone()).unwrap_or_default();
        tools.add(Tool::new(name, move |_| Ok(value.clone())))?;
    }
    Ok(tools)
}
