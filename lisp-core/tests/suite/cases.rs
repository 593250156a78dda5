//! Programs of the language with what they answer, from `cases/*.clj`: blocks with blank lines between them, each a
//! program, then the lines it prints as `;> line` where that is the point, and a line `;=> value` or `;! reason`. A
//! block of comments alone is a heading.

use std::fs;
use std::path::Path;

/// A program, what it is to print and to answer (a reason has `!` in front), and the line it begins on.
struct Case {
    line: usize,
    program: String,
    prints: Vec<String>,
    want: String,
}

fn cases(text: &str) -> Vec<Case> {
    let mut found = Vec::new();
    let (mut program, mut prints): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for (i, line) in text.lines().enumerate() {
        let want = match (line.strip_prefix(";=> "), line.strip_prefix(";! ")) {
            (Some(value), _) => value.to_owned(),
            (None, Some(reason)) => format!("!{reason}"),
            (None, None) if line.trim().is_empty() => {
                assert!(program.iter().all(|l| l.starts_with(";;")), "line {i}: the block before has no answer");
                program.clear();
                continue;
            }
            (None, None) => {
                match line.strip_prefix(";>") {
                    Some(printed) => prints.push(printed.strip_prefix(' ').unwrap_or_default().to_owned()),
                    None => program.push(line),
                }
                continue;
            }
        };
        assert!(!program.is_empty(), "line {}: an answer without a program", i + 1);
        let line = i + 1 - program.len() - prints.len();
        found.push(Case { line, program: program.join("\n"), prints: std::mem::take(&mut prints), want });
        program.clear();
    }
    assert!(program.is_empty(), "the last block has no answer");
    found
}

#[test]
fn programs_answer_what_they_should() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("the cases are there").filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(file).expect("a case file is readable");
        for case in cases(&text) {
            count += 1;
            // In one go, and interrupted wherever a run can be.
            for slice in [u64::MAX / 4, 1] {
                let (answer, prints) = crate::common::run(&case.program, slice);
                let place = format!("{name}:{} in slices of {slice}: {}", case.line, case.program);
                wrong.extend(
                    crate::common::difference(&answer, &case.want).map(|difference| format!("{place}\n{difference}")),
                );
                if !case.prints.is_empty() && prints.join("\n") != case.prints.join("\n") {
                    wrong.push(format!("{place}\n  printed {prints:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 150, "only {count} cases were found");
}
