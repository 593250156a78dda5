//! A run as data, and how it is divided.

use super::host::HostHalf;
use super::set::SetOfJob;
use crate::api::engine::Engine;
use crate::api::envelope::Request;
use crate::api::input::{DataSet, Input, Source};
use crate::drive::setting::Makes;
use crate::parallel::pool::cores;
use crate::terms::budget::Taken;
use crate::terms::clock::Reading;
use crate::terms::deadline::RunTime;
use crate::terms::keys::Keys;
use crate::terms::limits::Limits;
use crate::terms::outcome::{Outcome, Phase, Problem};
use crate::terms::run_view::RunView;
use crate::tools::tool::Tool;
use lisp_core::{Error, Reason};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A program and all it gets, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job<'a> {
    #[serde(borrow)]
    pub(super) program: Cow<'a, str>,
    pub(super) setup: Vec<Cow<'a, str>>,
    pub(super) sources: Cow<'a, [Source<'a>]>,
    pub(super) sets: Vec<SetOfJob<'a>>,
    pub(super) strict_data: bool,
    /// What the keys of JSON objects become.
    pub(super) keys: Keys,
    pub(super) signature: Option<Cow<'a, str>>,
    pub(super) limits: Limits,
    pub(super) now_ms: Option<i64>,
    /// What the clock is to tell first.
    pub(super) clock: Cow<'a, [Reading]>,
    /// The time is asked of the host.
    pub(super) host_clock: bool,
    /// How many threads may be at work for the run, where it may start any.
    pub(super) cores: usize,
    pub(super) tools: Vec<ToolSpec<'a>>,
    pub(super) session: bool,
    /// The saved session that it goes on with.
    #[serde(borrow)]
    pub(super) resume: Option<Cow<'a, str>>,
    pub(super) makes: Makes,
    /// It goes on from a record: its time begins when the other half says so.
    pub(super) replays: bool,
}

/// A tool as the guest half knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ToolSpec<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) signature: Option<Cow<'a, str>>,
    /// Arguments and results are checked against the signature.
    pub(super) checked: bool,
    /// Parameters with hyphens in their names, where there is no signature that has them. What else a schema says, this half
    /// checks.
    pub(super) hyphenated: Cow<'a, [String]>,
    /// Its failures are values.
    pub(super) tagged: bool,
    /// The arguments whose values are not shown.
    pub(super) redacted: Cow<'a, [String]>,
}

