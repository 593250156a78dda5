//! The journal of a run under way: what was told to the program so far, and what an earlier life of the run was told.

use super::line::{CallState, Ended, Gated, Line, Told};
use crate::terms::deadline::ReplayEnd;
use crate::terms::place::Place;
use lisp_core::{Error, Reason};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Takes the lines of a record as they are written, to keep them where they outlive the process. A closure that takes a `&str` and
/// returns a `Result` of this kind is one; it says the type of the line, `|line: &str|`.
///
/// ```
/// use lisp_runtime::{Engine, Input, Record, Recorder, Recording};
/// use std::error::Error;
/// use std::fs::{File, OpenOptions};
/// use std::io::Write;
///
/// /// Appends to a file. A line is on the disk before the call that it announces is made.
/// struct FileRecorder(File);
///
/// impl Recorder for FileRecorder {
///     fn append(&self, line: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
///         (&self.0).write_all(line.as_bytes())?;
///         Ok(self.0.sync_data()?)
///     }
/// }
///
/// let path = std::env::temp_dir().join(format!("recorder-{}.ptc", std::process::id()));
/// let file = OpenOptions::new().create(true).append(true).open(&path)?;
/// let recording = Recording::builder().recorder(FileRecorder(file)).build();
/// Engine::default().eval("(System/currentTimeMillis)", Input::new().record(&recording));
/// assert_eq!(Record::parse_bytes(std::fs::read(&path)?)?.text(), recording.text());
/// # std::fs::remove_file(&path)?;
///
/// let recording = Recording::builder().recorder(|line: &str| Ok(eprint!("{line}"))).build();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Recorder: Send + Sync {
    /// Keeps a line, which ends in a newline. The call that the line announces is made after this returns. It may not ask the
    /// [`Recording`](crate::Recording) that it is of, which waits for it.
    ///
    /// # Errors
    /// The line cannot be kept: the run ends with `host_fault`, as it does when the recorder panics.
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
    /// Of all calls.
    pub(crate) calls: usize,
}

impl Default for Ceilings {
    fn default() -> Self {
        Ceilings { value: 1 << 20, calls: 8 << 20 }
    }
}

/// A call that is about to be made.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) place: &'a Place,
    pub(crate) tool: &'a str,
    /// As the program has them.
    pub(crate) arguments: &'a str,
    /// As the tool gets them.
    pub(crate) given: &'a str,
    /// Equal calls of the run have one result.
    pub(crate) cached: bool,
    /// It may be made twice: the tool, as it is now, only reads.
    pub(crate) repeatable: bool,
    /// Somebody has to approve it first.
    pub(crate) asks: bool,
}

/// What an earlier life of the run says of a call.
pub(crate) enum Recalled {
    /// It ended so.
    Ended(Ended),
    /// It was not made: an equal call of a cached tool had this result.
    Equal(Ended),
    /// Nothing: it is to be made.
    Nothing,
    /// It may not be made.
    Refused(Error),
    /// It was not made, as a worker beside its own had failed.
    LeftOut(Error),
}

/// The journal of one run.
pub(crate) struct Journal {
    state: Mutex<State>,
    ceilings: Ceilings,
    recorder: Option<Arc<dyn Recorder>>,
    /// Tools of which the first line does not say that they only read.
    changing: BTreeSet<String>,
    /// Of a run that does again what an earlier life did.
    replay: Option<Arc<ReplayEnd>>,
}

#[derive(Default)]
struct State {
    /// The record as far as it is written; empty before the run begins.
    text: String,
    run_id: Arc<str>,
    calls: BTreeMap<Place, Recorded>,
    /// What the gate decided, where that is not told by the call itself.
    gates: BTreeMap<Place, RecordedGate>,
    /// Calls that an earlier life brought and that have not failed, by tool and arguments: for cached tools, whose first caller
    /// may be another. Of equal calls the first that has a result.
    by_key: HashMap<(String, String), Place>,
    clock: BTreeMap<Place, i64>,
    /// Calls, and looks at the clock, of an earlier life that this one has not come to.
    unmet: BTreeSet<Place>,
    /// The latest time that was told.
    latest_ms: Option<i64>,
    /// The last effect that an earlier life had, by worker.
    last: BTreeMap<Vec<(u32, u32)>, u32>,
    /// In an earlier life the program came to its end.
    is_over: bool,
    /// A line could not be kept: no other is.
    fault: Option<String>,
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
    /// This life of the run makes it.
    is_made: bool,
}

