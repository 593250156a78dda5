//! The journal of a run in progress: what its program has received so far, now and in earlier attempts.

use super::line::{CallState, Ended, Gated, Line, RecordEntry};
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

/// Stores the lines of a record as they are written, so that they outlive the process.
///
/// A closure is a recorder if it takes a `&str` and returns such a `Result`; it must name the type: `|line: &str|`.
///
/// ```
/// use lisp_runtime::{Engine, Input, Record, Recording};
/// use lisp_runtime::record::Recorder;
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
    /// Stores a line, which ends in a newline. The call that the line announces is made after this returns.
    ///
    /// It must not use the [`Recording`](crate::Recording) that it belongs to: the recording is locked meanwhile.
    ///
    /// # Errors
    /// The line cannot be stored. The run ends with `host_fault`, as it does if the recorder panics.
    fn append(&self, line: &str) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

impl<F: Fn(&str) -> Result<(), Box<dyn StdError + Send + Sync>> + Send + Sync> Recorder for F {
    fn append(&self, line: &str) -> Result<(), Box<dyn StdError + Send + Sync>> {
        self(line)
    }
}

/// The maximum sizes of a record, in bytes; 0 is no limit.
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
    /// The arguments that the program passed.
    pub(crate) arguments: &'a str,
    /// The arguments for the tool.
    pub(crate) given: &'a str,
    /// Whether equal calls of the run share one result.
    pub(crate) cached: bool,
    /// Whether the call may be repeated: the tool, as it is now, only reads.
    pub(crate) repeatable: bool,
    /// Whether the call needs approval first.
    pub(crate) asks: bool,
}

/// What earlier attempts of the run say about a call.
pub(crate) enum Recalled {
    /// It ended like this.
    Ended(Ended),
    /// It was not made: an equal call of a cached tool had this result.
    Equal(Ended),
    /// Nothing: it is to be made.
    Nothing,
    /// It may not be made.
    Refused(Error),
    /// It was not made, because another worker had failed.
    LeftOut(Error),
}

/// The journal of one run.
pub(crate) struct Journal {
    state: Mutex<State>,
    ceilings: Ceilings,
    recorder: Option<Arc<dyn Recorder>>,
    /// Tools that the first line does not declare as reading.
    changing: BTreeSet<String>,
    /// Present for a run that replays earlier attempts.
    replay: Option<Arc<ReplayEnd>>,
}

#[derive(Default)]
struct State {
    /// The record as written so far; empty before the run starts.
    text: String,
    run_id: Arc<str>,
    calls: BTreeMap<Place, Recorded>,
    /// Decisions of the gate that the calls themselves do not show.
    gates: BTreeMap<Place, RecordedGate>,
    /// Calls of earlier attempts that have not failed, by tool and arguments. This is for cached tools, where another
    /// call may come first in this attempt. Of equal calls, the first that has a result.
    by_key: HashMap<(String, String), Place>,
    clock: BTreeMap<Place, i64>,
    /// Calls and clock readings of earlier attempts that this one has not reached.
    unmet: BTreeSet<Place>,
    /// The latest time that was returned.
    latest_ms: Option<i64>,
    /// The last effect in an earlier attempt, by worker.
    last: BTreeMap<Vec<(u32, u32)>, u32>,
    /// Whether the program reached its end in an earlier attempt.
    is_over: bool,
    /// A line could not be stored; no other line is written.
    fault: Option<String>,
    /// Whether a run has started with this journal.
    is_running: bool,
    /// Whether the run is driven step by step: a call is asked for before it starts.
    step_by_step: bool,
}

/// A call in the journal.
struct Recorded {
    tool: String,
    arguments: String,
    state: CallState,
    ended: Option<Ended>,
    /// Whether this attempt has reached it.
    met: bool,
    /// Whether this attempt makes it.
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

/// Why a line is not valid in a journal.
pub(crate) type BadLine = Cow<'static, str>;

impl Journal {
    pub(crate) fn new(ceilings: Ceilings, recorder: Option<Arc<dyn Recorder>>) -> Journal {
        Journal { state: Mutex::default(), ceilings, recorder, changing: BTreeSet::new(), replay: None }
    }

