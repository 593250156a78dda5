//! Runs as rows of the database.

use super::super::{
    Claim, Journal, Lease, Result, RunStatus, RunSummary, StoreError, StoredCall, StoredReply, StoredRun,
};
use super::text::{text, unescape};
use super::{get, get_count};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

/// The digest of lines that are stored in one row.
pub(super) fn digest(run_id: &str, first_line: u64, text: &[u8]) -> Vec<u8> {
    let mut digest = Sha256::new();
    digest.update((run_id.len() as u64).to_le_bytes());
    digest.update(run_id);
    digest.update(first_line.to_le_bytes());
    digest.update(text);
    digest.finalize()[..16].to_vec()
}

fn damaged(run_id: &str, line: u64, what: &str) -> StoreError {
    StoreError::Damaged(format!("line {line} of the journal of run {run_id} ({what})"))
}

pub(super) fn status(name: &str) -> Result<RunStatus> {
    RunStatus::of(name).ok_or_else(|| StoreError::Failed(format!("a run has the unknown status {name}")))
}

/// Reads the columns of `open_calls`.
fn calls(run_id: &str, row: &Row) -> Result<Vec<StoredCall>> {
    let Some(names) = get::<Option<Vec<String>>>(row, "calls")? else { return Ok(Vec::new()) };
    let phases: Vec<String> = get(row, "phases")?;
    let numbers: Vec<i64> = get(row, "numbers")?;
    let tools: Vec<String> = get(row, "tools")?;
    let arguments: Vec<Vec<u8>> = get(row, "arguments")?;
    let questions: Vec<Option<Vec<u8>>> = get(row, "questions")?;
    let rest = phases.into_iter().zip(numbers).zip(tools).zip(arguments).zip(questions);
    let calls = names.into_iter().zip(rest).map(|(call, ((((phase, number), tool), arguments), question))| {
        Ok(StoredCall {
            call: unescape(call),
            phase: unescape(phase),
            number: u64::try_from(number).unwrap_or(0),
            tool: unescape(tool),
            arguments: text("arguments", run_id, arguments)?,
            question: question.map(|question| text("question", run_id, question)).transpose()?,
        })
    });
    calls.collect()
}

pub(super) fn summary(row: &Row, status: RunStatus) -> Result<RunSummary> {
    let run_id = unescape(get(row, "run_id")?);
    Ok(RunSummary {
        tenant: unescape(get(row, "tenant")?),
        status,
        cancelled: get(row, "cancelled")?,
        error: get::<Option<String>>(row, "error")?.map(unescape),
        created_ms: get(row, "created_ms")?,
        updated_ms: get(row, "updated_ms")?,
        calls: calls(&run_id, row)?,
        run_id,
    })
}

pub(super) fn claim(row: &Row) -> Result<Claim> {
    let summary = summary(row, RunStatus::Running)?;
    let faults: i32 = get(row, "faults")?;
    Ok(Claim {
        lease: Lease { run_id: summary.run_id.as_str().into(), epoch: get_count(row, "epoch")? },
        lines: get_count(row, "lines")?,
        events: get_count(row, "events")?,
        printed: get_count(row, "printed")?,
        faults: u32::try_from(faults).unwrap_or(0),
        run: StoredRun {
            request: text("request", &summary.run_id, get(row, "request")?)?.into(),
            answer: None,
            summary,
        },
    })
}

pub(super) fn reply(run_id: &str, row: &Row) -> Result<StoredReply> {
    Ok(StoredReply {
        call: unescape(get(row, "call")?),
        phase: unescape(get(row, "phase")?),
        body: text("reply", run_id, get(row, "body")?)?,
    })
}

/// Checks and joins the rows of a journal. The last row has the number of lines that the run has.
pub(super) fn journal(run_id: &str, rows: &[Row]) -> Result<Journal> {
    let (mut bytes, mut replies, mut lines) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        match get::<&str>(row, "part")? {
            "lines" => {
                let (first, body) = (get_count(row, "number")?, get::<&[u8]>(row, "body")?);
                if first != lines + 1 {
                    return Err(damaged(run_id, lines + 1, "it is missing"));
                }
                if get::<&[u8]>(row, "digest")? != digest(run_id, first, body) {
                    return Err(damaged(run_id, first, "its digest is different"));
                }
                lines = get_count(row, "last")?;
                bytes.extend_from_slice(body);
            }
            "reply" => replies.push(reply(run_id, row)?),
            _ if get_count(row, "number")? != lines => return Err(damaged(run_id, lines + 1, "it is missing")),
            _ => {}
        }
    }
    Ok(Journal { text: text("journal", run_id, bytes)?, replies })
}
