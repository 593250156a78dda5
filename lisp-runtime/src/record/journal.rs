//! The journal of a run under way: what was told to the program so far, and what an earlier life of the run was told.

use super::line::{CallState, Ended, Line, Told};
use crate::terms::place::Place;
use lisp_core::{Error, Reason};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::error::Error as StdError;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Takes the lines of a record as they are written, to keep them where they outlive the process.
pub trait Recorder: Send + Sync {
    /// Keeps a line, which ends in a newline. The call that the line announces is made after this returns.
    ///
    /// # Errors
    /// The line cannot be kept: the run ends with `host_fault`.
    fn append(&self, line: &str) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

impl<F: Fn(&str) -> Result<(), Box<dyn StdError + Send + Sync>> + Send + Sync> Recorder for F {
    fn append(&self, line: &str) -> Result<(), Box<dyn StdError + Send + Sync>> {
        self(line)
    }
}

/// The ceilings of a record, in bytes; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ceilings {
    /// Of the arguments or the result of one call.
    pub(crate) value: usize,
    /// Of all lines behind the first.
    pub(crate) lines: usize,
}

impl Default for Ceilings {
    fn default() -> Self {
        Ceilings { value: 1 << 20, lines: 8 << 20 }
    }
}

/// A call that is about to be made.
pub(crate) struct Asking<'a> {
    pub(crate) place: &'a Place,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
    /// Equal calls of the run have one result.
    pub(crate) cached: bool,
    /// It may be made twice: the tool only reads.
    pub(crate) repeatable: bool,
}

/// What the journal says of a call.
pub(crate) enum Begun {
    /// It is to be made.
    Make,
    /// It ended in an earlier life of the run.
    Ended(Ended),
    /// It may not be made.
    Refused(Error),
}

/// The journal of one run.
pub(crate) struct Journal {
    state: Mutex<State>,
    ceilings: Ceilings,
    recorder: Option<Arc<dyn Recorder>>,
}

#[derive(Default)]
struct State {
    /// The record as far as it is written; empty before the run begins.
    text: String,
    /// Bytes of the first line.
    header: usize,
    run_id: Arc<str>,
    calls: BTreeMap<Place, Recorded>,
    /// Calls that an earlier life brought, by tool and arguments: for cached tools, whose first caller may be another.
    by_key: HashMap<(String, String), Place>,
    clock: BTreeMap<Place, i64>,
    /// The last effect that an earlier life had, by worker.
    last: BTreeMap<Vec<(u32, u32)>, u32>,
    /// A run has begun with this journal.
    is_running: bool,
    /// The run is driven by hand: a call is asked for before it begins.
    by_hand: bool,
}

/// A call in the journal.
struct Recorded {
    tool: String,
    arguments: String,
    state: CallState,
    ended: Option<Ended>,
    /// This life of the run has come to it.
    met: bool,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("ceilings", &self.ceilings).finish_non_exhaustive()
    }
}

/// Why a line is none of a journal.
pub(crate) type BadLine = Cow<'static, str>;

impl Journal {
    pub(crate) fn new(ceilings: Ceilings, recorder: Option<Arc<dyn Recorder>>) -> Journal {
        Journal { state: Mutex::default(), ceilings, recorder }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what an earlier life of the run wrote: its text, of which `header` bytes are the first line, and what the lines
    /// behind it tell.
    ///
    /// # Errors
    /// The number of a line, from 2, that does not follow from those before it, and why.
    pub(crate) fn take_up<'a>(
        self,
        text: String,
        header: usize,
        run_id: &str,
        told: impl Iterator<Item = Told<'a>>,
    ) -> Result<Journal, (usize, BadLine)> {
        let mut state = State { text, header, run_id: run_id.into(), ..State::default() };
        for (line, told) in (2..).zip(told) {
            state.learn(told).map_err(|why| (line, why))?;
        }
        Ok(Journal { state: Mutex::new(state), ..self })
    }

