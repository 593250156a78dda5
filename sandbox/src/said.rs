//! What a run's process says, as the host reads it: a frame becomes one of few things, or is a violation. This and the
//! assembling of frames are all that native code in a run can reach of the host.

use crate::wire::{self, Frame, Kind, Violation};
use lisp_runtime::{FarCall, Report};

/// A frame that has been read.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    /// Lines.
    Printed(Vec<String>),
    /// A tool to call.
    Call(FarCall<'a>),
    /// What came of the program.
    Report(Box<Report>),
    /// Which step of the set-up failed.
    Setup(String),
    /// The time is asked for.
    Clock,
}

impl<'a> Said<'a> {
    pub(crate) fn of(frame: &'a Frame) -> Result<Said<'a>, Violation> {
        let unreadable = |_| Violation::Unreadable;
        match frame.kind {
            Kind::Printed => wire::decode(&frame.bytes).map(Said::Printed).map_err(unreadable),
            Kind::Call => {
                let call: FarCall<'_> = wire::decode(&frame.bytes).map_err(unreadable)?;
                match call.number == u64::from(frame.id) {
                    true => Ok(Said::Call(call)),
                    false => Err(Violation::OutOfPlace),
                }
            }
            Kind::Report => wire::decode(&frame.bytes).map(Said::Report).map_err(unreadable),
            Kind::Setup => Ok(Said::Setup(String::from_utf8_lossy(&frame.bytes).into_owned())),
            Kind::Clock if frame.bytes.is_empty() => Ok(Said::Clock),
            Kind::Clock => Err(Violation::Unreadable),
            Kind::Job | Kind::Reply | Kind::Turn | Kind::Time => Err(Violation::Unexpected),
        }
    }
}
