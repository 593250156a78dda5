//! Why a text is no record, or a record cannot be used.

/// The name of the format of a record.
pub const RECORD_SCHEMA: &str = "ptc-record/1";

/// Why a text is no record, or a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A line is none of a record.
    #[error("line {line} of the record: {why}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A record of another format.
    #[error("the record has the format {0:?}; this version reads {RECORD_SCHEMA:?}")]
    Schema(String),
    /// A record that is too large.
    #[error("the record has {bytes} bytes; it may have {limit} (Record::parse_within)")]
    TooLarge {
        /// What it has.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// The program, or a program of the set-up, cannot be compiled by this version.
    #[error("the program of the record: {0}")]
    Program(String),
    /// A data set was not given.
    #[error("the record needs a data set that was not given, with the digest {0}")]
    DataSet(String),
    /// A tool is not there, or has another signature or schema, or is cached now and was not.
    #[error("tool/{name} {is} now; in the record it {was}")]
    Tool {
        /// The tool.
        name: String,
        /// What it is now.
        is: String,
        /// What it was.
        was: String,
    },
    /// There is no such call that is open.
    #[error("the record has no open call {0}")]
    NoCall(String),
    /// There is no such call that somebody has to approve.
    #[error("the record has no call {0} that waits to be approved")]
    NoQuestion(String),
    /// The value is no JSON.
    #[error("the value is no JSON: {0}")]
    Json(String),
    /// A sealed record does not bear the seal that it should.
    #[error("the record is not sealed with this key for this tenant, or it was changed")]
    Seal,
    /// A sealed record is too old.
    #[error("the seal of the record expired at {expired_ms} ms; now it is {now_ms} ms")]
    Expired {
        /// When it expired, in milliseconds since 1970-01-01T00:00:00Z.
        expired_ms: i64,
        /// What time it is.
        now_ms: i64,
    },
}
