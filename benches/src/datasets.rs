//! Whole programs over data sets, from text to text: those of `examples/`, and those of a folder of public data sets
//! that is no part of this repository. `NAME.expected.json` says which data set `NAME.clj` reads.

use lisp_runtime::{DataSet, Engine, Input, Limits, Outcome, Program};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A program and the data set that it reads.
#[derive(Debug)]
pub struct DataProgram {
    /// Its file's name without the ending.
    pub name: String,
    /// Its text.
    pub source: String,
    /// The name of its data set.
    pub data: String,
    /// The data set's file.
    pub file: PathBuf,
    /// The data set as JSON text.
    pub json: String,
    /// The data set is an object whose entries are data sets.
    pub entries: bool,
    /// What the file says of the answer.
    pub expected: Value,
}

/// The folder of data sets: `PTCL_DATA`, or `../shared/data` beside the repository.
pub fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("PTCL_DATA").map_or_else(|| repository().join("../shared/data"), PathBuf::from);
    folder.join("programs").is_dir().then_some(folder)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The programs of the folder of data sets when there is one, then the examples.
pub fn programs() -> Vec<DataProgram> {
    let mut all = folder().map_or_else(Vec::new, |folder| programs_of(&folder.join("programs"), &folder, false));
    let examples = repository().join("examples");
    all.extend(programs_of(&examples, &examples, true));
    all
}

/// Those of one folder, by name. In `examples/` an object as a data set has data sets as its entries.
fn programs_of(folder: &Path, data_folder: &Path, entries: bool) -> Vec<DataProgram> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "clj"));
    paths.sort();
    let program = |path: &PathBuf| {
        let expected: Value = serde_json::from_str(&read(&path.with_extension("expected.json"))).expect("JSON");
        let data = expected["data"].as_str().expect("a data set").to_owned();
        let file = data_folder.join(&data).with_extension("json");
        let json = read(&file);
        DataProgram {
            name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
            source: read(path),
            entries: entries && json.starts_with('{'),
            data,
            file,
            json,
            expected,
        }
    };
    paths.iter().map(program).collect()
}

/// An engine with the limits that the programs are given: the defaults, and time enough for a busy machine.
pub fn engine() -> Engine {
    let limits = Limits::default().with_loop_iterations(10_000).with_timeout_ms(60_000);
    Engine::builder().limits(limits).build().expect("an engine")
}

impl DataProgram {
    /// Brings the data in, compiles and runs.
    pub fn eval(&self, engine: &Engine) -> Outcome {
        let input = Input::new();
        let input = if self.entries { input.json_object(&self.json) } else { input.json(&*self.data, &self.json) };
        engine.eval(&self.source, input)
    }

    /// Brings its data in from their text, and nothing else.
    pub fn import(&self, engine: &Engine, json: String) -> DataSet {
        if self.entries { engine.import_object(json) } else { engine.import(&self.data, json) }.expect("a data set")
    }

    /// Compiles and nothing else.
    pub fn compile(&self, engine: &Engine) -> Program {
        engine.compile(&self.source).expect("a program")
    }
}

/// The answer as text: the lines that were printed, then the value as JSON.
pub fn answer(outcome: &Outcome) -> String {
    let mut text = String::new();
    for line in &outcome.prints {
        text.push_str(line);
        text.push('\n');
    }
    match (outcome.json(), outcome.problem()) {
        (Some(json), _) => text + json,
        (None, Some(problem)) => error(problem.reason().name()),
        (None, None) => error("no JSON"),
    }
}

/// The answer of a program with a fault.
pub fn error(reason: &str) -> String {
    format!(r#"{{"error":"{reason}"}}"#)
}

/// What was printed, and the value.
pub fn read(answer: &str) -> (&str, Value) {
    let (printed, json) = answer.rsplit_once('\n').unwrap_or(("", answer));
    (printed, serde_json::from_str(json).unwrap_or_else(|_| json.into()))
}

/// An answer as [`read`] takes it, with all numbers as floats: not every language tells `6` from `6.0`.
pub fn read_as_floats(answer: &str) -> (&str, Value) {
    let (printed, value) = read(answer);
    (printed, as_floats(value))
}

fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(elements) => elements.into_iter().map(as_floats).collect(),
        Value::Object(entries) => entries.into_iter().map(|(key, value)| (key, as_floats(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hand;

    #[test]
    fn the_programs_and_handwritten_rust_answer_the_same() {
        let (engine, programs) = (engine(), programs());
        assert!(programs.len() >= 4);
        for program in &programs {
            let outcome = program.eval(&engine);
            // Where the reference has an error there may be a value.
            if let Some(text) = program.expected["text"].as_str() {
                assert_eq!(outcome.text(), Some(text), "{}", program.name);
            }
            let rust = hand::program(&program.name).expect("handwritten Rust");
            assert_eq!(read(&rust(&program.json)), read(&answer(&outcome)), "{}", program.name);
        }
    }
}
