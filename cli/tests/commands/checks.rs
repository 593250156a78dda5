//! `ptcl check`, and what a run announces of its program.

use super::{err, file, out, ptcl};

#[test]
fn check_finds_faults_without_running() {
    let good = file("good.clj", "(println data/x) (tool/f {})");
    let done = ptcl(&["check", &good.display().to_string()], "");
    assert!(out(&done).ends_with("no faults; it uses data/x tool/f\n"), "{}{}", out(&done), err(&done));
    let done = ptcl(&["check", "-"], "(defn f [x] (g x))");
    assert_eq!(done.status.code(), Some(3));
    assert!(err(&done).contains("unbound_var"));
}

#[test]
fn check_knows_the_data_and_the_tools() {
    let data =
        file("check-data.json", r#"{"orders": [{"id": 1, "total": 9, "status": "paid"}]}"#).display().to_string();
    let tools = file("check-tools.json", r#"{"pay": "(to :string, amount :int) -> :bool"}"#).display().to_string();
    let check = |more: &[&str]| ptcl(&[&["check", "--data", &data, "--tools", &tools][..], more].concat(), "");
    let done = check(&["-e", "(filter #(= (:status %) :paid) data/orders)\n(tool/pay {:to \"a\" :amuont 5})"]);
    assert_eq!((out(&done).as_str(), done.status.code()), ("-e: 2 warnings; it uses data/orders tool/pay\n", Some(1)));
    for part in [
        "never_equal",
        "this compares the keyword :paid with strings, which are never equal",
        "help: write \"paid\"",
        "[-e:2:1]",
        "help: write :amount",
    ] {
        assert!(err(&done).contains(part), "{part}: {}", err(&done));
    }
    // The exit code is the highest of several programs. Nothing of them runs.
    let good = file("check-good.clj", "(println 1) (tool/pay {:to \"a\" :amount (:total (first data/orders))})");
    let (good, bad) = (good.display().to_string(), file("check-bad.clj", "(tool/pya {})").display().to_string());
    let done = check(&[&good, &bad]);
    assert_eq!(out(&done), format!("{good}: no faults; it uses data/orders tool/pay\n"));
    assert!(done.status.code() == Some(3) && err(&done).contains("did you mean tool/pay?"), "{}", err(&done));
    assert_eq!(check(&[&good]).status.code(), Some(0));
    let done = check(&["--json", &good, &bad]);
    let lines: Vec<serde_json::Value> =
        out(&done).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0], serde_json::json!({ "file": good, "warnings": [] }));
    assert_eq!(
        (&lines[1]["file"], &lines[1]["error"]["reason"]),
        (&bad.clone().into(), &"unknown_tool".into()),
        "{lines:?}"
    );
    assert!(done.status.code() == Some(3) && err(&done).is_empty(), "{}", err(&done));
    let line = out(&check(&["--json", "-e", "(:totl (first data/orders))"]));
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(
        line["warnings"],
        serde_json::json!([{
            "kind": "unknown_key", "message": "no map here has the key :totl; they have :total", "line": 1, "column": 1,
            "end_line": 1, "end_column": 28, "repair": "write :total",
        }])
    );
    let done = check(&["-e", "(count data/order)"]);
    let said = "data/order is not given, so it is nil; data/orders is";
    assert!(err(&done).contains(said) && err(&done).contains("write data/orders"), "{}", err(&done));
    assert_eq!((out(&done).as_str(), done.status.code()), ("-e: 1 warning; it uses data/order\n", Some(1)));
    // What is given is read as for a run.
    let wrong = file("check-wrong.json", "{\"orders\": [}").display().to_string();
    for (more, code, said) in [
        (&[][..], 2, "no program given"),
        (&["-e", "1", &good], 2, "cannot be used with"),
        (&["-e", "1", "--data", &wrong], 2, "check-wrong.json: cannot import the data"),
        (&["-e", "1", "--arg-json", "x={"], 2, "--arg-json x={: cannot import data/x"),
        (&["-e", "1", "--setup", &bad], 3, "unknown_tool"),
    ] {
        let done = check(more);
        assert_eq!((done.status.code(), out(&done).as_str()), (Some(code), ""), "{more:?}");
        assert!(err(&done).contains(said), "{more:?}: {}", err(&done));
    }
    let done = ptcl(&["check", "-e", "1", "--tools", &wrong], "");
    assert!(done.status.code() == Some(2) && err(&done).contains("check-wrong.json: "), "{}", err(&done));
}

#[test]
fn data_that_is_not_given_is_said() {
    let orders = file("orders.json", "{\"orders\": [1, 2]}").display().to_string();
    let run = |program: &str| ptcl(&["run", "--data", &orders, "-e", program], "");
    let done = run("(count data/order)");
    assert_eq!((out(&done).as_str(), done.status.code()), ("0\n", Some(0)));
    let said =
        "ptcl: warning at line 1, column 8: data/order is not given, so it is nil; data/orders is; write data/orders\n";
    assert_eq!(err(&done), said);
    assert_eq!(err(&run("(count data/orders)")) + &err(&run("(or data/limit 3)")), "");
    // What an object of a file gives need not come from standard input.
    let with_in = file("with_in.json", "{\"in\": 5}").display().to_string();
    assert_eq!(out(&ptcl(&["run", "--data", &with_in, "-e", "data/in"], "")), "5\n");
    for (input, said) in [
        ("{\"a\": 1}\n{\"a\": 2}\n", "invalid JSON at line 2, column 1: trailing characters"),
        ("", "expected a JSON value, got an empty string"),
    ] {
        let done = ptcl(&["run", "-e", "data/in"], input);
        assert!(err(&done).contains(said) && err(&done).contains("--lines"), "{}", err(&done));
        assert_eq!(done.status.code(), Some(2));
    }
    let said = err(&ptcl(&["run", "--lines", "-e", "data/in"], "{\"a\": 1}\n{\"a\"\n"));
    assert!(
        said.contains("line 2") && said.contains("invalid JSON") && said.contains("help: each line must be"),
        "{said}"
    );
}

/// A misspelt key is announced, and once for all lines.
#[test]
fn a_misspelt_key_is_announced() {
    let (program, data) = ("(:totl data/in)", "{\"total\": 1}\n");
    let once = ptcl(&["run", "-e", program], data);
    assert_eq!(out(&once), "nil\n");
    assert!(err(&once).contains("the key :totl") && err(&once).contains("write :total"), "{}", err(&once));
    let by_line = ptcl(&["run", "--lines", "-e", program], &data.repeat(3));
    assert_eq!(out(&by_line), "nil\n".repeat(3));
    assert_eq!(err(&by_line), err(&once).replace(":total\n", ":total (for line 1 of the input)\n"));
}
