//! Options shared by several commands.

use crate::exit::Failure;
use crate::formats::in_plain_words;
use crate::formats::{DataFormat, RowOptions};
use crate::render::errors::Text;
use crate::render::keys;
use clap::Args;
use lisp_runtime::tools::Signature;
use lisp_runtime::{Engine, Input};
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// A program to run first, for its definitions; its output is shown only if it fails, on standard error
    #[arg(long, value_name = "FILE")]
    setup: Vec<PathBuf>,
    /// Fail when data/NAME is missing, instead of using nil
    #[arg(long)]
    strict_data: bool,
    /// The type the result must have, such as '{total :float}'
    #[arg(long, value_name = "TEXT")]
    signature: Option<String>,
    /// The setup programs as they were read: a pipe can be read once.
    #[arg(skip)]
    setup_texts: Arc<Mutex<BTreeMap<usize, String>>>,
}

impl Grant {
    /// Returns the input that these options describe. The problem of a setup program is the outcome of the run, hence
    /// the nested result.
    pub(crate) fn input(&self, engine: &Engine) -> Result<Result<Input<'static>, SetupProblem>, Failure> {
        let mut input = Input::new().strict_data(self.strict_data);
        for option in &self.data {
            input = match data_of("--data", option, self.rows)? {
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
            let set = match data_of("--data", option, self.rows)? {
                (Some(name), text) => engine.import(&name, text),
                (None, text) => engine.import_object(text),
            };
            let set = set.map_err(|problem| {
                Failure::Usage(format!("--data {option}: {}", in_plain_words(&problem.error.message)))
            })?;
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
        for (index, path) in self.setup.iter().enumerate() {
            let source = read_file(path)?;
            self.setup_texts().insert(index, source.clone());
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
        let data = self.data.iter().map(|option| PathBuf::from(named_file(option).1));
        data.chain(self.memory.clone()).chain(self.setup.clone()).collect()
    }

    /// Returns the names of the data.
    pub(crate) fn given_names(&self) -> BTreeSet<String> {
        let bound = self.arg.iter().chain(&self.arg_json).filter_map(|argument| argument.split_once('='));
        let mut names: BTreeSet<String> = bound.map(|(name, _)| name.to_owned()).collect();
        // Data that cannot be read was reported before.
        for (name, text) in self.data.iter().filter_map(|option| data_of("--data", option, self.rows).ok()) {
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
        for (_, text) in self.data.iter().filter_map(|option| data_of("--data", option, self.rows).ok()) {
            keys::collect(&text, &mut names);
        }
        names
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

    /// Returns the file of a setup program that names this data.
    pub(crate) fn setup_that_names(&self, name: &str, engine: &Engine) -> Option<&Path> {
        let texts = self.setup_texts();
        let names = |source: &String| {
            engine.compile(source).is_ok_and(|program| program.data_names().any(|named| named == name))
        };
        let index = texts.iter().find(|(_, source)| names(source)).map(|(index, _)| *index)?;
        self.setup.get(index).map(PathBuf::as_path)
    }

    /// Returns a setup program and the name of its file.
    pub(crate) fn setup_text(&self, index: usize) -> Option<Text> {
        let path = self.setup.get(index)?;
        Some(Text { name: path.display().to_string(), source: self.setup_texts().get(&index)?.clone() })
    }

    fn setup_texts(&self) -> MutexGuard<'_, BTreeMap<usize, String>> {
        self.setup_texts.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Returns the file of an option, with the name to bind it to if the option has one.
pub(crate) fn named_file(option: &str) -> (Option<&str>, &str) {
    match option.split_once('=').filter(|(name, _)| !name.contains(['/', '.'])) {
        Some((name, file)) => (Some(name), file),
        None => (None, option),
    }
}

/// Returns a data file as JSON and the name to bind it to. Without a name, a JSON object binds each of its keys. `what` is the
/// option or command that names the file.
pub(crate) fn data_of(what: &str, option: &str, rows: RowOptions) -> Result<(Option<String>, String), Failure> {
    let wrong = |why: String| Failure::Usage(format!("{what} {option}: {why}"));
    let json = |path: &Path| DataFormat::of_file(path).value(read_file(path)?, rows).map_err(wrong);
    if let (Some(name), file) = named_file(option) {
        if name.is_empty() || file.is_empty() {
            let missing = if name.is_empty() { "the name before" } else { "the file after" };
            return Err(wrong(format!("{missing} = is missing; write NAME=FILE")));
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
        None => Err(wrong(format!("the file's name is not a name for data; write NAME={option}"))),
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
