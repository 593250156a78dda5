//! Commands that continue the session in a new one: with more tools, or with other limits.

use super::Talk;
use crate::exit::Failure;
use crate::isolation::TurnRunner;
use crate::limits;
use lisp_runtime::{BuildError, Input, Reason, Tool, Tools};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The sessions that a session continues, oldest first. Each can still undo its turns.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    sessions: Vec<TurnRunner>,
    /// The turns before the current session.
    turns: u64,
}

impl Earlier {
    /// The sessions that are kept.
    const MAX: usize = 8;

    pub(super) fn new() -> Self {
        Earlier::default()
    }

    /// Keeps a session that `next` continues, unless it has nothing to undo.
    fn keep(&mut self, session: TurnRunner, next: &TurnRunner) {
        if session.turns() > self.turns || self.sessions.is_empty() {
            if self.sessions.len() == Earlier::MAX {
                self.sessions.remove(0);
            }
            self.sessions.push(session);
        }
        self.turns = next.turns();
    }
}

impl Talk<'_> {
    /// Adds a tool that returns the value of a form. The session continues.
    pub(super) fn mock(&mut self, argument: &str) -> Result<(), Failure> {
        let Some((name, form)) = argument.split_once(char::is_whitespace) else {
            tell_line!(":mock takes NAME FORM, and makes (tool/NAME {{...}}) return the value of FORM");
            return Ok(());
        };
        self.turn(form.trim().to_owned())?;
        let Some(last) = self.last.as_ref().filter(|last| last.is_success()) else { return Ok(()) };
        let Some(json) = last.json() else {
            tell_line!("cannot make tool/{name}: a tool returns JSON, and this value has no JSON form");
            return Ok(());
        };
        let mut mocks = self.mocks.clone();
        mocks.insert(name.strip_prefix("tool/").unwrap_or(name).to_owned(), json.to_owned());
        let tools = match made(&mocks) {
            Ok(tools) => tools,
            Err(error) => {
                tell_line!("ptcl: {error}");
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
        if self.renew(self.input.clone().limits_over(&given))? {
            self.limits = self.limits.with(&given);
        }
        Ok(())
    }

    /// Continues the session in a new one that has this input. Returns whether it does.
    fn renew(&mut self, input: Input<'static>) -> Result<bool, Failure> {
        self.session.cancel_handle().reset();
        let saved = self.session.save();
        let Some(text) = self.reported(saved) else { return Ok(false) };
        let loaded = self.runner.load(&text, input.clone())?;
        let Some(loaded) = self.reported(loaded) else { return Ok(false) };
        let before = std::mem::replace(self.session, loaded);
        self.earlier.keep(before, self.session);
        self.input = input;
        Ok(true)
    }

    /// Undoes the last form, also one of a session that this one continues.
    pub(super) fn undo(&mut self) -> Result<(), Failure> {
        let mut undone = self.session.undo();
        while let Err(Some(problem)) = &undone
            && problem.reason() == Reason::SessionLimitExceeded
            && let Some(mut before) = self.earlier.sessions.pop()
        {
            if before.undo().is_err() {
                continue;
            }
            let saved = before.save();
            let Some(text) = self.reported(saved) else { return Ok(()) };
            let loaded = self.runner.load(&text, self.input.clone())?;
            let Some(loaded) = self.reported(loaded) else { return Ok(()) };
            *self.session = loaded;
            self.earlier.turns = self.session.turns();
            self.earlier.sessions.push(before);
            self.texts.cut_to(self.earlier.turns);
            undone = Ok(());
        }
        if self.reported(undone).is_some() {
            tell_line!("undid the last form");
        }
        Ok(())
    }
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
