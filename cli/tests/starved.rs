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
    // A thread that finds no memory to start panics. The command must not need memory for a backtrace then.
    command.env("RUST_BACKTRACE", "1");
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

/// Fewer descriptors than jobs: no run is refused, neither in domains nor alone, whether the option or the request asks
/// for a process.
#[test]
fn fewer_runs_go_on_where_there_are_descriptors_for_fewer() {
    for (limit, in_domains) in [(100, false), (64, true), (64, false), (40, true), (40, false), (30, false)] {
        let request = |n: usize| {
            let program = "[(+ 1 2) (pmap (fn [i] (tool/t {:x i})) (range 3))]";
            let limits = json!({ "timeout_ms": 100_000 });
            let mut request = json!({ "id": n, "program": program, "isolation": "process", "limits": limits });
            request["tools"] = json!({ "t": { "echo": true } });
            if in_domains {
                request["domain"] = json!(format!("d{}", n % 40));
            }
            request
        };
        let requests: Vec<Value> = (0..130).map(request).collect();
        for options in [&["--isolation", "process"][..], &[]] {
            let options = [options, &["--jobs", "64", "--ceiling", "timeout_ms=100000"]].concat();
            let (code, answers, said) = batch(&format!("-n {limit}"), &options, &requests);
            let what = format!("{limit}, in domains: {in_domains}, {options:?}: {said}");
            assert_eq!((code, answers.len()), (Some(0), requests.len()), "{what}");
            assert_eq!(tally(&answers), BTreeMap::from([("\"ok\" null".to_owned(), requests.len())]), "{what}");
        }
    }
}

/// Too few descriptors for a single run: the error names the limit and what to do.
#[test]
fn too_few_descriptors_for_one_run_are_an_error_that_names_the_limit() {
    let requests = [json!({ "program": "1", "isolation": "process" })];
    let (code, answers, said) = batch("-n 7", &["--jobs", "1"], &requests);
    assert_eq!((code, answers.len()), (Some(0), 1), "{said}");
    let message = answers[0]["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("raise ulimit -n (now 7)") && message.contains("fewer --jobs"), "{answers:?} {said}");
}

/// The machine has less memory than the limits allow a run: that is the run's error, and the next one is answered.
#[test]
fn a_run_that_finds_no_memory_has_an_error() {
    let hungry = [
        // Texts in the heap, and under construction.
        "(count (loop [v [] i 0] (if (< i 250) (recur (conj v (apply str (repeat 10000 i))) (inc i)) v)))",
        // Garbage between that is compacted.
        "(count (loop [v [] i 0] (if (< i 900) (do (vec (range 2000)) (recur (conj v (vec (range 500))) (inc i))) v)))",
        // The stack.
        "(defn f [n] (if (zero? n) 0 (+ 1 (f (dec n))))) (f 60000)",
    ];
    let ask = |kilobytes: usize, program: &str| {
        let request = |n: usize, program: &str| json!({ "id": n, "program": program, "limits": {"timeout_ms": 60_000, "parallel_timeout_ms": 60_000} });
        let requests = [request(0, "(+ 1 2)"), request(1, program), request(2, "(+ 1 2)")];
        batch(&format!("-v {kilobytes}"), &["--jobs", "1", "--ceiling", "timeout_ms=100000"], &requests)
    };
    // What the process takes before it runs anything depends on how it was built; a little more than that, as the book says.
    let enough = |kilobytes: &usize| ask(*kilobytes, "1").0 == Some(0) && ask(*kilobytes, "1").1.len() == 3;
    let least = (20_000..2_000_000).step_by(4_000).find(enough).expect("it runs with 2 GB");
    for program in hungry {
        let (mut failed, mut well) = (0, 0);
        for kilobytes in (least + 8_000..).step_by(4_000).take(24) {
            let (code, answers, said) = ask(kilobytes, program);
            let what = format!("{kilobytes} kB, {least} needed: {program}: {code:?} {said} {answers:?}");
            assert_eq!((code, answers.len()), (Some(0), 3), "{what}");
            assert_eq!((&answers[0]["value"], &answers[2]["value"]), (&json!(3), &json!(3)), "{what}");
            match answers[1]["error"]["reason"].as_str() {
                None => well += 1,
                Some(reason) => {
                    assert_eq!(reason, "memory_exceeded", "{what}");
                    let message = answers[1]["error"]["message"].as_str().unwrap_or_default();
                    assert!(message.contains("the machine has no memory left"), "{what}");
                    failed += 1;
                }
            }
        }
        assert!(well > 0, "{program}: {failed} failed");
    }
}

/// A program of a megabyte is compiled, or refused, in the memory that the book says, whatever it is made of. It is too long for a
/// whole check, which is a warning.
#[test]
fn compiling_takes_no_more_memory_than_the_book_says() {
    const BYTES: usize = 999_000;
    // 222 for each byte, and what the process takes by itself.
    const KILOBYTES: usize = 222_000 + 60_000;
    let of = |part: &str| part.repeat(BYTES / part.len());
    let mut programs: Vec<String> =
        ["{}", "#{}", "{} ", "[]", "()", "[{}]", "{1 2}", "#{1}", "{:a 1}", "'()", "\"\"", "{}{1 2}", "(f)", "#()"]
            .map(of)
            .into();
    programs.push(format!("(some-> 1 {})", "inc ".repeat(BYTES / 4 - 4)));
    let path = std::env::temp_dir().join(format!("ptcl-test-compiling-{}.clj", std::process::id()));
    for program in programs {
        std::fs::write(&path, &program).unwrap();
        let script = format!("ulimit -v {KILOBYTES} && exec \"$0\" check \"$1\"");
        let done = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_ptcl")]).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let start: String = program.chars().take(20).collect();
        assert!(matches!(done.status.code(), Some(0 | 1 | 3 | 5)), "{start}: {:?} {said}", done.status);
    }
    let _ = std::fs::remove_file(&path);
}
