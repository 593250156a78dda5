//! How a tool call ended.

use super::tool_error::{ToolError, ToolErrorFields, ToolErrorKind};
use crate::recording::line::{Ended, Failure};
use crate::terms::error_data;
use crate::terms::outcome::CallStatus;
use lisp_core::{Error, Reason};
use serde::{Deserialize, Serialize};

/// How a call ended. It is sent to a guest half as it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// With a result as JSON text.
    Json(String),
    /// With its own arguments as the result.
    Echo,
    /// With an error.
    Error(#[serde(with = "ToolErrorFields")] ToolError),
    /// Not made: the run may not make it.
    Refused(#[serde(with = "error_data")] Error),
    /// Not made: an earlier attempt did not make it, because another worker had failed.
    LeftOut(#[serde(with = "error_data")] Error),
    /// Not before the run's deadline or cancellation.
    Late,
    /// Not made: the run ended first. If the call waited for a thread, with the number of threads.
    NotMade {
        /// The number of threads.
        tool_threads: Option<usize>,
    },
}

impl Reply {
    /// Returns the error for a tool that needs a thread when the system cannot create one.
    pub(crate) fn no_thread() -> Self {
        Reply::Error(ToolError::new(
            "it is detached and needs a thread of its own, and there is none: the system gives none, or the engine has none \
             (EngineBuilder::tool_threads is 0)",
        ))
    }

    /// Returns the status for the ledger.
    pub(crate) fn status(&self) -> CallStatus {
        match self {
            Reply::Json(_) | Reply::Echo => CallStatus::Ok,
            Reply::Error(error) if error.kind == ToolErrorKind::Unknown => CallStatus::Unknown,
            Reply::Error(_) | Reply::NotMade { .. } | Reply::Refused(_) => CallStatus::Error,
            Reply::LeftOut(_) | Reply::Late => CallStatus::Unknown,
        }
    }

    /// Returns the end for the journal; `None` if it is unknown whether the call was made.
    #[expect(clippy::option_option, reason = "not known, and known not to have been made")]
    pub(crate) fn ended(&self) -> Option<Option<Ended>> {
        match self {
            Reply::Json(json) => Some(Some(Ended::Json(json.clone()))),
            Reply::Echo => Some(Some(Ended::Echo)),
            Reply::Error(error) if error.kind == ToolErrorKind::Unknown => None,
            Reply::Error(error) => Some(Some(Ended::Failed(Failure {
                message: error.message.clone(),
                arguments: error.kind == ToolErrorKind::Arguments,
                panic: error.kind == ToolErrorKind::Panic,
                code: error.code.clone(),
            }))),
            // The journal already has the decision.
            Reply::Refused(error) if error.reason == Reason::ToolDenied => None,
            Reply::NotMade { .. } | Reply::Refused(_) | Reply::LeftOut(_) => Some(None),
            Reply::Late => None,
        }
    }

    /// Returns the bytes of the result or of the error.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Reply::Json(json) => json.trim().len() as u64,
            Reply::Error(error) => error.message.len() as u64,
            _ => 0,
        }
    }

    /// Returns whether there is no reply because the run ended.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Reply::Late | Reply::NotMade { .. })
    }

    /// Returns why the call was not made; `None` if it was, or may have been.
    pub(crate) fn why_not_made(&self) -> Option<String> {
        match self {
            Reply::NotMade { tool_threads: Some(max) } => {
                Some(format!("not made: the run was over before one of the {max} tool threads was free"))
            }
            Reply::NotMade { tool_threads: None } => Some("not made: the run was over".to_owned()),
            _ => None,
        }
    }
}

impl From<Ended> for Reply {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Json(json) => Reply::Json(json),
            Ended::Echo => Reply::Echo,
            Ended::Failed(Failure { message, arguments, panic, code }) => {
                let kind = match (arguments, panic) {
                    (true, _) => ToolErrorKind::Arguments,
                    (_, true) => ToolErrorKind::Panic,
                    _ => ToolErrorKind::Failed,
                };
                Reply::Error(ToolError { message, kind, code })
            }
        }
    }
}
