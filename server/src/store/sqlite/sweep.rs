//! Deletes what is old, in steps: other operations go on in between.

use super::super::{Result, Sweep};
use super::reads::count;
use super::runs::cancel;
use super::writer::Write;
use rusqlite::params;

/// The maximum number of runs or sessions of a step.
const STEP: u16 = 256;
/// How many free pages a step gives back to the file system.
const PAGES: i64 = 512;

/// What a sweep does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Runs,
    Sessions,
    Cancel,
    Space,
}

/// Does a step of a sweep. Returns how many runs or sessions it deleted, and the stage of the next step, if any.
pub(super) fn step(write: &mut Write<'_>, sweep: Sweep, stage: Stage) -> Result<(u64, Option<Stage>)> {
    match stage {
        Stage::Runs => {
            let deleted = write
                .db
                .prepare_cached(
                    "DELETE FROM runs WHERE run_id IN
                         (SELECT run_id FROM runs WHERE status = 'done' AND updated_ms < ?1 LIMIT ?2)",
                )?
                .execute(params![sweep.finished_before_ms, STEP])?;
            Ok((deleted as u64, Some(if deleted < usize::from(STEP) { Stage::Sessions } else { stage })))
        }
        Stage::Sessions => {
            let deleted = write
                .db
                .prepare_cached(
                    "DELETE FROM sessions WHERE session_id IN
                         (SELECT session_id FROM sessions
                          WHERE updated_ms < ?1 AND (turn_until_ms IS NULL OR turn_until_ms <= ?2) LIMIT ?3)",
                )?
                .execute(params![sweep.sessions_before_ms, write.steady_ms, STEP])?;
            Ok((deleted as u64, Some(if deleted < usize::from(STEP) { Stage::Cancel } else { stage })))
        }
        Stage::Cancel => {
            let Some(before_ms) = sweep.submitted_before_ms else { return Ok((0, Some(Stage::Space))) };
            let cancelled = cancel_old(write, before_ms)?;
            Ok((0, Some(if cancelled < usize::from(STEP) { Stage::Space } else { stage })))
        }
        Stage::Space => Ok((0, give_back(write)?.then_some(stage))),
    }
}

fn cancel_old(write: &mut Write<'_>, before_ms: i64) -> Result<usize> {
    let mut select = write.db.prepare_cached(
        "SELECT run_id FROM runs
         WHERE shown IN ('queued', 'running', 'waiting', 'stuck') AND created_ms < ?1 AND NOT cancelled LIMIT ?2",
    )?;
    let old = select.query_map(params![before_ms, STEP], |row| row.get(0))?;
    let old = old.collect::<rusqlite::Result<Vec<String>>>()?;
    for run_id in &old {
        cancel(write, run_id)?;
    }
    Ok(old.len())
}

/// Gives free pages back. Returns whether there are more.
fn give_back(write: &Write<'_>) -> Result<bool> {
    let pragma = |name: &str| -> Result<u64> {
        Ok(count(write.db.prepare_cached(&format!("PRAGMA {name}"))?.query_row([], |row| row.get(0))?))
    };
    // 2 is incremental. Files of the first versions keep their free pages.
    let free = pragma("freelist_count")?;
    if free == 0 || pragma("auto_vacuum")? != 2 {
        return Ok(false);
    }
    let mut vacuum = write.db.prepare_cached(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    Ok((1..free).contains(&pragma("freelist_count")?))
}
