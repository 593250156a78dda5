//! Limits of runs, as the options give them.

use crate::exit::Failure;
use clap::Args;
use lisp_runtime::observe::HostFault;
use lisp_runtime::{Check, Engine, EngineBuilder, Keys, Limits, LimitsRequest, Observer, Tool};
use std::collections::BTreeSet;

/// The options.
#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    /// Change limits, such as timeout_ms=5s,heap_bytes=64MB,loop_iterations=0; 0 turns a limit off where that is possible
    #[arg(long, value_name = "NAME=N", value_delimiter = ',')]
    limits: Vec<String>,
    /// Maximum number of threads for tool calls, 0 to 1024; only batch, repl and sandbox call tools [default: 64]
    #[arg(long, value_name = "N")]
    tool_threads: Option<usize>,
    /// Turn the keys of JSON objects into keywords, in data, memory and results of tools
    #[arg(long)]
    keywords: bool,
}

/// Whose programs run.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TrustOption {
    /// Use the strict limits for programs of others, such as those of a model, in place of those for one's own
    #[arg(long)]
    untrusted: bool,
}

impl TrustOption {
    /// Returns the limits if the options do not set others. Printed lines are shown as they come, so they have no limit.
    pub(crate) fn limits(self) -> Limits {
        let limits = if self.untrusted { Limits::default() } else { of_own_programs() };
        limits.with_print_chars(0).with_prints_bytes(0)
    }
}

/// The limits of programs that a person runs on data of their own: what a mistake must not exceed.
fn of_own_programs() -> Limits {
    const HOUR: u64 = 3_600_000;
    const GB: u64 = 1_000_000_000;
    Limits::default()
        .with_timeout_ms(HOUR)
        .with_parallel_timeout_ms(HOUR)
        .with_heap_bytes(GB)
        // Time bounds these.
        .with_fuel(0)
        .with_loop_iterations(0)
        .with_program_bytes(100_000_000)
        .with_symbols(1_000_000)
        .with_result_bytes(GB)
        .with_session_definitions(100_000)
        .with_session_programs(100_000)
        .with_session_program_bytes(GB)
        .with_session_bytes(GB)
}

impl LimitOptions {
    /// Returns an engine with these limits, which checks programs before they run. Requests may ask for higher limits: the
    /// user of the command is both operator and client.
    pub(crate) fn engine(&self) -> Result<Engine, Failure> {
        self.engine_under(&[])
    }

    /// Returns an engine like [`LimitOptions::engine`], with these tools of `--tools`.
    pub(crate) fn engine_with_tools(&self, tools: Vec<Tool>) -> Result<Engine, Failure> {
        let builder = tools.into_iter().fold(self.builder(Limits::default(), &[])?, EngineBuilder::grant);
        builder.build().map_err(|error| Failure::Usage(format!("--tools: {error}")))
    }

    /// Returns an engine with these limits, and others for what the options do not set.
    pub(crate) fn engine_over(&self, defaults: Limits) -> Result<Engine, Failure> {
        built(self.builder(defaults, &[])?)
    }

    /// Returns the limits of `--limits`.
    pub(crate) fn asked(&self) -> Result<LimitsRequest, Failure> {
        asked("--limits", &self.limits)
    }

    /// Returns an engine with these limits. Requests may ask for limits up to the ceiling.
    pub(crate) fn engine_under(&self, ceiling: &[String]) -> Result<Engine, Failure> {
        built(self.builder(Limits::default(), ceiling)?)
    }

    fn builder(&self, defaults: Limits, ceiling: &[String]) -> Result<EngineBuilder, Failure> {
        let (asked, highest) = (self.asked()?, asked("--ceiling", ceiling)?);
        check_ceiling(&asked, &highest)?;
        let builder = Engine::builder()
            .check(Check::Warn)
            .limits(defaults.with(&asked))
            .ceiling(Limits::unlimited().with(&highest));
        let builder = if self.keywords { builder.json_keys(Keys::Keywords) } else { builder };
        let builder = match self.tool_threads {
            Some(threads) => builder.tool_threads(threads),
            None => builder,
        };
        Ok(builder.observer(StandardError))
    }
}

