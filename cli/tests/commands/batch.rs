//! `ptcl batch`: answers to requests, a line each.

use super::{err, out, ptcl};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn a_line_that_is_no_request_is_told_so_in_plain_words() {
    let lines =
        "[]\n[{\"id\":7}]\n5\nnull\n\"x\"\n{\"program\":\"1\",\"tools\":{\"t\":5}}\n{\"program\":\"1\",\"limits\":7}\n";
    let done = ptcl(&["batch"], lines);
    assert_eq!(out(&done).lines().count(), 7);
    for line in out(&done).lines() {
        assert!(line.contains("not a request: ") && !line.contains("struct"), "{line}");
        assert!(!line.contains("\"id\""), "{line}");
    }
}

#[test]
fn batch_answers_in_order_whatever_comes() {
    let mut requests = String::new();
    for id in 0..200 {
        // The first ones take longest.
        let delay = if id % 50 == 0 { 30 } else { 0 };
        requests += &format!(
            "{{\"id\": {id}, \"program\": \"(tool/slow {{:n {id}}})\", \"tools\": {{\"slow\": {{\"echo\": true, \"delay_ms\": {delay}}}}}}}\n"
        );
        if id % 40 == 0 {
            requests += "\nnonsense\n";
        }
    }
    requests += r#"{"id": 200, "program": "(loop [] (recur))", "limits": {"loop_iterations": 0, "timeout_ms": 20}}"#;
    let done = ptcl(&["batch"], &requests);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let answers: Vec<serde_json::Value> =
        out(&done).lines().map(|line| serde_json::from_str(line).expect("an answer")).collect();
    let (good, bad): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.get("id").is_some());
    assert_eq!(bad.len(), 5);
    assert!(bad.iter().all(|answer| answer["error"]["reason"] == "parse_error"));
    let ids: Vec<_> = good.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids, (0..=200).collect::<Vec<_>>());
    assert_eq!(good[7]["value"]["n"], 7);
    assert_eq!(good[200]["verdict"], "timeout");
}

#[test]
fn batch_answers_before_the_input_ends() {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .arg("batch")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ptcl starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("a pipe"));
    for n in 0..3 {
        writeln!(input, "{{\"program\": \"{n}\"}}").expect("a request");
        let mut line = String::new();
        answers.read_line(&mut line).expect("an answer");
        assert!(line.contains(&format!("\"value\":{n}")), "{line}");
    }
    drop(input);
    assert!(child.wait().expect("ptcl ends").success());
}

#[test]
fn a_ceiling_holds_whatever_a_request_asks_for() {
    let requests = "{\"program\":\"1\"}\n{\"program\":\"1\",\"limits\":{\"fuel\":50}}\n{\"program\":\"1\",\"limits\":{\"fuel\":0}}\n";
    let fuel = |options: &[&str]| -> Vec<u64> {
        let done = ptcl(&[&["batch"], options].concat(), requests);
        let limit = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["limits"]["fuel"].as_u64();
        out(&done).lines().filter_map(limit).collect()
    };
    assert_eq!(fuel(&["--limits", "fuel=10"]), [10, 50, 0]);
    assert_eq!(fuel(&["--limits", "fuel=10", "--ceiling", "fuel=20"]), [10, 20, 20]);
    assert_eq!(fuel(&["--ceiling", "fuel=20"]), [20, 20, 20]);
    let done = ptcl(&["batch", "--ceiling", "fuels=20"], "");
    assert_eq!(done.status.code(), Some(2));
    assert!(err(&done).contains("--ceiling fuels=20: unknown limit fuels"), "{}", err(&done));
}

#[test]
fn a_line_that_is_too_long_has_an_error_of_its_own() {
    let fits = "{\"program\":\"(+ 1 2)\"}";
    let input = format!("{fits}\n{fits:<24}\n{}\n{fits}\n{fits} ", "[".repeat(100_000));
    let done = ptcl(&["batch", "--line-bytes", "23"], &input);
    let answers: Vec<serde_json::Value> =
        out(&done).lines().map(|line| serde_json::from_str(line).expect("an answer")).collect();
    let reasons: Vec<_> = answers.iter().map(|a| a["error"]["reason"].as_str().unwrap_or("none")).collect();
    assert_eq!(reasons, ["none", "program_too_large", "program_too_large", "none", "none"], "{}", out(&done));
    let error = &answers[1]["error"];
    assert_eq!(
        (&error["message"], &error["details"]["limit_bytes"]),
        (&"not a request: the line has more than 23 bytes".into(), &23.into())
    );
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--line-bytes")), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn answers_are_not_lost_without_standard_output() {
    let answers = |redirection: &str| {
        let line = "{\"program\":\"1\"}";
        let script = format!("echo '{line}' | \"$0\" batch {redirection}");
        let done = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_ptcl")]).output().expect("a shell");
        (done.status.code(), err(&done))
    };
    let (code, said) = answers(">&-");
    assert_eq!(code, Some(74), "{said}");
    assert!(said.contains("standard output is closed"), "{said}");
    assert_eq!(answers(">/dev/null"), (Some(0), String::new()));
    assert_eq!(answers("2>&-"), (Some(0), String::new()));
}