    /// The run begins, and this is the first line of its record. A run that was taken up has it already.
    ///
    /// # Errors
    /// There was a run with this journal before.
    pub(crate) fn begin_run(
        &self,
        by_hand: bool,
        run_id: &Arc<str>,
        header: impl FnOnce(&str) -> String,
    ) -> Result<(), Error> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_running, true) {
            let error = Error::new(Reason::RuntimeError, "the recording is of another run");
            return Err(error.hint("make a recording for each run"));
        }
        state.by_hand = by_hand;
        if !state.text.is_empty() {
            return Ok(());
        }
        state.run_id = run_id.clone();
        let line = header(&state.run_id);
        self.keep(&line)?;
        state.header = line.len();
        state.text = line;
        Ok(())
    }

    /// The name that the run had in its earlier life, before it goes on.
    pub(crate) fn run_to_go_on(&self) -> Option<Arc<str>> {
        let state = self.state();
        (!state.is_running && !state.text.is_empty()).then(|| state.run_id.clone())
    }

    /// The name of the run; empty before it begins.
    pub(crate) fn run_id(&self) -> Arc<str> {
        self.state().run_id.clone()
    }

    /// The record as it stands.
    pub(crate) fn text(&self) -> String {
        self.state().text.clone()
    }

    /// A call is to be made: with it, unless an earlier life had it.
    pub(crate) fn begin(&self, asking: &Asking<'_>) -> Begun {
        let mut state = self.state();
        match state.meet(asking) {
            Ok(Some(ended)) => return Begun::Ended(ended),
            Ok(None) => {}
            Err(error) => return Begun::Refused(error),
        }
        let call = if state.by_hand { CallState::Asked } else { CallState::Begun };
        match self.announce(&mut state, asking, call) {
            Ok(()) => Begun::Make,
            Err(error) => Begun::Refused(error),
        }
    }

    fn announce(&self, state: &mut State, asking: &Asking<'_>, call: CallState) -> Result<(), Error> {
        let Asking { place, tool, arguments, .. } = *asking;
        self.check_value(&format!("the arguments of tool/{tool}"), arguments.len())?;
        let name = place.to_string();
        let known = state.calls.get(place).is_some_and(|known| known.state == call);
        if !known {
            let raw = serde_json::from_str(arguments).ok();
            self.append(
                state,
                &Line {
                    call: Some(name.into()),
                    tool: Some(tool.into()),
                    arguments: raw,
                    state: Some(call),
                    ..Line::default()
                },
            )?;
        }
        let recorded = Recorded {
            tool: tool.to_owned(),
            arguments: if known { arguments.to_owned() } else { String::new() },
            state: call,
            ended: None,
            met: true,
        };
        state.calls.insert(place.clone(), recorded);
        Ok(())
    }

    /// The host of a run that is driven by hand begins a call that was asked for.
    pub(crate) fn begin_asked(&self, place: &Place) -> Result<(), Error> {
        let mut state = self.state();
        match state.calls.get_mut(place) {
            Some(call) if call.state == CallState::Asked => call.state = CallState::Begun,
            _ => return Ok(()),
        }
        let line = Line { call: Some(place.to_string().into()), state: Some(CallState::Begun), ..Line::default() };
        self.append(&mut state, &line)
    }

    /// How a call ended that was made; `None` when it was not made after all.
    ///
    /// # Errors
    /// The record has no room for the result, or cannot be kept.
    pub(crate) fn end(&self, place: &Place, ended: Option<Ended>) -> Result<(), Error> {
        let mut state = self.state();
        let Some(call) = state.calls.get_mut(place).filter(|call| call.ended.is_none()) else { return Ok(()) };
        let name = Some(place.to_string().into());
        let line = match &ended {
            None => {
                call.state = CallState::Asked;
                Line { call: name, state: Some(CallState::Asked), ..Line::default() }
            }
            Some(Ended::Failed(failure)) => {
                (call.state, call.ended) = (CallState::Failed, ended.clone());
                Line { call: name, state: Some(CallState::Failed), error: Some(failure.clone()), ..Line::default() }
            }
            Some(Ended::Echo) => {
                (call.state, call.ended) = (CallState::Done, ended);
                Line { call: name, state: Some(CallState::Done), ..Line::default() }
            }
            Some(Ended::Json(json)) => {
                self.check_value(&format!("the result of tool/{}", call.tool), json.len())?;
                // What is no JSON is the tool's fault, and the program's error: it is the same each time.
                let Ok(raw) = serde_json::from_str(json) else {
                    call.state = CallState::Asked;
                    return self
                        .append(&mut state, &Line { call: name, state: Some(CallState::Asked), ..Line::default() });
                };
                // The result itself is with the program; the text of the record has it.
                (call.state, call.ended) = (CallState::Done, Some(Ended::Echo));
                Line { call: name, state: Some(CallState::Done), result: Some(raw), ..Line::default() }
            }
        };
        self.append(&mut state, &line)
    }

    /// The time that the program is told at this place: what an earlier life was told, or what the clock says.
    pub(crate) fn time(&self, place: &Place, read: impl FnOnce() -> i64) -> Result<i64, Error> {
        let mut state = self.state();
        if let Some(&ms) = state.clock.get(place) {
            return Ok(ms);
        }
        state.check_order(place, || "asks for the time".to_owned())?;
        // Time does not go back, whatever the clock says.
        let ms = read().max(state.clock.values().copied().max().unwrap_or(i64::MIN));
        let line = Line { clock: Some(place.to_string().into()), ms: Some(ms), ..Line::default() };
        self.append(&mut state, &line)?;
        state.clock.insert(place.clone(), ms);
        Ok(ms)
    }

    /// The program has ended by itself: it must have made all calls of its own that the record has.
    pub(crate) fn check_end(&self) -> Result<(), Error> {
        let state = self.state();
        let missed = state.calls.iter().find(|(place, call)| !call.met && place.way().is_empty());
        match missed {
            None => Ok(()),
            Some((place, call)) => {
                Err(diverged(place, &format!("tool/{} {}", call.tool, cut(&call.arguments)), "the end"))
            }
        }
    }

    /// Writes the answer of the run.
    pub(crate) fn answer(&self, json: &str) -> Result<(), Error> {
        let mut state = self.state();
        let raw = serde_json::from_str(json).ok();
        let line = Line { answer: raw, ..Line::default() }.text();
        self.keep(&line)?;
        state.text.push_str(&line);
        Ok(())
    }

    fn append(&self, state: &mut State, line: &Line<'_>) -> Result<(), Error> {
        let line = line.text();
        let bytes = (state.text.len() - state.header).saturating_add(line.len());
        if self.ceilings.lines > 0 && bytes > self.ceilings.lines {
            return Err(Error::new(
                Reason::RecordLimitExceeded,
                format!("the record of the run takes {bytes} bytes; it may take {}", self.ceilings.lines),
            )
            .hint("call tools for less data, or raise the limit with Recording::most_bytes")
            .detail("limit_bytes", self.ceilings.lines));
        }
        self.keep(&line)?;
        state.text.push_str(&line);
        Ok(())
    }

    fn keep(&self, line: &str) -> Result<(), Error> {
        let Some(recorder) = &self.recorder else { return Ok(()) };
        recorder
            .append(line)
            .map_err(|error| Error::new(Reason::HostFault, format!("the record of the run cannot be written: {error}")))
    }

    fn check_value(&self, what: &str, bytes: usize) -> Result<(), Error> {
        if self.ceilings.value == 0 || bytes <= self.ceilings.value {
            return Ok(());
        }
        Err(Error::new(
            Reason::RecordLimitExceeded,
            format!("{what} takes {bytes} bytes; a value in the record of the run may take {}", self.ceilings.value),
        )
        .hint("ask the tool for less at once, or raise the limit with Recording::most_value_bytes")
        .detail("limit_bytes", self.ceilings.value))
    }
}

