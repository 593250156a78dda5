//! Jobs: a run as data, and how it is split into two halves.

use super::host::HostHalf;
use super::set::SetOfJob;
use crate::api::engine::Engine;
use crate::api::envelope::Request;
use crate::api::input::{DataSet, Input, Source};
use crate::drive::setting::Makes;
use crate::parallel::pool::cores;
use crate::terms::budget::Taken;
use crate::terms::check::Check;
use crate::terms::clock::Reading;
use crate::terms::deadline::RunTime;
use crate::terms::keys::Keys;
use crate::terms::limits::Limits;
use crate::terms::outcome::{Outcome, Phase, Problem};
use crate::terms::run_view::RunView;
use crate::tools::contract::{Contract, Treatment};
use crate::tools::tool::Tool;
use lisp_core::library::names_workers;
use lisp_core::{Error, Reason};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A program with its input, as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job<'a> {
    #[serde(borrow)]
    pub(super) program: Cow<'a, str>,
    pub(super) setup: Vec<Cow<'a, str>>,
    pub(super) sources: Cow<'a, [Source<'a>]>,
    pub(super) sets: Vec<SetOfJob<'a>>,
    pub(super) strict_data: bool,
    /// How JSON object keys are represented.
    pub(super) keys: Keys,
    pub(super) signature: Option<Cow<'a, str>>,
    pub(super) limits: Limits,
    pub(super) now_ms: Option<i64>,
    /// The clock readings to replay.
    pub(super) clock: Cow<'a, [Reading]>,
    /// Whether the host tells the time.
    pub(super) host_clock: bool,
    /// The number of threads that may work for the run, if it may start any.
    pub(super) cores: usize,
    pub(super) tools: Vec<SentTool>,
    pub(super) session: bool,
    /// The saved session that it continues.
    #[serde(borrow)]
    pub(super) resume: Option<Cow<'a, str>>,
    pub(super) makes: Makes,
    /// Whether it is resumed from a record: its time starts when the other half says so.
    pub(super) replays: bool,
}

/// A tool as the guest half knows it. The host half checks schemas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SentTool {
    name: String,
    text: Option<String>,
    /// Whether the text is a signature that arguments and results are checked against.
    checked: bool,
    hyphenated: Vec<String>,
    /// The signature that its schemas imply, if the run is checked.
    derived: Option<String>,
    treatment: Treatment,
}

impl SentTool {
    fn of(tool: &Tool, is_checked: bool) -> Self {
        let Contract { name, text, signature, hyphenated, given_name: _, description: _, schemas: _, derived: _ } =
            &*tool.contract;
        // The host half does the rest.
        let Treatment { tagged, redacted, effect: _, idempotent: _, cached: _, detached: _, max_calls: _ } =
            &*tool.treatment;
        SentTool {
            name: name.clone(),
            text: text.clone(),
            checked: signature.is_some(),
            hyphenated: hyphenated.clone(),
            derived: tool.contract.derived().filter(|_| is_checked).map(str::to_owned),
            // The host half says which calls are in doubt.
            treatment: Treatment {
                tagged: *tagged,
                redacted: redacted.clone(),
                idempotent: true,
                ..Treatment::default()
            },
        }
    }

    /// Returns the tool as an external one.
    pub(super) fn received(self) -> Tool {
        let SentTool { name, text, checked, hyphenated, derived, treatment } = self;
        let tool = Tool::external(name).treat(|it| *it = treatment);
        let tool = tool.amend(|it| (it.hyphenated, it.derived) = (hyphenated, derived));
        match text {
            Some(text) if checked => tool.signature(text),
            Some(text) => tool.described(text),
            None => tool,
        }
    }
}

