//! Exit codes and failures of all commands.

use lisp_runtime::outcome::{Detail, OutcomeKind, Phase};
use lisp_runtime::{Outcome, Problem, Reason, Verdict};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit codes. The higher one is the more serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// A value or `(return v)`.
    Ok = 0,
    /// `(fail v)`; or files that are not formatted, or examples that fail.
    Fail = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The program cannot be read or analyzed.
    Compile = 3,
    /// Any other error of the program.
    Error = 4,
    /// A limit was reached.
    Limit = 5,
    /// An internal error, contained.
    HostFault = 70,
    /// A file or pipe cannot be read or written.
    InputOutput = 74,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    /// The exit code for an outcome.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match (outcome.problem(), outcome.kind()) {
            (Some(problem), _) => Exit::of_problem(problem),
            (None, Some(OutcomeKind::Fail)) => Exit::Fail,
            (None, _) => Exit::Ok,
        }
    }

    /// The exit code for a problem.
    pub(crate) fn of_problem(problem: &Problem) -> Self {
        if input_of(problem).is_some() {
            return Exit::Usage;
        }
        match (Verdict::of(problem.reason()), problem.reason()) {
            (Verdict::HostFault, _) => Exit::HostFault,
            (Verdict::Cancelled, _) => Exit::Interrupted,
            (Verdict::Timeout | Verdict::OutOfMemory, _)
            | (
                _,
                Reason::LoopLimitExceeded
                | Reason::ToolCallLimitExceeded
                | Reason::BudgetExceeded
                | Reason::RecordLimitExceeded
                | Reason::ParallelCapacityExceeded
                | Reason::ResultLimitExceeded
                | Reason::SessionLimitExceeded,
            ) => Exit::Limit,
            _ if problem.phase == Phase::Compile => Exit::Compile,
            _ => Exit::Error,
        }
    }
}

/// The index of the input that caused the problem, if one did.
pub(crate) fn input_of(problem: &Problem) -> Option<usize> {
    detail(problem, "input")
}

/// A number in the details of a problem.
pub(crate) fn detail(problem: &Problem, name: &str) -> Option<usize> {
    match problem.error.details.iter().find(|(detail, _)| *detail == name)?.1 {
        Detail::Int(number) => usize::try_from(number).ok(),
        _ => None,
    }
}

/// Why a command failed. No program can cause this.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// An option is invalid.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read.
    #[error("{}: {}", path.display(), of_file(error))]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Standard input or output failed.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// Process isolation is not available.
    #[error("{0}")]
    Isolation(String),
    /// The service cannot start, or stopped with an error.
    #[cfg(feature = "serve")]
    #[error("{0}")]
    Service(String),
    /// An internal error without consequences.
    #[error("{0}")]
    Bug(String),
    /// The terminal failed.
    #[error("the prompt: {0}")]
    Prompt(String),
}

/// Says what is wrong with a file, and what to do.
pub(crate) fn of_file(error: &io::Error) -> String {
    match error.kind() {
        // It has a text of its own.
        _ if error.get_ref().is_some() => error.to_string(),
        io::ErrorKind::NotFound => "there is no such file, or no directory for it; correct the path".to_owned(),
        io::ErrorKind::InvalidData => "the file is not UTF-8 text; convert it, as with iconv -t UTF-8".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission; change it with chmod, or name another file".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory; name a file".to_owned(),
        _ => error.to_string(),
    }
}

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Usage(_) => Exit::Usage,
            Failure::File { .. } | Failure::Stream(_) | Failure::Prompt(_) => Exit::InputOutput,
            #[cfg(feature = "serve")]
            Failure::Service(_) => Exit::InputOutput,
            Failure::Isolation(_) | Failure::Bug(_) => Exit::HostFault,
        }
    }

    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Stream(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
