//! The examples of `docs/signatures.md` are run: rows of a signature, a call of a tool that returns its arguments, and what
//! comes of it.

use lisp_runtime::{Engine, Input, Tool};

fn code(cell: &str) -> Option<&str> {
    cell.trim().strip_prefix('`')?.strip_suffix('`')
}

#[test]
fn the_examples_of_the_document() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/signatures.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let mut rows = 0;
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let &[signature, call, wanted] = &cells[..] else { continue };
        let (Some(signature), Some(call), Some(wanted)) = (code(signature), code(call), code(wanted)) else { continue };
        rows += 1;
        let engine = Engine::builder().grant(Tool::echo("t").signature(signature)).build().expect(line);
        let outcome = engine.eval(call, Input::new());
        let came = match outcome.problem() {
            Some(problem) => format!("!{}", problem.error.message),
            None => outcome.json().unwrap_or_default().to_owned(),
        };
        assert_eq!(came, wanted, "{line}");
    }
    assert!(rows >= 9, "{rows} rows");
}