    /// Returns the journal of a resumed run with the tools that the first line does not declare as reading. Their calls
    /// that had started are not repeated, whatever the tools declare now.
    pub(crate) fn with_changing(self, changing: BTreeSet<String>) -> Journal {
        Journal { changing, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what earlier attempts of the run wrote: the first line, and the parsed lines after it. An answer is
    /// left out of the text: each attempt has its own.
    ///
    /// # Errors
    /// The number of a line, from 2, that is not valid or does not follow from the lines before it, and why.
    pub(crate) fn take_up<'a>(
        self,
        header: &str,
        run_id: &str,
        lines: impl Iterator<Item = (&'a str, Result<RecordEntry<'a>, BadLine>)>,
    ) -> Result<Journal, (usize, BadLine)> {
        let mut state = State { text: header.to_owned(), run_id: run_id.into(), ..State::default() };
        for (number, (line, entry)) in (2..).zip(lines) {
            let entry = entry.map_err(|why| (number, why))?;
            if !matches!(entry, RecordEntry::Answer(_)) {
                state.text.push_str(line);
            }
            state.apply(entry).map_err(|why| (number, why))?;
        }
        let replay = (!state.unmet.is_empty()).then(Arc::default);
        Ok(Journal { state: Mutex::new(state), replay, ..self })
    }

    /// Returns the maximum bytes of all calls; 0 is no limit.
    pub(crate) fn max_bytes(&self) -> usize {
        self.ceilings.calls
    }

    /// Returns the end of the replay; `None` if there is nothing to replay.
    pub(crate) fn replay(&self) -> Option<Arc<ReplayEnd>> {
        self.replay.clone()
    }

    /// Notes that this attempt has reached an effect: one of an earlier attempt, or a new one.
    fn come_to(&self, state: &mut State, known: Option<&Place>) {
        let Some(replay) = &self.replay else { return };
        if let Some(known) = known {
            state.unmet.remove(known);
            // What workers of ended parallel calls did, and what is not replayed, was discarded.
            while let Some(given_up) = state.unmet.range(known.calls_before()).next().cloned() {
                state.unmet.remove(&given_up);
            }
        }
        if known.is_none() || state.unmet.is_empty() {
            replay.reach(Instant::now());
        }
    }

    /// Starts the run with the first line of its record. If earlier attempts were taken over, the record has that line.
    ///
    /// # Errors
    /// A run with this journal has started before.
    pub(crate) fn begin_run(
        &self,
        step_by_step: bool,
        run_id: &Arc<str>,
        header: impl FnOnce(&str) -> String,
    ) -> Result<(), Error> {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_running, true) {
            let error = Error::new(Reason::RuntimeError, "the recording is of another run");
            return Err(error.hint("make a recording for each run"));
        }
        state.step_by_step = step_by_step;
        if !state.text.is_empty() {
            return Ok(());
        }
        state.run_id = run_id.clone();
        let line = header(&state.run_id);
        self.keep(&mut state, &line)?;
        state.text = line;
        Ok(())
    }

    /// Returns the id of the run in its earlier attempts, before it is resumed.
    pub(crate) fn run_to_go_on(&self) -> Option<Arc<str>> {
        let state = self.state();
        (!state.is_running && !state.text.is_empty()).then(|| state.run_id.clone())
    }

    /// Returns the id of the run; empty before it starts.
    pub(crate) fn run_id(&self) -> Arc<str> {
        self.state().run_id.clone()
    }

    /// Returns the current record.
    pub(crate) fn text(&self) -> String {
        self.state().text.clone()
    }

    /// Returns the gate's decision on a call in an earlier attempt, and whether the call ended there.
    ///
    /// # Errors
    /// The earlier attempt made another call here.
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
        // A call that was made was allowed. One that is not made at all needs no decision; the next step finds that
        // out.
        let settled = call.is_some() || !matches!(state.recall_nothing(place, tool, arguments), Recalled::Nothing);
        Ok(settled.then_some((Gated::Allow { given: None }, ended)))
    }

    /// Notes the gate's decision on a call. A call that needs approval waits in the journal from now on.
    ///
    /// # Errors
    /// The record has no room for it, or it cannot be stored.
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

    /// Notes the decision on a call that waited for approval.
    ///
    /// # Errors
    /// The record has no room for it, or it cannot be stored.
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

