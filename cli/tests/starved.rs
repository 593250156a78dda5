//! `ptcl batch` where the system gives it little: what one run cannot have is that run's error, or it waits; the others are answered.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// The answers to requests under a limit of the shell's.
fn batch(limit: &str, options: &[&str], requests: &[Value]) -> (Option<i32>, Vec<Value>, String) {
    let script = format!("ulimit {limit} && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_ptcl"), "batch"]).args(options);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let text: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let writer = std::thread::Builder::new().spawn(move || drop(input.write_all(text.as_bytes()))).unwrap();
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code(), answers, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// How often each verdict and reason came.
fn tally(answers: &[Value]) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for answer in answers {
        let how = format!("{} {}", answer["verdict"], answer["error"]["reason"]);
        *tally.entry(how).or_default() += 1;
    }
    tally
}

/// Runs that take what they may, side by side, in little address space.
#[test]
fn no_more_runs_are_begun_than_have_room() {
    let program = "(let [v (vec (range 60000))] (+ (count (map str v)) (reduce + (pmap (fn [x] (count (vec (range 20000)))) (range 4)))))";
    let requests: Vec<Value> = (0..120).map(|n| json!({ "id": n, "program": program, "limits": {"timeout_ms": 100_000, "parallel_timeout_ms": 100_000} })).collect();
    for kilobytes in [1_200_000, 600_000, 450_000] {
        let (code, answers, said) =
            batch(&format!("-v {kilobytes}"), &["--jobs", "32", "--ceiling", "timeout_ms=100000"], &requests);
        assert_eq!((code, answers.len()), (Some(0), requests.len()), "{kilobytes} kB: {said}");
        assert_eq!(
            tally(&answers),
            BTreeMap::from([("\"ok\" null".to_owned(), requests.len())]),
            "{kilobytes} kB: {said}"
        );
    }
}

/// Runs of many domains, which all want processes, where there are descriptors for few.
#[test]
fn a_run_waits_for_descriptors() {
    let request = |n: usize| {
        let limits = json!({ "timeout_ms": 100_000 });
        json!({ "id": n, "program": "(reduce + (range 1000))", "domain": format!("d{}", n % 60), "limits": limits })
    };
    let requests: Vec<Value> = (0..300).map(request).collect();
    let options = ["--isolation", "process", "--jobs", "64", "--ceiling", "timeout_ms=100000"];
    let (code, answers, said) = batch("-n 200", &options, &requests);
    assert_eq!((code, answers.len()), (Some(0), requests.len()), "{said}");
    assert_eq!(tally(&answers), BTreeMap::from([("\"ok\" null".to_owned(), requests.len())]), "{said}");
}
