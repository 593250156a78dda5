//! Errors of records.

/// The name of the record format.
pub const RECORD_SCHEMA: &str = "ptc-record/1";

/// Returns the names of tools, as many as fit in a message.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = names.iter().take(SHOWN).map(|name| format!("tool/{name}")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// An error of reading or using a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A line is not valid in a record.
    #[error("line {line} of the record: {why}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// What is wrong with the line.
        why: String,
    },
    /// The text is no record: its first line does not describe a run.
    #[error("this is not a record: {0}; ptcl run --record FILE writes one, and Input::record")]
    NoRecord(String),
    /// The record has another format.
    #[error("the record has the format {0:?}; this version reads {RECORD_SCHEMA:?}")]
    Schema(String),
    /// The record is sealed; use `Record::unseal`.
    #[error("the record is sealed: Record::unseal reads it, and checks its seal")]
    Sealed,
    /// The record is too large.
    #[error("the record has {bytes} bytes; it may have {limit} (Record::parse_within)")]
    TooLarge {
        /// The size of the record in bytes.
        bytes: usize,
        /// The maximum in bytes.
        limit: usize,
    },
    /// This version cannot compile the program, or a set-up program.
    #[error("the program of the record: {0}")]
    Program(String),
    /// A data set of the run was not given.
    #[error("the record needs a data set that was not given, with the digest {0}")]
    DataSet(String),
    /// Tools of the run are missing.
    #[error(
        "the run had tools that are not there now: {}; grant them to the engine, or give those that were the run's own again, \
         by Input::tools, to Engine::resume_with or Engine::open_record_given", listed(.0)
    )]
    MissingTools(Vec<String>),
    /// An option was given that the record already has.
    #[error("the record already has {0}; leave it out")]
    Given(&'static str),
    /// A tool has another signature or schema than in the record, or its caching changed.
    #[error("tool/{name} {is} now; in the record it {was}")]
    Tool {
        /// The name of the tool.
        name: String,
        /// How the tool is now.
        is: String,
        /// How it was in the record.
        was: String,
    },
    /// The record has no open call of this name.
    #[error("the record has no open call {0}")]
    NoCall(String),
    /// The record has no call of this name that needs approval.
    #[error("the record has no call {0} that waits to be approved")]
    NoQuestion(String),
    /// A call was approved with other arguments, but its tool redacts arguments and the record would have to keep them.
    #[error(
        "tool/{0} keeps arguments out of the record: its call cannot be approved there with other arguments. Approve it as it is, or \
         while the run goes on (Waiting::approve_with, Input::approvals)"
    )]
    Redacted(String),
    /// The value is not JSON.
    #[error("the value is not JSON: {0}")]
    Json(String),
    /// The key of a seal is empty.
    #[error("the key of the seal is empty: a record is sealed with a secret of 32 bytes or more")]
    EmptyKey,
    /// The seal does not match: another key, another tenant, or a changed record.
    #[error("the record is not sealed with this key for this tenant, or it was changed")]
    Seal,
    /// The seal of the record has expired.
    #[error("the seal of the record expired at {expired_ms} ms; now it is {now_ms} ms")]
    Expired {
        /// When the seal expired, in milliseconds since 1970-01-01T00:00:00Z.
        expired_ms: i64,
        /// The current time, in milliseconds since 1970-01-01T00:00:00Z.
        now_ms: i64,
    },
}
