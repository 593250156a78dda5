//! Disabled spans: every type is empty, every function does nothing.

use crate::terms::outcome::{CallStatus, Usage, Verdict};
use crate::terms::place::Place;

#[derive(Clone, Debug)]
pub(crate) struct RunSpan;

impl RunSpan {
    pub(crate) const fn none() -> Self {
        RunSpan
    }

    pub(crate) fn begin(_: &str, _: Option<&str>) -> Self {
        RunSpan
    }

    pub(crate) fn end(&self, _: Verdict, _: Option<&'static str>, _: &Usage) {}
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CallSpan;

impl CallSpan {
    pub(crate) fn begin(_: &RunSpan, _: &str, _: &Place, _: u64, _: bool) -> Self {
        CallSpan
    }

    pub(crate) const fn is_seen(&self) -> bool {
        false
    }

    pub(crate) fn end(&self, _: CallStatus) {}

    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }
}

#[derive(Debug)]
pub(crate) struct GroupSpan;

impl GroupSpan {
    pub(crate) fn begin(_: &RunSpan, _: u32, _: usize) -> Self {
        GroupSpan
    }
}

#[derive(Debug)]
pub(crate) struct StepSpan;

impl StepSpan {
    pub(crate) fn compile(_: Option<&RunSpan>, _: usize) -> Self {
        StepSpan
    }

    pub(crate) fn set_up(_: &RunSpan, _: usize) -> Self {
        StepSpan
    }

    pub(crate) fn end(self, _: Option<&'static str>) {}
}