/// A decision of the gate in the journal.
struct RecordedGate {
    tool: String,
    arguments: String,
    gated: Gated,
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
        Journal { state: Mutex::default(), ceilings, recorder, changing: BTreeSet::new(), replay: None }
    }

    /// The journal of a run that goes on, of whose tools the first line does not say that these only read: a call of them that had
    /// begun is not made again, whatever is said of them now.
    pub(crate) fn with_changing(self, changing: BTreeSet<String>) -> Journal {
        Journal { changing, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what an earlier life of the run wrote: the first line, and the lines behind it with what they tell. An answer is
    /// left out of the text: that of one life is not that of the next.
    ///
    /// # Errors
    /// The number of a line, from 2, that tells nothing or does not follow from those before it, and why.
    pub(crate) fn take_up<'a>(
        self,
        header: &str,
        run_id: &str,
        lines: impl Iterator<Item = (&'a str, Result<Told<'a>, BadLine>)>,
    ) -> Result<Journal, (usize, BadLine)> {
        let mut state = State { text: header.to_owned(), run_id: run_id.into(), ..State::default() };
        for (number, (line, told)) in (2..).zip(lines) {
            let told = told.map_err(|why| (number, why))?;
            if !matches!(told, Told::Answer(_)) {
                state.text.push_str(line);
            }
            state.learn(told).map_err(|why| (number, why))?;
        }
        let replay = (!state.unmet.is_empty()).then(Arc::default);
        Ok(Journal { state: Mutex::new(state), replay, ..self })
    }

    /// The most bytes that all calls may take; 0 is no limit.
    pub(crate) fn most_bytes(&self) -> usize {
        self.ceilings.calls
    }

    /// Where this life has done again what an earlier one did; `None` when there is nothing of that.
    pub(crate) fn replay(&self) -> Option<Arc<ReplayEnd>> {
        self.replay.clone()
    }

    /// This life comes to something that an earlier one did, or to what none did.
    fn come_to(&self, state: &mut State, known: Option<&Place>) {
        let Some(replay) = &self.replay else { return };
        if let Some(known) = known {
            state.unmet.remove(known);
            // What workers did of parallel calls that are over, and is not done again, was given up.
            while let Some(given_up) = state.unmet.range(known.calls_before()).next().cloned() {
                state.unmet.remove(&given_up);
            }
        }
        if known.is_none() || state.unmet.is_empty() {
            replay.reach(Instant::now());
        }
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
        self.keep(&mut state, &line)?;
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

    /// What the gate decided on a call in an earlier life, and whether the call ended there.
    ///
    /// # Errors
    /// The earlier life made another call here.
    pub(crate) fn decided(&self, place: &Place, tool: &str, arguments: &str) -> Result<Option<(Gated, bool)>, Error> {
        let state = self.state();
        let call = state.calls.get(place);
        let ended = call.is_some_and(|call| call.ended.is_some());
        if let Some(gate) = state.gates.get(place) {
            if gate.tool != tool || gate.arguments != arguments {
                let expected = format!("tool/{} {}", gate.tool, cut(&gate.arguments));
                return Err(diverged(place, &expected, &format!("tool/{tool} {}", cut(arguments))));
            }
            return Ok(Some((gate.gated.clone(), ended)));
        }
        // A call that was made was allowed; one that is not to be made at all needs no decision. The next step says which it is.
        let settled = call.is_some() || !matches!(state.recall_nothing(place, tool, arguments), Recalled::Nothing);
        Ok(settled.then_some((Gated::Allow { given: None }, ended)))
    }

    /// The gate decides on a call; one that somebody is asked about waits in the journal from now on.
    ///
    /// # Errors
    /// The record has no room for it, or cannot be kept.
    pub(crate) fn decide(&self, place: &Place, tool: &str, arguments: &str, gated: Gated) -> Result<(), Error> {
        let mut state = self.state();
        self.check_value(&format!("the arguments of tool/{tool}"), arguments.len())?;
        if let Gated::Allow { given: Some(given) } = &gated {
            self.check_value(&format!("the arguments that the policy gives tool/{tool}"), given.len())?;
        }
        self.append(&mut state, &Line::of_gate(place, Some((tool, arguments)), &gated))?;
        if matches!(gated, Gated::Ask { .. }) {
            let line = Line {
                call: Some(place.to_string().into()),
                tool: Some(tool.into()),
                arguments: serde_json::from_str(arguments).ok(),
                state: Some(CallState::Asked),
                ..Line::default()
            };
            self.append(&mut state, &line)?;
            let call = Recorded {
                tool: tool.to_owned(),
                arguments: arguments.to_owned(),
                state: CallState::Asked,
                ended: None,
                met: false,
                is_made: false,
            };
            state.calls.insert(place.clone(), call);
        }
        let gate = RecordedGate { tool: tool.to_owned(), arguments: arguments.to_owned(), gated };
        state.gates.insert(place.clone(), gate);
        Ok(())
    }

    /// Somebody decided on a call that waits for that.
    ///
    /// # Errors
    /// The record has no room for it, or cannot be kept.
    pub(crate) fn settle_gate(&self, place: &Place, gated: Gated) -> Result<(), Error> {
        let mut state = self.state();
        if let Gated::Allow { given: Some(given) } = &gated {
            self.check_value("the arguments that a call was approved with", given.len())?;
        }
        self.append(&mut state, &Line::of_gate(place, None, &gated))?;
        if let Some(gate) = state.gates.get_mut(place) {
            gate.gated = gated;
        }
        Ok(())
    }

    /// What an earlier life of the run says of a call.
    pub(crate) fn recall(&self, asking: &Asking<'_>) -> Recalled {
        let repeatable = asking.repeatable && !self.changing.contains(asking.tool);
        let mut state = self.state();
        let (recalled, met) = state.recall(&Asking { repeatable, ..*asking });
        if met.is_some() {
            self.come_to(&mut state, met.as_ref());
        }
        recalled
    }

    /// A call is about to be made, of which [`Journal::recall`] said nothing.
    ///
    /// # Errors
    /// The record has no room for it, or cannot be kept: the call may not be made.
    pub(crate) fn announce(&self, asking: &Asking<'_>) -> Result<(), Error> {
        let mut state = self.state();
        let state = &mut *state;
        self.come_to(state, None);
        let Asking { place, tool, arguments, asks, .. } = *asking;
        let call = if state.by_hand || asks { CallState::Asked } else { CallState::Begun };
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
            is_made: true,
        };
        state.calls.insert(place.clone(), recorded);
        Ok(())
    }

    /// A call that was asked for is about to be made.
    pub(crate) fn begin_asked(&self, place: &Place) -> Result<(), Error> {
        let mut state = self.state();
        if state.calls.get(place).is_none_or(|call| call.state != CallState::Asked) {
            return Ok(());
        }
        let line = Line { call: Some(place.to_string().into()), state: Some(CallState::Begun), ..Line::default() };
        self.append(&mut state, &line)?;
        if let Some(call) = state.calls.get_mut(place) {
            call.state = CallState::Begun;
        }
        Ok(())
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

    /// The time that the program is told at this place: what an earlier life was told, or what the clock says; `None` when it
    /// says nothing.
    pub(crate) fn time(&self, place: &Place, read: impl FnOnce() -> Option<i64>) -> Result<Option<i64>, Error> {
        let mut state = self.state();
        if let Some(&ms) = state.clock.get(place) {
            self.come_to(&mut state, Some(place));
            return Ok(Some(ms));
        }
        state.check_order(place, || "asks for the time".to_owned())?;
        self.come_to(&mut state, None);
        let Some(ms) = read() else { return Ok(None) };
        // Time does not go back, whatever the clock says.
        let ms = state.latest_ms.map_or(ms, |latest| latest.max(ms));
        let line = Line { clock: Some(place.to_string().into()), ms: Some(ms), ..Line::default() };
        self.append(&mut state, &line)?;
        state.clock.insert(place.clone(), ms);
        state.latest_ms = Some(ms);
        Ok(Some(ms))
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
        if state.text.is_empty() {
            return Err(Error::new(Reason::RuntimeError, "the record has no run yet whose answer it could have"));
        }
        let raw = serde_json::from_str(json).ok();
        let line = Line { answer: raw, ..Line::default() }.text();
        self.keep(&mut state, &line)?;
        state.text.push_str(&line);
        Ok(())
    }

    fn append(&self, state: &mut State, line: &Line<'_>) -> Result<(), Error> {
        let line = line.text();
        self.keep(state, &line)?;
        state.text.push_str(&line);
        Ok(())
    }

    /// Has the recorder keep a line. A line that was not kept may stand there in part: no other may follow it.
    fn keep(&self, state: &mut State, line: &str) -> Result<(), Error> {
        let Some(recorder) = &self.recorder else { return Ok(()) };
        if state.fault.is_none() {
            let kept = catch_unwind(AssertUnwindSafe(|| recorder.append(line)));
            state.fault = match kept {
                Ok(kept) => kept.err().map(|error| error.to_string()),
                Err(_) => Some("the recorder panicked".to_owned()),
            };
        }
        match &state.fault {
            None => Ok(()),
            Some(fault) => {
                Err(Error::new(Reason::HostFault, format!("the record of the run cannot be written: {fault}")))
            }
        }
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
            Told::Gate { place, asked: Some((tool, arguments)), gated } => {
                self.note(&place);
                let (tool, arguments) = (tool.into_owned(), arguments.to_owned());
                if self.gates.insert(place.clone(), RecordedGate { tool, arguments, gated }).is_some() {
                    return Err(format!("the gate decided on call {place} before").into());
                }
            }
            Told::Gate { place, asked: None, gated } => match self.gates.get_mut(&place) {
                Some(gate) if matches!(gate.gated, Gated::Ask { .. }) => gate.gated = gated,
                _ => return Err(format!("no approval was requested for call {place}").into()),
            },
            Told::Call { place, tool, arguments, state } => {
                self.note(&place);
                self.unmet.insert(place.clone());
                let call = Recorded {
                    tool: tool.into_owned(),
                    arguments: arguments.to_owned(),
                    state,
                    ended: None,
                    met: false,
                    is_made: false,
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
                let key = self.key_of(&place, &call);
                self.by_key.entry(key).or_insert_with(|| place.clone());
                self.calls.insert(place, call);
            }
            Told::State(place, state) => {
                let call = self.open_call(&place)?;
                call.state = state;
            }
            Told::Ends(place, ended) => {
                let call = self.open_call(&place)?;
                let failed = matches!(ended, Ended::Failed(_));
                call.state = if failed { CallState::Failed } else { CallState::Done };
                call.ended = Some(ended);
                // In a later life another worker may have made the call.
                let Some(call) = self.calls.get(&place) else { return Ok(()) };
                let key = self.key_of(&place, call);
                match self.by_key.get(&key) {
                    Some(first) if *first == place && failed => drop(self.by_key.remove(&key)),
                    Some(first) if self.calls.get(first).is_some_and(|first| first.ended.is_some()) => {}
                    _ if failed => {}
                    _ => drop(self.by_key.insert(key, place)),
                }
            }
            Told::Clock(place, ms) => {
                self.note(&place);
                self.unmet.insert(place.clone());
                self.latest_ms = self.latest_ms.max(Some(ms));
                if self.clock.insert(place.clone(), ms).is_some() {
                    return Err(format!("the time at {place} is there already").into());
                }
            }
            Told::Answer(json) => self.is_over = is_end_of_program(json),
        }
        Ok(())
    }

    /// What the result of a call of a cached tool serves: calls for which the tool gets the same arguments.
    fn key_of(&self, place: &Place, call: &Recorded) -> (String, String) {
        let given = match self.gates.get(place).map(|gate| &gate.gated) {
            Some(Gated::Allow { given: Some(given) }) => given,
            _ => &call.arguments,
        };
        (call.tool.clone(), given.clone())
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

    /// What is said of a call, and the call of the earlier life that says it by its end.
    fn recall(&mut self, asking: &Asking<'_>) -> (Recalled, Option<Place>) {
        let Asking { place, tool, arguments, given, cached, .. } = *asking;
        if let Some(call) = self.calls.get_mut(place) {
            if call.tool != tool || call.arguments != arguments {
                let expected = format!("tool/{} {}", call.tool, cut(&call.arguments));
                let got = format!("tool/{tool} {}", cut(arguments));
                return (Recalled::Refused(diverged(place, &expected, &got)), None);
            }
            // A call of a cached tool that waited for an equal one asks again.
            if std::mem::replace(&mut call.met, true) && !cached {
                let got = format!("tool/{tool}");
                return (Recalled::Refused(diverged(place, "no second call of this name", &got)), None);
            }
            if let Some(ended) = &call.ended {
                return (Recalled::Ended(ended.clone()), Some(place.clone()));
            }
        }
        let equal = cached.then(|| self.by_key.get(&(tool.to_owned(), given.to_owned()))).flatten();
        // The result of a call that this life makes is in the cache, and a failure serves no other call.
        let serves = |call: &Recorded| !call.is_made && !matches!(call.ended, Some(Ended::Failed(_)));
        let equal = equal.filter(|equal| self.calls.get(equal).is_some_and(serves));
        if let Some((equal, ended)) = equal.and_then(|equal| Some((equal, self.calls.get(equal)?.ended.as_ref()?))) {
            return (Recalled::Equal(ended.clone()), Some(equal.clone()));
        }
        let own = self.calls.contains_key(place).then_some(place);
        if let Some(error) = own.or(equal).and_then(|open| self.unknown(open, asking)) {
            return (Recalled::Refused(error), None);
        }
        let recalled = match own {
            Some(_) => Recalled::Nothing,
            None => self.recall_nothing(place, tool, arguments),
        };
        (recalled, None)
    }

    /// Why a call cannot be made again that had begun: it may have been made.
    fn unknown(&self, open: &Place, asking: &Asking<'_>) -> Option<Error> {
        let call = self.calls.get(open)?;
        (call.state == CallState::Begun && !asking.repeatable).then(|| {
            Error::new(
                Reason::UnknownCall,
                format!(
                    "tool/{}: call {open} had started when the run was interrupted; whether it was made is unknown",
                    asking.tool
                ),
            )
            .hint("find out, and settle it with Record::settle before the run resumes")
            .detail("call", &*open.to_string())
        })
    }

    /// What is said of a call that the record does not have.
    fn recall_nothing(&self, place: &Place, tool: &str, arguments: &str) -> Recalled {
        let got = || format!("tool/{tool} {}", cut(arguments));
        // A decision of the gate comes before its call.
        if !self.gates.contains_key(place)
            && let Err(error) = self.check_order(place, || format!("calls {}", got()))
        {
            return Recalled::Refused(error);
        }
        // Workers of a parallel call that was over: one of them had failed, or they would be in the record.
        if place.is_behind(|way| self.last.get(way).copied()) || (self.is_over && !place.is_of_program()) {
            return Recalled::LeftOut(diverged(place, "nothing", &got()));
        }
        match self.is_over {
            true => Recalled::Refused(diverged(place, "the end", &got())),
            false => Recalled::Nothing,
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

/// Does an answer say that the program came to its end, and not that a limit or its host ended it?
fn is_end_of_program(answer: &str) -> bool {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        verdict: Cow<'a, str>,
        #[serde(borrow, default)]
        error: Option<Fault<'a>>,
    }
    #[derive(Deserialize)]
    struct Fault<'a> {
        #[serde(borrow)]
        reason: Cow<'a, str>,
        #[serde(borrow, default)]
        details: Details<'a>,
    }
    #[derive(Deserialize, Default)]
    struct Details<'a> {
        /// What ended a worker of the parallel call that failed.
        #[serde(borrow, default)]
        cause: Option<Cow<'a, str>>,
    }
    match serde_json::from_str(answer) {
        Ok(Answer { verdict, error: None }) => verdict == "ok",
        Ok(Answer { error: Some(Fault { reason, details }), .. }) => {
            let is_catchable = |reason: &str| Reason::from_name(reason).is_some_and(Reason::is_catchable);
            is_catchable(&reason) && details.cause.is_none_or(|cause| is_catchable(&cause))
        }
        Err(_) => false,
    }
}

/// The beginning of a text.
fn cut(text: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}... ({} bytes)", &text[..end], text.len())),
    }
}