/// Checks that no limit is above the ceiling of the same command line, which would lower it.
fn check_ceiling(asked: &LimitsRequest, ceiling: &LimitsRequest) -> Result<(), Failure> {
    let limits = Limits::unlimited().with(asked);
    let lowered = limits.min(&Limits::unlimited().with(ceiling));
    let (asked, limits, lowered) = (values(asked), values(&limits), values(&lowered));
    let ceiling = values(ceiling);
    for name in Limits::NAMES.iter().filter(|name| asked.get(name).is_some_and(|value| !value.is_null())) {
        let (limit, highest) = (&limits[name], &lowered[name]);
        if limit != highest && ceiling.get(name).is_some_and(|value| !value.is_null()) {
            let above = if *limit == 0 { "no limit, which is above the ceiling" } else { "above the ceiling" };
            let why = format!(
                "--limits {name}={limit} is {above}, --ceiling {name}={highest}: lower it, or raise the ceiling"
            );
            return Err(Failure::Usage(why));
        }
    }
    Ok(())
}

/// Returns limits by their names.
pub(crate) fn values(limits: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(limits).unwrap_or_default()
}

/// The maximum number of workers; the engine counts higher values as this one.
const MAX_WORKERS: u64 = 1_024;

fn built(builder: EngineBuilder) -> Result<Engine, Failure> {
    builder.build().map_err(|error| Failure::Usage(error.to_string()))
}

/// Reports internal errors on standard error.
struct StandardError;

impl Observer for StandardError {
    fn host_fault(&self, fault: &HostFault<'_>) {
        tell_line!("ptcl: host_fault: {}", fault.message.replace('\n', " "));
    }
}

/// Lists limits with their values.
pub(crate) fn listed(limits: &Limits) -> String {
    Limits::NAMES.iter().filter_map(|name| line(limits, name)).map(|line| format!("  {line}")).collect()
}

/// Returns a limit with its value; `None` if there is no such limit.
pub(crate) fn line(limits: &Limits, name: &str) -> Option<String> {
    Limits::NAMES.contains(&name).then(|| format!("{name:<24} {}\n", amount_of(limits, name)))
}

/// Lists the limits that were asked for, with their values before and after.
pub(crate) fn changed(asked: &LimitsRequest, before: &Limits, after: &Limits) -> String {
    let asked = values(asked);
    let names = Limits::NAMES.iter().filter(|name| asked.get(name).is_some_and(|value| !value.is_null()));
    names.map(|name| format!("{name}: {} -> {}\n", amount_of(before, name), amount_of(after, name))).collect()
}

fn amount_of(limits: &Limits, name: &str) -> String {
    let (values, loosest) = (values(limits), values(&Limits::unlimited()));
    let note = if values[name] == 0 && loosest[name] == 0 { " (no limit)" } else { "" };
    format!("{}{note}", values[name])
}

/// Parses the limits of an option.
pub(crate) fn asked(option: &str, limits: &[String]) -> Result<LimitsRequest, Failure> {
    let mut asked = LimitsRequest::default();
    let mut names = BTreeSet::new();
    for limit in limits {
        let wrong = |why: String| Failure::Usage(format!("{option} {limit}: {why}"));
        let (name, value) = limit.split_once('=').ok_or_else(|| wrong("write NAME=N".to_owned()))?;
        // Check the name first: the unit depends on it, and an unknown name is the better error.
        asked.set(name, 0).map_err(|error| wrong(error.to_string()))?;
        if !names.insert(name) {
            return Err(wrong(format!("{name} is given twice")));
        }
        let value = amount(name, value).ok_or_else(|| wrong(no_amount(name, value)))?;
        if name == "parallel_workers" && value > MAX_WORKERS {
            return Err(wrong(format!("the maximum is {MAX_WORKERS}")));
        }
        asked.set(name, value).map_err(|error| wrong(error.to_string()))?;
    }
    Ok(asked)
}

/// The units of a limit: of time, of bytes, or of plain numbers.
fn units(name: &str) -> &'static [(&'static str, u64)] {
    match name {
        _ if name.ends_with("_ms") => &[("ms", 1), ("s", 1_000), ("min", 60_000)],
        _ if name.ends_with("_bytes") => &[
            ("kB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ],
        _ => &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)],
    }
}

/// Parses the value of a limit, with an optional unit.
fn amount(name: &str, value: &str) -> Option<u64> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    // No sign, and an underscore only between digits.
    let is_plain = digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let number: u64 = digits.replace('_', "").parse().ok().filter(|_| is_plain)?;
    match &value[digits.len()..] {
        "" => Some(number),
        unit => number.checked_mul(units(name).iter().find(|(known, _)| *known == unit)?.1),
    }
}

fn no_amount(name: &str, value: &str) -> String {
    let units: Vec<&str> = units(name).iter().map(|(unit, _)| *unit).collect();
    format!(
        "{value} is not a whole number, or is too large; one of these units may follow the number: {}",
        units.join(" ")
    )
}
