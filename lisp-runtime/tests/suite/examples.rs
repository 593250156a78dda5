//! Whole programs over whole data sets: those in `examples/`, and those of a folder beside the repository when it is
//! there. `NAME.expected.json` says what `NAME.clj` answers: `data` (the data set's name), `outcome` and `text`, or
//! `error`, and `prints`.

use lisp_runtime::{Engine, Input, Limits, Outcome};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    data: String,
    outcome: Option<String>,
    text: Option<String>,
    error: Option<String>,
    #[serde(default)]
    prints: Vec<String>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs every program of a folder over its data; answers how many there are.
fn run_all(programs: &Path, data: &Path, limits: Limits, whole_file: bool) -> usize {
    let engine = Engine::builder().limits(limits).build().expect("an engine");
    let mut names: Vec<PathBuf> =
        fs::read_dir(programs).expect("programs").map(|entry| entry.expect("a file").path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "clj"));
    names.sort();
    for path in &names {
        let expected = fs::read_to_string(path.with_extension("expected.json")).expect("what is expected");
        let expected: Expected = serde_json::from_str(&expected).expect("what is expected is JSON");
        let source = fs::read_to_string(path).expect("a program");
        let json = fs::read_to_string(data.join(&expected.data).with_extension("json")).expect("its data");
        let input = match whole_file || !json.starts_with('{') {
            true => Input::new().json(expected.data.clone(), json),
            false => Input::new().json_object(json),
        };
        let outcome = engine.eval(&source, input);
        // Where the reference has an error there may be a value.
        if whole_file && expected.error.is_some() && outcome.problem().is_none() {
            continue;
        }
        check(&path.display().to_string(), &outcome, &expected);
    }
    names.len()
}

fn check(name: &str, outcome: &Outcome, expected: &Expected) {
    let kind = outcome.kind().map(|kind| format!("{kind:?}").to_lowercase());
    assert_eq!(
        outcome.problem().map(|p| p.reason().name()),
        expected.error.as_deref(),
        "{name}: {:?}",
        outcome.problem()
    );
    assert_eq!(kind, expected.outcome, "{name}");
    assert_eq!(outcome.text(), expected.text.as_deref(), "{name}");
    assert_eq!(outcome.prints, expected.prints, "{name}");
}

#[test]
fn examples_answer_what_is_expected() {
    let examples = repository().join("examples");
    assert!(run_all(&examples, &examples, Limits::default(), false) >= 4);
}

#[test]
fn programs_beside_the_repository_answer_what_is_expected() {
    let folders = ["../shared/data", "../../shared/data"].map(|data| repository().join(data));
    if let Some(data) = folders.iter().find(|data| data.is_dir()) {
        run_all(&data.join("programs"), data, Limits::default().with_loop_iterations(10_000), true);
    }
}
