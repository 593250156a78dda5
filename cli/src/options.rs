//! Options shared by several commands.

use crate::exit::Failure;
use crate::formats::{DataFormat, RowOptions};
use crate::render::errors::Text;
use crate::render::keys;
use clap::Args;
use lisp_runtime::observe::HostFault;
use lisp_runtime::tools::Signature;
use lisp_runtime::{Check, Engine, EngineBuilder, Input, Keys, Limits, LimitsRequest, Observer, Tool};
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What a program gets.
#[derive(Clone, Debug, Args)]
pub(crate) struct Grant {
    /// Data file: CSV, TSV, NDJSON, YAML, TOML or text as its name says, else JSON. An object binds each key as data/KEY; any
    /// other value is data/STEM, the file name without its extension. NAME=FILE binds the whole file as data/NAME
    #[arg(long, value_name = "[NAME=]FILE")]
    data: Vec<String>,
    #[command(flatten)]
    pub(crate) rows: RowOptions,
    /// Bind a string as data/NAME
    #[arg(long, value_name = "NAME=TEXT")]
    arg: Vec<String>,
    /// Bind a JSON value as data/NAME
    #[arg(long, value_name = "NAME=JSON")]
    arg_json: Vec<String>,
    /// The definitions of earlier runs, a JSON object
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    /// A program to run first, for its definitions; its output is not shown
    #[arg(long, value_name = "FILE")]
    setup: Vec<PathBuf>,
    /// Fail when data/NAME is missing, instead of using nil
    #[arg(long)]
    strict_data: bool,
    /// The type the result must have, such as '{total :float}'
    #[arg(long, value_name = "TEXT")]
    signature: Option<String>,
}

/// Limits.
#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    /// Change limits, such as timeout_ms=5s,heap_bytes=64MB,loop_iterations=0; 0 turns a limit off where that is possible
    #[arg(long, value_name = "NAME=N", value_delimiter = ',')]
    limits: Vec<String>,
    /// Maximum number of threads for tool calls, 0 to 1024; run, check and slate call no tools [default: 64]
    #[arg(long, value_name = "N")]
    tool_threads: Option<usize>,
    /// Turn the keys of JSON objects into keywords, in data, memory and results of tools
    #[arg(long)]
    keywords: bool,
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

    /// Returns an engine for programs whose printed lines go straight to standard output. Printing is unlimited, unless
    /// the options say otherwise.
    pub(crate) fn engine_for_filters(&self) -> Result<Engine, Failure> {
        built(self.builder(Limits::default().with_print_chars(0).with_prints_bytes(0), &[])?)
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
        let builder = Engine::builder()
            .check(Check::Warn)
            .limits(defaults.with(&self.asked()?))
            .ceiling(Limits::unlimited().with(&asked("--ceiling", ceiling)?));
        let builder = if self.keywords { builder.json_keys(Keys::Keywords) } else { builder };
        let builder = match self.tool_threads {
            Some(threads) => builder.tool_threads(threads),
            None => builder,
        };
        Ok(builder.observer(StandardError))
    }
}

fn built(builder: EngineBuilder) -> Result<Engine, Failure> {
    builder.build().map_err(|error| Failure::Usage(error.to_string()))
}

/// Reports internal errors on standard error.
struct StandardError;