impl State {
    /// Learns what a line of an earlier life tells.
    fn learn(&mut self, told: Told<'_>) -> Result<(), BadLine> {
        match told {
            Told::Call { place, tool, arguments, state } => {
                self.note(&place);
                let call = Recorded {
                    tool: tool.into_owned(),
                    arguments: arguments.to_owned(),
                    state,
                    ended: None,
                    met: false,
                };
                // A later life of the run makes a call again that did not end.
                match self.calls.get(&place) {
                    Some(known)
                        if known.ended.is_some() || known.tool != call.tool || known.arguments != call.arguments =>
                    {
                        return Err(format!("call {place} is there already").into());
                    }
                    _ => {}
                }
                self.by_key.entry((call.tool.clone(), call.arguments.clone())).or_insert_with(|| place.clone());
                self.calls.insert(place, call);
            }
            Told::State(place, state) => {
                let call = self.open_call(&place)?;
                call.state = state;
            }
            Told::Ends(place, ended) => {
                let call = self.open_call(&place)?;
                call.state = if matches!(ended, Ended::Failed(_)) { CallState::Failed } else { CallState::Done };
                call.ended = Some(ended);
                // Of equal calls of a cached tool the first that ended counts; in a later life another worker may have made it.
                let key = (call.tool.clone(), call.arguments.clone());
                if let Some(first) = self.by_key.get(&key)
                    && self.calls.get(first).is_none_or(|first| first.ended.is_none())
                {
                    self.by_key.insert(key, place);
                }
            }
            Told::Clock(place, ms) => {
                self.note(&place);
                if self.clock.insert(place.clone(), ms).is_some() {
                    return Err(format!("the time at {place} is there already").into());
                }
            }
            Told::Answer(_) => {}
        }
        Ok(())
    }

