//! Commands that continue the session in a new one: with more tools, or with other limits.

use super::Talk;
use crate::exit::{Exit, Failure};
use crate::isolation::TurnRunner;
use crate::limits;
use lisp_runtime::{BuildError, Input, Limits, LimitsRequest, Tool, Tools};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What can be undone: the turns of the session, then those of the sessions that it continues.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The sessions, oldest first, each with the number of its turns that can be undone.
    sessions: Vec<(TurnRunner, u64)>,
    /// The turns of the current session that succeeded and are not undone.
    turns: u64,
    /// Whether sessions were dropped: there were too many, or one could not be continued.
    is_cut: bool,
}

impl Earlier {
    /// The sessions that are kept.
    const MAX: usize = 8;

    pub(super) fn new() -> Self {
        Earlier::default()
    }

    /// Counts a turn of the current session that succeeded.
    pub(super) fn count(&mut self) {
        self.turns += 1;
    }

    /// Keeps the current session, which another one continues, unless it has nothing to undo.
    fn keep(&mut self, session: TurnRunner) {
        let turns = std::mem::take(&mut self.turns);
        if turns > 0 {
            if self.sessions.len() == Earlier::MAX {
                self.sessions.remove(0);
                self.is_cut = true;
            }
            self.sessions.push((session, turns));
        }
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

    /// Changes limits of the session.
    pub(super) fn set_limits(&mut self, asked: &str) -> Result<(), Failure> {
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
            self.limits = limits;
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
    fn renew(&mut self, input: Input<'static>) -> Result<bool, Failure> {
        self.session.cancel_handle().reset();
        let saved = self.session.save();
        let Some(text) = self.reported(saved) else { return Ok(false) };
        let loaded = self.runner.load(&text, input.clone())?;
        let Some(loaded) = self.reported(loaded) else { return Ok(false) };
        let before = std::mem::replace(self.session, loaded);
        self.earlier.keep(before);
        self.input = input;
        Ok(true)
    }

    /// Undoes the last form, also one of a session that this one continues.
    pub(super) fn undo(&mut self) -> Result<(), Failure> {
        self.session.cancel_handle().reset();
        let is_undone = match self.earlier.sessions.pop() {
            Some(before) if self.earlier.turns == 0 => self.undo_earlier(before)?,
            None if self.earlier.turns == 0 && self.earlier.is_cut => {
                let max = Earlier::MAX;
                tell_line!(
                    "there is no form to undo: at most {max} sessions before :limits or :mock are kept for that"
                );
                self.exit = Exit::Limit;
                false
            }
            // Its error too is that of the current session: not all of its turns can be undone.
            before => {
                self.earlier.sessions.extend(before);
                let undone = self.session.undo();
                let is_undone = self.reported(undone).is_some();
                self.earlier.turns -= u64::from(is_undone).min(self.earlier.turns);
                is_undone
            }
        };
        if is_undone {
            tell_line!("undid the last form");
        }
        Ok(())
    }

    /// Continues an earlier session in place of the current one, without its last turn. Returns whether it does.
    fn undo_earlier(&mut self, (mut before, turns): (TurnRunner, u64)) -> Result<bool, Failure> {
        let undone = before.undo();
        if self.reported(undone).is_none() {
            self.earlier.sessions.push((before, turns));
            return Ok(false);
        }
        let saved = before.save();
        let loaded = match self.reported(saved) {
            Some(text) => self.runner.load(&text, self.input.clone())?,
            None => Err(None),
        };
        let Some(loaded) = self.reported(loaded) else {
            // The next one would take back two forms.
            (self.earlier.sessions, self.earlier.is_cut) = (Vec::new(), true);
            return Ok(false);
        };
        if turns > 1 {
            self.earlier.sessions.push((before, turns - 1));
        }
        *self.session = loaded;
        self.texts.cut_to(self.session.turns());
        Ok(true)
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
