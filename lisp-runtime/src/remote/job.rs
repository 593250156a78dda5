//! A run as data, and how it is divided.

use super::Home;
use crate::engine::Engine;
use crate::envelope::Request;
use crate::input::{Input, Source};
use crate::limits::Limits;
use crate::outcome::{Outcome, Phase, Problem};
use crate::tool::Tool;
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
    pub(super) sources: Vec<Given<'a>>,
    pub(super) strict_data: bool,
    pub(super) signature: Option<Cow<'a, str>>,
    pub(super) limits: Limits,
    pub(super) now_ms: Option<i64>,
    pub(super) tools: Vec<Face<'a>>,
    pub(super) session: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Given<'a> {
    Data(Cow<'a, str>, Result<Cow<'a, str>, String>),
    DataObject(Result<Cow<'a, str>, String>),
    Memory(Result<Cow<'a, str>, String>),
    History(Result<Cow<'a, str>, String>),
}

/// What the far half knows of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Face<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) signature: Option<Cow<'a, str>>,
    /// Arguments and results are checked against the signature.
    pub(super) checked: bool,
}

impl<'a> From<&'a Source<'_>> for Given<'a> {
    fn from(source: &'a Source<'_>) -> Self {
        fn text<'a>(text: &'a crate::input::Text<'_>) -> Result<Cow<'a, str>, String> {
            text.as_deref().map(Cow::Borrowed).map_err(Clone::clone)
        }
        match source {
            Source::Data(name, json) => Given::Data(Cow::Borrowed(name), text(json)),
            Source::DataObject(json) => Given::DataObject(text(json)),
            Source::Memory(json) => Given::Memory(text(json)),
            Source::History(json) => Given::History(text(json)),
        }
    }
}

impl From<Given<'_>> for Source<'static> {
    fn from(given: Given<'_>) -> Self {
        let text = |text: crate::input::Text<'_>| text.map(|text| Cow::Owned(text.into_owned()));
        match given {
            Given::Data(name, json) => Source::Data(Cow::Owned(name.into_owned()), text(json)),
            Given::DataObject(json) => Source::DataObject(text(json)),
            Given::Memory(json) => Source::Memory(text(json)),
            Given::History(json) => Source::History(text(json)),
        }
    }
}

impl Engine {
    /// Makes a job of a program and its input, and the half of the run that stays here. `session` keeps the far half
    /// for further turns.
    ///
    /// # Errors
    /// The outcome of a run that cannot begin: data sets are memory of this process and cannot be sent.
    pub fn send_off<'a>(
        &self,
        source: &'a str,
        input: &'a Input<'_>,
        session: bool,
    ) -> Result<(Job<'a>, Home), Box<Outcome>> {
        let started = Instant::now();
        if !input.sets.is_empty() {
            let error = Error::new(Reason::RuntimeError, "a data set cannot be sent to another process")
                .hint("give the data as JSON text");
            let problem = Box::new(Problem::new(error, Phase::Setup));
            return Err(Box::new(self.ended(started, problem, self.limits_for(input))));
        }
        let setup = input.setup.iter().map(|program| Cow::Borrowed(program.source())).collect();
        Ok(self.halves(started, source, setup, input, session))
    }

    /// As [`Engine::send_off`], for a request. Nothing of it is compiled on this side.
    ///
    /// # Errors
    /// The outcome of a request whose tools are at fault.
    pub fn send_off_request<'a>(
        &self,
        request: &'a Request<'_>,
        input: &'a mut Input<'a>,
    ) -> Result<(Job<'a>, Home), Box<Outcome>> {
        let started = Instant::now();
        *input = request.grant().map_err(|problem| {
            let limits = self.limits_for(&Input::new().limits(request.limits));
            Box::new(Outcome::of_problem(problem, limits))
        })?;
        let setup = request.setup.iter().map(|source| Cow::Borrowed(source.as_str())).collect();
        Ok(self.halves(started, &request.program, setup, input, false))
    }

    fn halves<'a>(
        &self,
        started: Instant,
        source: &'a str,
        setup: Vec<Cow<'a, str>>,
        input: &'a Input<'_>,
        session: bool,
    ) -> (Job<'a>, Home) {
        let limits = self.limits_for(input);
        let home = Home::new(started, self, input, limits);
        let job = Job {
            program: Cow::Borrowed(source),
            setup,
            sources: input.sources.iter().map(Given::from).collect(),
            strict_data: input.strict_data,
            signature: input.signature.as_deref().map(Cow::Borrowed),
            limits,
            // A host's clock cannot be asked from another process, so there it stands still.
            now_ms: input.now_ms.or_else(|| self.clock().now_of_host()),
            tools: home.tools.values().map(|tool| face(tool)).collect(),
            session,
        };
        (job, home)
    }
}

impl Job<'_> {
    /// Is the far half kept for further turns? Then their programs come later, the first one's too.
    pub fn is_session(&self) -> bool {
        self.session
    }

    /// How long a turn may take; `None` is for ever.
    pub fn time(&self) -> Option<Duration> {
        (self.limits.timeout_ms < u64::MAX).then(|| Duration::from_millis(self.limits.timeout_ms))
    }
}

fn face(tool: &Tool) -> Face<'static> {
    Face {
        name: Cow::Owned(tool.name.clone()),
        signature: tool.signature.clone().map(Cow::Owned),
        checked: tool.contract.is_some(),
    }
}