    /// Returns what earlier attempts of the run say about a call.
    pub(crate) fn recall(&self, asking: &Asking<'_>) -> Recalled {
        let repeatable = asking.repeatable && !self.changing.contains(asking.tool);
        let mut state = self.state();
        let (recalled, met) = state.recall(&Asking { repeatable, ..*asking });
        if met.is_some() {
            self.come_to(&mut state, met.as_ref());
        }
        recalled
    }

    /// Announces a call for which [`Journal::recall`] returned nothing.
    ///
    /// # Errors
    /// The record has no room for it, or it cannot be stored: the call may not be made.
    pub(crate) fn announce(&self, asking: &Asking<'_>) -> Result<(), Error> {
        let mut state = self.state();
        let state = &mut *state;
        self.come_to(state, None);
        let Asking { place, tool, arguments, asks, .. } = *asking;
        let call = if state.step_by_step || asks { CallState::Asked } else { CallState::Started };
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

    /// Notes that a call that was asked for starts.
    pub(crate) fn begin_asked(&self, place: &Place) -> Result<(), Error> {
        let mut state = self.state();
        if state.calls.get(place).is_none_or(|call| call.state != CallState::Asked) {
            return Ok(());
        }
        let line = Line { call: Some(place.to_string().into()), state: Some(CallState::Started), ..Line::default() };
        self.append(&mut state, &line)?;
        if let Some(call) = state.calls.get_mut(place) {
            call.state = CallState::Started;
        }
        Ok(())
    }

    /// Returns whether this attempt makes a call of one of these tools that has started and has not ended.
    pub(crate) fn has_open_call(&self, is_of: impl Fn(&str) -> bool) -> bool {
        let is_open = |call: &Recorded| call.is_made && call.state == CallState::Started && call.ended.is_none();
        self.state().calls.values().any(|call| is_open(call) && is_of(&call.tool))
    }

    /// Notes how a call ended; `None` if it was not made after all.
    ///
    /// # Errors
    /// The record has no room for the result, or it cannot be stored.
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
                // Invalid JSON is an error of the tool that the program sees; it is the same in each replay.
                let Ok(raw) = serde_json::from_str(json) else {
                    call.state = CallState::Asked;
                    return self
                        .append(&mut state, &Line { call: name, state: Some(CallState::Asked), ..Line::default() });
                };
                // The program has the result itself; the text of the record has it too.
                (call.state, call.ended) = (CallState::Done, Some(Ended::Echo));
                Line { call: name, state: Some(CallState::Done), result: Some(raw), ..Line::default() }
            }
        };
        self.append(&mut state, &line)
    }

    /// Returns the time for an effect: the recorded time, or else what the clock returns; `None` if the clock fails.
    pub(crate) fn time(&self, place: &Place, read: impl FnOnce() -> Option<i64>) -> Result<Option<i64>, Error> {
        let mut state = self.state();
        if let Some(&ms) = state.clock.get(place) {
            self.come_to(&mut state, Some(place));
            return Ok(Some(ms));
        }
        state.check_order(place, || "asks for the time".to_owned())?;
        self.come_to(&mut state, None);
        let Some(ms) = read() else { return Ok(None) };
        // Time does not go back, whatever the clock returns.
        let ms = state.latest_ms.map_or(ms, |latest| latest.max(ms));
        let line = Line { clock: Some(place.to_string().into()), ms: Some(ms), ..Line::default() };
        self.append(&mut state, &line)?;
        state.clock.insert(place.clone(), ms);
        state.latest_ms = Some(ms);
        Ok(Some(ms))
    }

    /// Checks, when the program has ended by itself, that it has made all of its own calls in the record.
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
            return Err(Error::new(
                Reason::RuntimeError,
                "the record has no run yet; start the run before you add its answer",
            ));
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

    /// Passes a line to the recorder. After an error, part of the line may be stored, so no other line may follow.
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
        .hint("ask the tool for less at once, or raise the limit with RecordingBuilder::max_value_bytes")
        .detail("limit_bytes", self.ceilings.value))
    }
}