impl Observer for StandardError {
    fn host_fault(&self, fault: &HostFault<'_>) {
        let line = format!("ptcl: host_fault: {}\n", fault.message.replace('\n', " "));
        // If standard error is closed, the message is lost.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

/// Parses the limits of an option.
fn asked(option: &str, limits: &[String]) -> Result<LimitsRequest, Failure> {
    let mut asked = LimitsRequest::default();
    for limit in limits {
        let wrong = |why: String| Failure::Usage(format!("{option} {limit}: {why}"));
        let (name, value) = limit.split_once('=').ok_or_else(|| wrong("write NAME=N".to_owned()))?;
        // Check the name first: the unit depends on it, and an unknown name is the better error.
        asked.set(name, 0).map_err(|error| wrong(error.to_string()))?;
        let value = amount(name, value).ok_or_else(|| wrong(no_amount(name, value)))?;
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
    let number: u64 = digits.replace('_', "").parse().ok()?;
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

impl Grant {
    /// Returns the input that these options describe. The problem of a setup program is the outcome of the run, hence
    /// the nested result.
    pub(crate) fn input(&self, engine: &Engine) -> Result<Result<Input<'static>, SetupProblem>, Failure> {
        let mut input = Input::new().strict_data(self.strict_data);
        for option in &self.data {
            input = match data_of(option, self.rows)? {
                (Some(name), text) => input.json(name, text),
                (None, text) => input.json_object(text),
            };
        }
        self.input_beside(engine, input)
    }

    /// Returns the input for many runs. The data from files is imported once and shared.
    pub(crate) fn shared_input(&self, engine: &Engine) -> Result<Result<Input<'static>, SetupProblem>, Failure> {
        let mut input = Input::new().strict_data(self.strict_data);
        for option in &self.data {
            let set = match data_of(option, self.rows)? {
                (Some(name), text) => engine.import(&name, text),
                (None, text) => engine.import_object(text),
            };
            let set = set.map_err(|problem| Failure::Usage(format!("--data {option}: {}", problem.error.message)))?;
            input = input.data_set(&set);
        }
        self.input_beside(engine, input)
    }

    /// Adds everything but the data from files.
    fn input_beside(
        &self,
        engine: &Engine,
        mut input: Input<'static>,
    ) -> Result<Result<Input<'static>, SetupProblem>, Failure> {
        for argument in &self.arg {
            let (name, text) = named("--arg", argument)?;
            input = input.data(name.to_owned(), &text);
        }
        for argument in &self.arg_json {
            let (name, json) = named("--arg-json", argument)?;
            input = input.json(name.to_owned(), json.to_owned());
        }
        if let Some(path) = &self.memory {
            input = input.memory(read_file(path)?);
        }
        if let Some(signature) = &self.signature {
            Signature::parse(signature).map_err(|error| Failure::Usage(format!("--signature {signature}: {error}")))?;
            input = input.signature(signature.clone());
        }
        for path in &self.setup {
            let source = read_file(path)?;
            match engine.compile(&source) {
                Ok(program) => input = input.setup(&program),
                Err(problem) => {
                    let file = path.display().to_string();
                    return Ok(Err(SetupProblem { file, source, problem }));
                }
            }
        }
        Ok(Ok(input))
    }

    /// Returns the files that these options read.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let data = self.data.iter().map(|option| match option.split_once('=') {
            Some((name, file)) if !name.contains(['/', '.']) => PathBuf::from(file),
            _ => PathBuf::from(option),
        });
        data.chain(self.memory.clone()).chain(self.setup.clone()).collect()
    }

    /// Returns whether a name may be defined by the data. Objects are searched as text, not parsed.
    pub(crate) fn may_give(&self, name: &str) -> bool {
        let key = format!("\"{name}\"");
        let gives = |(bound, text): (Option<String>, String)| match bound {
            Some(bound) => bound == name,
            None => text.contains(&key),
        };
        self.names(name) || self.data.iter().filter_map(|option| data_of(option, self.rows).ok()).any(gives)
    }

    /// Returns the names of the data.
    pub(crate) fn given_names(&self) -> BTreeSet<String> {
        let bound = self.arg.iter().chain(&self.arg_json).filter_map(|argument| argument.split_once('='));
        let mut names: BTreeSet<String> = bound.map(|(name, _)| name.to_owned()).collect();
        // Data that cannot be read was reported before.
        for (name, text) in self.data.iter().filter_map(|option| data_of(option, self.rows).ok()) {
            match name {
                Some(name) => drop(names.insert(name)),
                None => {
                    let fields: BTreeMap<String, IgnoredAny> = serde_json::from_str(&text).unwrap_or_default();
                    names.extend(fields.into_keys());
                }
            }
        }
        names
    }

    /// Returns the data names as `data/NAME`, and the keys in the data as keywords.
    pub(crate) fn data_names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.given_names().iter().map(|name| format!("data/{name}")).collect();
        for (_, text) in self.data.iter().filter_map(|option| data_of(option, self.rows).ok()) {
            keys::collect(&text, &mut names);
        }
        names
    }

    /// Returns whether an option itself defines this name. Keys of objects in files are not considered.
    pub(crate) fn names(&self, name: &str) -> bool {
        let mut all = self.data.iter().chain(&self.arg).chain(&self.arg_json);
        all.any(|option| option.split_once('=').is_some_and(|(bound, _)| bound == name))
    }

    /// Returns the option that defined an input, by the index of the input. If the data from files `is_shared`, it does not
    /// count.
    pub(crate) fn input_option(&self, number: usize, is_shared: bool) -> Option<String> {
        let with = |option: &'static str| move |value: &String| format!("{option} {value}");
        let data = self.data.iter().map(with("--data")).chain(self.arg.iter().map(with("--arg")));
        let data = data.chain(self.arg_json.iter().map(with("--arg-json")));
        let memory = self.memory.iter().map(|path| format!("--memory {}", path.display()));
        data.chain(memory).nth(if is_shared { number + self.data.len() } else { number })
    }

    /// Returns a setup program and the name of its file.
    pub(crate) fn setup_text(&self, index: usize) -> Option<Text> {
        let path = self.setup.get(index)?;
        Some(Text { name: path.display().to_string(), source: read_file(path).ok()? })
    }
}

