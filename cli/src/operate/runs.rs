//! `ptcl runs`: shows, answers, cancels and checks the runs of a store.

use super::show::{self, cell};
use super::{Place, open};
use crate::exit::{Exit, Failure};
use crate::output::print;
use crate::render::table::Table;
use crate::service::not_begun;
use lisp_server::config::Config;
use lisp_server::runs::{KnownRun, ListQuery, Operator, Refused, Reply, ReplyError, ServiceError};
use lisp_server::store::RunStatus;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// The maximum number of runs of a list.
const LIST: u32 = 1_000;
/// What to do while a service owns the file.
const INSTEAD: &str = "use its page or its HTTP API, which do the same";

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List runs, newest first
    List {
        /// Only runs with this status: queued, running, waiting, stuck or done
        #[arg(long, value_name = "STATUS", value_parser = status)]
        status: Option<RunStatus>,
        /// Only runs of this tenant
        #[arg(long, value_name = "NAME")]
        tenant: Option<String>,
        /// Maximum number of runs, at most 1000
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST)))]
        limit: u32,
        /// Start of the next page, as the previous page printed it
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
        /// Print JSON, one run per line
        #[arg(long)]
        json: bool,
    },
    /// Show a run with its open calls and its answer
    Show {
        /// ID of the run
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve an open call, so that it is made
    Approve {
        /// ID of the run
        id: String,
        /// Name of the call, as `ptcl runs show` prints it
        call: String,
        /// Arguments to make the call with, in place of its own
        #[arg(long, value_name = "JSON", value_parser = json)]
        arguments: Option<Box<RawValue>>,
        /// What the call waits for, as `ptcl runs show` prints it; needed for a call that may have been made already
        #[arg(long, value_name = "PHASE")]
        phase: Option<String>,
    },
    /// Reject an open call, so that it is not made
    Reject {
        /// ID of the run
        id: String,
        /// Name of the call, as `ptcl runs show` prints it
        call: String,
        /// The reason, which appears in the run's answer
        #[arg(long, value_name = "TEXT")]
        why: String,
        /// What the call waits for, as `ptcl runs show` prints it; needed for a call that may have been made already
        #[arg(long, value_name = "PHASE")]
        phase: Option<String>,
    },
    /// Send the result of an open call: one that a client answers, or one that may or may not have taken effect
    #[command(group = clap::ArgGroup::new("outcome").required(true))]
    Answer {
        /// ID of the run
        id: String,
        /// Name of the call, as `ptcl runs show` prints it
        call: String,
        /// The result of the call
        #[arg(long, value_name = "JSON", value_parser = json, group = "outcome")]
        result: Option<Box<RawValue>>,
        /// The message of the error, if the call failed
        #[arg(long, value_name = "TEXT", group = "outcome")]
        error: Option<String>,
        /// What the call waits for, as `ptcl runs show` prints it; the reply is refused if the call waits for something else
        #[arg(long, value_name = "PHASE")]
        phase: Option<String>,
    },
    /// Cancel a run
    Cancel {
        /// ID of the run
        id: String,
    },
    /// Try a stuck run again
    Retry {
        /// ID of the run
        id: String,
    },
    /// Replay all unfinished runs against the configured tools, without calling them, and list the runs that cannot continue
    Check {
        /// Print JSON, one run per line
        #[arg(long)]
        json: bool,
    },
}

fn status(name: &str) -> Result<RunStatus, String> {
    RunStatus::of(name).ok_or_else(|| {
        let names: Vec<&str> = RunStatus::ALL.iter().map(|status| status.name()).collect();
        format!("write one of {}", names.join(", "))
    })
}

fn json(text: &str) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text.to_owned()).map_err(|error| format!("it is not JSON: {error}"))
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    arguments.place.run(async |config| {
        let needs_tools = matches!(
            arguments.command,
            Command::Check { .. }
                | Command::Approve { arguments: Some(_), .. }
                | Command::Answer { result: Some(_), .. }
        );
        let store = open(&config, INSTEAD).await?;
        let operator = match needs_tools && arguments.place.config.is_some() {
            true => Operator::open(&config, store).await,
            false => Operator::without_tools(&config, store).map_err(ServiceError::from),
        };
        let operator = operator.map_err(|error| not_begun(&error))?;
        let done = command(&operator, &config, &arguments.command).await;
        let closed = operator.close().await;
        let exit = done?;
        closed.map_err(|error| Failure::Service(error.to_string()))?;
        Ok(exit)
    })
}