    fn open_call(&mut self, place: &Place) -> Result<&mut Recorded, BadLine> {
        match self.calls.get_mut(place) {
            Some(call) if call.ended.is_none() => Ok(call),
            Some(_) => Err(format!("call {place} has ended before").into()),
            None => Err(format!("call {place} has not begun").into()),
        }
    }

    fn note(&mut self, place: &Place) {
        let last = self.last.entry(place.way().to_vec()).or_default();
        *last = place.effect().max(*last);
    }

    /// Finds what an earlier life says of a call; `None` when it is to be made.
    fn meet(&mut self, asking: &Asking<'_>) -> Result<Option<Ended>, Error> {
        let Asking { place, tool, arguments, cached, repeatable } = *asking;
        let same = |call: &Recorded| call.tool == tool && call.arguments == arguments;
        let at = match self.calls.get(place) {
            // What one life began another may have made elsewhere.
            Some(call) if same(call) && (call.ended.is_some() || !cached) => Some(place.clone()),
            Some(_) | None if cached => self.by_key.get(&(tool.to_owned(), arguments.to_owned())).cloned(),
            Some(call) => {
                let expected = format!("tool/{} {}", call.tool, cut(&call.arguments));
                return Err(diverged(place, &expected, &format!("tool/{tool} {}", cut(arguments))));
            }
            None => None,
        };
        let Some(call) = at.as_ref().and_then(|at| self.calls.get_mut(at)) else {
            if !cached {
                self.check_order(place, || format!("calls tool/{tool} {}", cut(arguments)))?;
            }
            return Ok(None);
        };
        if call.met && !cached {
            return Err(diverged(place, "no second call of this name", &format!("tool/{tool}")));
        }
        call.met = true;
        match (&call.ended, call.state) {
            (Some(ended), _) => Ok(Some(ended.clone())),
            (None, CallState::Begun) if !repeatable => Err(Error::new(
                Reason::UnknownCall,
                format!(
                    "tool/{tool}: call {place} had begun when the run was broken off; whether it was made is not known"
                ),
            )
            .hint("find out, and tell it by Record::settle before the run goes on")
            .detail("call", &*place.to_string())),
            (None, _) => Ok(None),
        }
    }

    /// What comes before something that the record has is in the record, too.
    fn check_order(&self, place: &Place, does: impl FnOnce() -> String) -> Result<(), Error> {
        match self.last.get(place.way()) {
            Some(&last) if place.effect() <= last => Err(diverged(place, "something else", &format!("it {}", does()))),
            _ => Ok(()),
        }
    }
}

fn diverged(place: &Place, expected: &str, got: &str) -> Error {
    Error::new(
        Reason::ReplayDiverged,
        format!("the run goes another way than its record: at {place} the record has {expected}, now there is {got}"),
    )
    .hint("replay it with the program, the data and the tools that it was recorded with")
    .detail("call", &*place.to_string())
    .detail("expected", expected)
    .detail("got", got)
}

/// The beginning of a text.
fn cut(text: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}... ({} bytes)", &text[..end], text.len())),
    }
}