/// A setup program that does not compile.
#[derive(Debug)]
pub(crate) struct SetupProblem {
    pub(crate) file: String,
    pub(crate) source: String,
    pub(crate) problem: Box<lisp_runtime::Problem>,
}

/// Splits a NAME=VALUE argument.
fn named<'a>(option: &str, argument: &'a str) -> Result<(&'a str, &'a str), Failure> {
    let sides = argument.split_once('=').filter(|(name, _)| !name.is_empty());
    sides.ok_or_else(|| Failure::Usage(format!("{option} {argument}: write NAME=VALUE")))
}

/// Returns a data file as JSON and the name to bind it to. Without a name, a JSON object binds each of its keys.
fn data_of(option: &str, rows: RowOptions) -> Result<(Option<String>, String), Failure> {
    let json = |path: &Path| {
        let value = DataFormat::of_file(path).value(read_file(path)?, rows);
        value.map_err(|why| Failure::Usage(format!("--data {option}: {why}")))
    };
    if let Some((name, file)) = option.split_once('=')
        && !name.contains(['/', '.'])
    {
        if name.is_empty() || file.is_empty() {
            let missing = if name.is_empty() { "the name before" } else { "the file after" };
            return Err(Failure::Usage(format!("--data {option}: {missing} = is missing; write NAME=FILE")));
        }
        return Ok((Some(name.to_owned()), json(Path::new(file))?));
    }
    let path = Path::new(option);
    let text = json(path)?;
    if text.trim_start().starts_with('{') {
        return Ok((None, text));
    }
    match path.file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) => Ok((Some(stem.to_owned()), text)),
        None => {
            Err(Failure::Usage(format!("--data {option}: the file's name is not a name for data; write NAME={option}")))
        }
    }
}

/// Reads a file as text, without a byte order mark.
pub(crate) fn read_file(path: &Path) -> Result<String, Failure> {
    let failure = |error| Failure::File { path: path.to_owned(), error };
    let text = std::fs::read_to_string(path).map_err(failure)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Reads a program from a file, from standard input or from the command line.
pub(crate) fn read_program(file: Option<&Path>, expression: Option<&str>) -> Result<(String, String), Failure> {
    match (file, expression) {
        (_, Some(text)) => Ok(("-e".to_owned(), text.to_owned())),
        (Some(path), None) if path != Path::new("-") => Ok((path.display().to_string(), read_file(path)?)),
        (Some(_), None) => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text)?;
            Ok(("standard input".to_owned(), text))
        }
        (None, None) => {
            Err(Failure::Usage("no program given: pass a FILE, - for standard input, or -e EXPR".to_owned()))
        }
    }
}