async fn command(operator: &Operator, config: &Config, command: &Command) -> Result<Exit, Failure> {
    let changed = match command {
        Command::List { status, tenant, limit, cursor, json } => {
            let max = usize::try_from(*limit).unwrap_or(usize::MAX);
            let query = ListQuery { status: *status, cursor: cursor.as_deref(), max };
            let listed = operator.list(tenant.as_deref(), query).await;
            return listed.map_or_else(refused, |(runs, next)| list(&runs, next.as_deref(), *json));
        }
        Command::Show { id, json } => {
            return match operator.show(id).await {
                Err(error) => refused(error),
                Ok(work) if *json => json_line(&work).and_then(|line| print(&line)).map(|()| Exit::Ok),
                Ok(work) => print(&show::text(&work)).map(|()| Exit::Ok),
            };
        }
        Command::Check { json } => return check(operator, *json).await,
        Command::Approve { id, call, arguments, phase } => {
            let (arguments, phase) = (arguments.clone(), phase.clone());
            let reply = Reply { approve: Some(true), arguments, phase, ..Reply::default() };
            operator.reply(id, call, &reply).await
        }
        Command::Reject { id, call, why, phase } => {
            let reply = Reply { reject: Some(why.clone()), phase: phase.clone(), ..Reply::default() };
            operator.reply(id, call, &reply).await
        }
        Command::Answer { id, call, result, error, phase } => {
            let error = error.clone().map(|message| ReplyError { message, code: None });
            let reply = Reply { result: result.clone(), error, phase: phase.clone(), ..Reply::default() };
            operator.reply(id, call, &reply).await
        }
        Command::Cancel { id } => {
            return operator.cancel(id).await.map_or_else(refused, |run| {
                let ends = match (run.state.status, config.store.is_shared()) {
                    (RunStatus::Done, _) => "done already",
                    (_, false) => "cancelled; it ends when the service starts",
                    (_, true) => "cancelled; a worker ends it",
                };
                print(&format!("{} is {ends}\n", run.state.run_id)).map(|()| Exit::Ok)
            });
        }
        Command::Retry { id } => operator.retry(id).await,
    };
    match changed {
        Err(error) => refused(error),
        Ok(run) => {
            let goes_on = match (run.state.status, config.store.is_shared()) {
                (RunStatus::Queued, false) => "; it continues when the service starts",
                (RunStatus::Queued, true) => "; a worker continues it",
                _ => "",
            };
            print(&format!("{} is {}{goes_on}\n", run.state.run_id, run.state.status))?;
            Ok(Exit::Ok)
        }
    }
}

/// What the state of the store does not allow is an error of the command; a store that fails is one of the system.
fn refused(error: Refused) -> Result<Exit, Failure> {
    match error {
        Refused::Store(_) | Refused::Fault(_) => Err(Failure::Service(error.to_string())),
        Refused::Invalid { field, message } if field == "cursor" => Err(Failure::Usage(format!("--cursor: {message}"))),
        Refused::Invalid { field, message } if field == "config" => Err(Failure::Usage(message)),
        error => {
            tell_line!("ptcl: {}", lisp_runtime::internal::visible(&error.to_string()));
            Ok(Exit::Fail)
        }
    }
}

/// Returns JSON on one line, also for readers that take other characters for line ends. JSON has them only in strings.
fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let mut line = serde_json::to_string(value).map_err(|error| Failure::Bug(error.to_string()))?;
    for (separator, escape) in [("\u{85}", "\\u0085"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")] {
        if line.contains(separator) {
            line = line.replace(separator, escape);
        }
    }
    Ok(line + "\n")
}

fn list(runs: &[KnownRun], next: Option<&str>, json: bool) -> Result<Exit, Failure> {
    let text = match json {
        true => runs.iter().map(json_line).collect::<Result<String, Failure>>()?,
        false => show::table_of(runs),
    };
    print(&text)?;
    if let Some(next) = next {
        tell_line!("there are more: add --cursor {next}");
    }
    Ok(Exit::Ok)
}

/// The result of checking a run, as JSON.
#[derive(Serialize)]
struct Checked<'a> {
    run_id: &'a str,
    tenant: &'a str,
    status: RunStatus,
    can_continue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

/// The statuses of runs that are not done, in the order in which runs come to them: one that goes on meanwhile is not missed.
const UNFINISHED: [RunStatus; 4] = [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting, RunStatus::Stuck];

async fn check(operator: &Operator, json: bool) -> Result<Exit, Failure> {
    let (mut seen, mut bad, mut lines) = (HashSet::new(), Vec::new(), String::new());
    for status in UNFINISHED {
        let mut cursor: Option<String> = None;
        loop {
            let query = ListQuery { status: Some(status), cursor: cursor.as_deref(), max: 100 };
            let (runs, next) = match operator.list(None, query).await {
                Ok(page) => page,
                Err(error) => return refused(error),
            };
            for run in runs {
                let (run_id, tenant) = (run.state.run_id.as_str(), run.tenant.as_str());
                if !seen.insert(run_id.to_owned()) {
                    continue;
                }
                let checked = match operator.check(run_id).await {
                    Ok(checked) => checked,
                    // It has ended and was deleted since.
                    Err(Refused::NotFound(_)) => {
                        seen.remove(run_id);
                        continue;
                    }
                    Err(error) => return refused(error),
                };
                let (can_continue, why) = (checked.is_ok(), checked.err());
                if json {
                    lines += &json_line(&Checked { run_id, tenant, status, can_continue, why: why.as_deref() })?;
                }
                bad.extend(why.map(|why| vec![cell(run_id, 36), cell(tenant, 12), why]));
            }
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
    }
    if json {
        print(&lines)?;
    } else {
        let mut text = String::new();
        for row in &mut bad {
            // The reason takes as many lines as it needs.
            let why = row.pop().unwrap_or_default();
            text += &Table::new(None, std::slice::from_ref(row)).whole();
            text += &show::indented(&why);
        }
        let (count, cannot) = (seen.len(), bad.len());
        let noun = if count == 1 { "run" } else { "runs" };
        text += &format!("{count} {noun} checked: {} can continue, {cannot} cannot\n", count - cannot);
        print(&text)?;
    }
    Ok(if bad.is_empty() { Exit::Ok } else { Exit::Fail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_one_line_for_every_reader() {
        let line = json_line(&"a\u{85}b\u{2028}c\u{2029}d\ne").unwrap_or_default();
        assert_eq!(line, "\"a\\u0085b\\u2028c\\u2029d\\ne\"\n");
    }
}