impl State {
    /// Adds what a line of an earlier attempt says.
    fn apply(&mut self, entry: RecordEntry<'_>) -> Result<(), BadLine> {
        match entry {
            RecordEntry::Gate { place, asked: Some((tool, arguments)), gated } => {
                self.note(&place);
                let (tool, arguments) = (tool.into_owned(), arguments.to_owned());
                if self.gates.insert(place.clone(), RecordedGate { tool, arguments, gated }).is_some() {
                    return Err(format!("the gate decided on call {place} before").into());
                }
            }
            RecordEntry::Gate { place, asked: None, gated } => match self.gates.get_mut(&place) {
                Some(gate) if matches!(gate.gated, Gated::Ask { .. }) => gate.gated = gated,
                _ => return Err(format!("no approval was requested for call {place}").into()),
            },
            RecordEntry::Call { place, tool, arguments, state } => {
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
                // A later attempt repeats a call that did not end.
                match self.calls.get(&place) {
                    Some(known)
                        if known.ended.is_some() || known.tool != call.tool || known.arguments != call.arguments =>
                    {
                        return Err(format!("call {place} occurs twice").into());
                    }
                    _ => {}
                }
                let key = self.key_of(&place, &call);
                self.by_key.entry(key).or_insert_with(|| place.clone());
                self.calls.insert(place, call);
            }
            RecordEntry::State(place, state) => {
                let call = self.open_call(&place)?;
                call.state = state;
            }
            RecordEntry::Ends(place, ended) => {
                let call = self.open_call(&place)?;
                let failed = matches!(ended, Ended::Failed(_));
                call.state = if failed { CallState::Failed } else { CallState::Done };
                call.ended = Some(ended);
                // In a later attempt another worker may have made the call.
                let Some(call) = self.calls.get(&place) else { return Ok(()) };
                let key = self.key_of(&place, call);
                match self.by_key.get(&key) {
                    Some(first) if *first == place && failed => drop(self.by_key.remove(&key)),
                    Some(first) if self.calls.get(first).is_some_and(|first| first.ended.is_some()) => {}
                    _ if failed => {}
                    _ => drop(self.by_key.insert(key, place)),
                }
            }
            RecordEntry::Clock(place, ms) => {
                self.note(&place);
                self.unmet.insert(place.clone());
                self.latest_ms = self.latest_ms.max(Some(ms));
                if self.clock.insert(place.clone(), ms).is_some() {
                    return Err(format!("the time at {place} occurs twice").into());
                }
            }
            RecordEntry::Answer(json) => self.is_over = is_end_of_program(json),
        }
        Ok(())
    }

    /// Returns the key under which the result of a cached tool is shared: calls with the same arguments for the tool.
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
            None => Err(format!("call {place} has not started").into()),
        }
    }

    fn note(&mut self, place: &Place) {
        let last = self.last.entry(place.way().to_vec()).or_default();
        *last = place.effect().max(*last);
    }

    /// Returns what the record says about a call, and the earlier call whose end says it.
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
        // Results of calls that this attempt makes are in the cache, and a failure does not serve other calls.
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

    /// Returns why a call that had started cannot be repeated: it may have been made.
    fn unknown(&self, open: &Place, asking: &Asking<'_>) -> Option<Error> {
        let call = self.calls.get(open)?;
        (call.state == CallState::Started && !asking.repeatable).then(|| {
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

    /// Returns what follows for a call that the record does not have.
    fn recall_nothing(&self, place: &Place, tool: &str, arguments: &str) -> Recalled {
        let got = || format!("tool/{tool} {}", cut(arguments));
        // A decision of the gate comes before its call.
        if !self.gates.contains_key(place)
            && let Err(error) = self.check_order(place, || format!("calls {}", got()))
        {
            return Recalled::Refused(error);
        }
        // It is of a parallel call that had ended: one of its workers had failed, or the call would be in the record.
        if place.is_behind(|way| self.last.get(way).copied()) || (self.is_over && !place.is_of_program()) {
            return Recalled::LeftOut(diverged(place, "nothing", &got()));
        }
        match self.is_over {
            true => Recalled::Refused(diverged(place, "the end", &got())),
            false => Recalled::Nothing,
        }
    }

    /// Checks that the record has everything that comes before something that it has.
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
        format!("the run differs from its record: at {place} the record has {expected}, and the run has {got}"),
    )
    .hint("replay it with the program, the data and the tools that it was recorded with")
    .detail("call", &*place.to_string())
    .detail("expected", expected)
    .detail("got", got)
}

/// Returns whether an answer says that the program itself ended, and was not ended by a limit or the host.
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
        /// What ended the worker that failed, of a parallel call.
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

/// Returns the beginning of a text.
fn cut(text: &str) -> Cow<'_, str> {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}... ({} bytes)", &text[..end], text.len())),
    }
}