impl Engine {
    /// Makes a job of a program and its input, and the half of the run that stays here. `session` keeps the guest half
    /// for further turns. Of data sets in `known`, which the guest half has, nothing is sent; of others the text goes with the
    /// job.
    ///
    /// # Errors
    /// The outcome of a run that cannot begin: a data set that is not known and has no text, because this process had it from
    /// another.
    pub fn split<'a>(
        &self,
        source: &'a str,
        input: &'a Input<'_>,
        known: &[DataSet],
        session: bool,
    ) -> Result<(Job<'a>, HostHalf), Box<Outcome>> {
        let started = Instant::now();
        // The turns of a session are its runs.
        let view = if session { RunView::quiet(self.observed()) } else { self.view(input, started) };
        let Some(sets) = input.sets.iter().map(|set| SetOfJob::of(set, known)).collect() else {
            let error = Error::new(Reason::RuntimeError, "a data set without its text cannot be sent on");
            let problem = Box::new(Problem::new(error, Phase::Setup));
            return Err(Box::new(self.ended(&view, started, problem, self.limits_for(input))));
        };
        let texts = || input.setup.iter().map(|program| program.source().to_owned()).collect();
        let check = if session { crate::api::session::check(input) } else { Ok(()) };
        let taken = input.check_name().and(check).and_then(|()| self.take_budget(input));
        let begun = taken.and_then(|taken| match self.begin_record(source, texts, input, false, &view) {
            Ok(()) => Ok(taken),
            Err(problem) => {
                taken.into_iter().for_each(Taken::give_back);
                Err(problem)
            }
        });
        let taken = match begun {
            Ok(taken) => taken,
            Err(problem) => return Err(Box::new(self.ended(&view, started, problem, self.limits_for(input)))),
        };
        let setup = input.setup.iter().map(|program| Cow::Borrowed(program.source())).collect();
        let (mut job, mut host) = self.halves(started, source, setup, input, session, view);
        host.may_have_workers = Engine::takes_threads(&job)
            && (input.setup.iter().any(|program| program.core().may_have_workers())
                || self.may_have_workers(started, source, &job.limits, input.cancel.as_ref()));
        job.sets = sets;
        if let Some(fuel) = taken.as_ref().and_then(|taken| taken.fuel) {
            job.limits.fuel = fuel;
        }
        host.taken = taken;
        Ok((job, host))
    }

    /// Splits the run of a request, like [`Engine::split`]. Nothing of it is compiled on this side.
    ///
    /// # Errors
    /// The outcome of a request whose tools are at fault.
    pub fn split_request<'a>(
        &self,
        request: &'a Request<'_>,
        input: &'a mut Input<'a>,
    ) -> Result<(Job<'a>, HostHalf), Box<Outcome>> {
        let started = Instant::now();
        *input = request.grant(self, started).map_err(|problem| Box::new(request.not_begun(self, started, problem)))?;
        let setup = request.setup.iter().map(|source| Cow::Borrowed(source.as_str())).collect();
        let view = self.view(input, started);
        let (job, mut host) = self.halves(started, &request.program, setup, input, false, view);
        let texts = || job.setup.iter().chain([&job.program]);
        host.may_have_workers = Engine::takes_threads(&job)
            && texts().any(|text| self.may_have_workers(started, text, &job.limits, input.cancel.as_ref()));
        Ok((job, host))
    }

    /// Can threads help with the workers of a job? None do where the workers ask this half for the time.
    fn takes_threads(job: &Job<'_>) -> bool {
        !job.host_clock && job.cores > 1
    }

    fn halves<'a>(
        &self,
        started: Instant,
        source: &'a str,
        setup: Vec<Cow<'a, str>>,
        input: &'a Input<'_>,
        session: bool,
        view: RunView,
    ) -> (Job<'a>, HostHalf) {
        let limits = self.limits_for(input);
        let host = HostHalf::new(started, self, input, limits, view);
        let host_clock = self.clock().is_of_host() || input.journal.is_some();
        let job = Job {
            program: Cow::Borrowed(source),
            setup,
            sources: Cow::Borrowed(&input.sources),
            sets: Vec::new(),
            strict_data: input.strict_data,
            keys: self.keys_for(input),
            signature: input.signature.as_deref().map(Cow::Borrowed),
            limits,
            now_ms: input.now_ms,
            clock: Cow::Borrowed(&input.clock),
            host_clock,
            cores: cores(),
            tools: host.tools.values().map(|tool| spec(tool)).collect(),
            session,
            resume: None,
            makes: input.makes,
            replays: host.replays(),
        };
        (job, host)
    }
}

impl<'a> Job<'a> {
    /// Has the session go on with a saved one, [`CommittedSession::text`](super::CommittedSession::text) most often.
    pub fn resume(&mut self, text: &'a str) {
        self.resume = Some(Cow::Borrowed(text));
        // What came of these is in the text.
        self.setup.clear();
        self.sources.to_mut().retain(|source| !matches!(source, Source::Memory(_) | Source::History(_)));
    }

    /// Undoing turns is the host's, which has their definitions.
    pub fn without_undo(&mut self) {
        self.limits.session_undo = 0;
    }

    /// Is the guest half kept for further turns? Then the programs of all turns come later.
    pub fn is_session(&self) -> bool {
        self.session
    }

    /// How long a turn may take; `None` is for ever. Of a run that goes on from a record it is the time behind the
    /// [replay](Job::replay_time).
    pub fn time(&self) -> Option<Duration> {
        (self.limits.timeout_ms < u64::MAX).then(|| Duration::from_millis(self.limits.timeout_ms))
    }

    /// How long doing again what a record has may take, in a run that goes on from one; then its [time](Job::time) begins.
    pub fn replay_time(&self) -> Option<Duration> {
        self.replays.then(|| Duration::from_millis(RunTime::replay_ms(self.limits.timeout_ms)))
    }
}

fn spec(tool: &Tool) -> ToolSpec<'static> {
    ToolSpec {
        name: Cow::Owned(tool.name.clone()),
        signature: tool.signature.clone().map(Cow::Owned),
        checked: tool.contract.is_some(),
        hyphenated: Cow::Owned(tool.hyphenated.to_vec()),
        tagged: tool.tagged,
        redacted: Cow::Owned(tool.redacted().to_vec()),
    }
}