impl Engine {
    /// Splits a run into a job for the guest half and the half that stays here.
    ///
    /// Nothing is compiled on this side. `session` keeps the guest half for further turns. Data sets in `known` are already in the guest half and are not
    /// sent; the text of other sets is part of the job.
    ///
    /// # Errors
    /// The outcome of a run that cannot start: a data set is not in `known` and has no text, because this process
    /// received it from another one.
    pub fn split<'a>(
        &self,
        source: &'a str,
        input: &'a Input<'_>,
        known: &[DataSet],
        session: bool,
    ) -> Result<(Job<'a>, HostHalf), Box<Outcome>> {
        self.split_since(Instant::now(), source, input, known, session)
    }

    fn split_since<'a>(
        &self,
        started: Instant,
        source: &'a str,
        input: &'a Input<'_>,
        known: &[DataSet],
        session: bool,
    ) -> Result<(Job<'a>, HostHalf), Box<Outcome>> {
        // The turns of a session are its runs.
        let view = if session { RunView::quiet(self.observed()) } else { self.view(input, started) };
        let Some(sets) = input.sets.iter().map(|set| SetOfJob::of(set, known)).collect() else {
            let error = Error::new(Reason::RuntimeError, "a data set without its text cannot be sent on");
            let problem = Box::new(Problem::new(error, Phase::Setup));
            return Err(Box::new(self.ended(&view, started, problem, self.limits_for(input))));
        };
        let texts = || input.setup.iter().map(|set_up| set_up.source().to_owned()).collect();
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
        let (mut job, mut host) = self.halves(started, source, input, session, view);
        host.may_have_workers = job.may_have_workers();
        job.sets = sets;
        if let Some(fuel) = taken.as_ref().and_then(|taken| taken.fuel) {
            job.limits.fuel = fuel;
        }
        host.taken = taken;
        Ok((job, host))
    }

    /// Splits the run of a request, like [`Engine::split`].
    ///
    /// # Errors
    /// The outcome of a request with an error in its tools.
    pub fn split_request<'a>(
        &self,
        request: &'a Request<'_>,
        input: &'a mut Input<'a>,
    ) -> Result<(Job<'a>, HostHalf), Box<Outcome>> {
        let started = Instant::now();
        let given = request.input_since(self, started);
        *input = given.map_err(|problem| Box::new(request.not_begun(self, started, problem)))?;
        self.split_since(started, &request.program, input, &[], false)
    }

    fn halves<'a>(
        &self,
        started: Instant,
        source: &'a str,
        input: &'a Input<'_>,
        session: bool,
        view: RunView,
    ) -> (Job<'a>, HostHalf) {
        let limits = self.limits_for(input);
        let host = HostHalf::new(started, self, input, limits, view);
        let makes = self.makes(input);
        let host_clock = self.clock().is_of_host() || input.journal.is_some();
        let job = Job {
            program: Cow::Borrowed(source),
            setup: input.setup.iter().map(|set_up| Cow::Borrowed(set_up.source())).collect(),
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
            tools: host.tools.values().map(|tool| SentTool::of(tool, makes.check != Check::Off)).collect(),
            session,
            resume: None,
            makes,
            replays: host.replays(),
        };
        (job, host)
    }
}

impl<'a> Job<'a> {
    /// Returns whether threads may help with workers, by what the programs name. They cannot help if workers ask this
    /// half for the time.
    fn may_have_workers(&self) -> bool {
        /// Sources above this many bytes are not searched, and count as having no workers.
        const LARGE: usize = 64 << 10;
        let mut sources = self.setup.iter().chain([&self.program]).filter(|source| source.len() <= LARGE);
        !self.host_clock && self.cores > 1 && sources.any(|source| names_workers(source))
    }

    /// Makes the session continue a saved one, usually from [`CommittedSession::text`](super::CommittedSession::text).
    pub fn resume(&mut self, text: &'a str) {
        self.resume = Some(Cow::Borrowed(text));
        // Their results are in the text.
        self.setup.clear();
        self.sources.to_mut().retain(|source| !matches!(source, Source::Memory(_) | Source::History(_)));
    }

    /// Turns off undo in the guest half: the host, which has the definitions, undoes turns.
    pub fn without_undo(&mut self) {
        self.limits.session_undo = 0;
    }

    /// Returns whether the guest half is kept for further turns. The programs of all turns are then sent later.
    pub fn is_session(&self) -> bool {
        self.session
    }

    /// Returns the time limit of a turn; `None` is unlimited. For a resumed run, it starts after the
    /// [replay](Job::replay_time).
    pub fn time(&self) -> Option<Duration> {
        (self.limits.timeout_ms < u64::MAX).then(|| Duration::from_millis(self.limits.timeout_ms))
    }

    /// Returns the time limit of a replay, for a resumed run; its [time](Job::time) starts after that.
    pub fn replay_time(&self) -> Option<Duration> {
        self.replays.then(|| Duration::from_millis(RunTime::replay_ms(self.limits.timeout_ms)))
    }
}
