//! Why a text is no record, or a record cannot be used.

/// The name of the format of a record.
pub const RECORD_SCHEMA: &str = "ptc-record/1";

/// The names of tools, as many as a message has room for.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut text = names.iter().take(SHOWN).map(|name| format!("tool/{name}")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

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
    /// A sealed record, which is read in another way.
    #[error("the record is sealed: Record::unseal reads it, and checks its seal")]
    Sealed,
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
    /// Tools of the run are not there.
    #[error(
        "the run had tools that are not there now: {}; grant them to the engine, or give those that were the run's own again, \
         by Input::tools, to Engine::resume_with or Engine::open_record_given", listed(.0)
    )]
    MissingTools(Vec<String>),
    /// Something was given again that the record has.
    #[error("the record has {0}: it is not given again")]
    Given(&'static str),
    /// A tool has another signature or schema, or is cached now and was not.
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
    /// A call of a tool that redacts arguments is to be approved with other ones, which the record would have to keep.
    #[error(
        "tool/{0} keeps arguments out of the record: its call cannot be approved there with other arguments. Approve it as it is, or \
         while the run goes on (Waiting::approve_with, Input::approvals)"
    )]
    Redacted(String),
    /// The value is not JSON.
    #[error("the value is not JSON: {0}")]
    Json(String),
    /// A record is sealed with an empty key, which is no secret.
    #[error("the key of the seal is empty: a record is sealed with a secret of 32 bytes or more")]
    EmptyKey,
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
