//! The commands as a shell sees them: streams and exit codes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs `ptcl` in the repository's root with a text on standard input.
fn ptcl(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .env("HOME", std::env::temp_dir())
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ptcl starts");
    // A command that does not read closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("ptcl ends")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ptcl-test-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn run_prints_the_value() {
    let done = ptcl(&["run", "-e", "(println \"hi\") {:b 1.50 :a \"x\"}"], "");
    assert_eq!((out(&done).as_str(), done.status.code()), ("hi\n{:a \"x\" :b 1.5}\n", Some(0)));
    let done = ptcl(&["run", "-"], "(+ 1\n   2)");
    assert_eq!(out(&done), "3\n");
    let done = ptcl(&["run", "examples/orders.clj", "--data", "examples/orders.json"], "");
    assert!(out(&done).starts_with("{:by-status"), "{}", err(&done));
}

#[test]
fn keys_of_json_are_keywords_when_asked_for() {
    let row = format!("row={}", file("keys.json", r#"{"id": 7, "a b": 1}"#).display());
    let program = ["run", "-e", "[data/row (update data/row :id inc)]", "--data", &row];
    let done = ptcl(&program, "");
    assert_eq!(out(&done), "[{\"a b\" 1 \"id\" 7} {\"a b\" 1 \"id\" 8}]\n", "{}", err(&done));
    let done = ptcl(&[&program[..], &["--keywords"]].concat(), "");
    assert_eq!(out(&done), "[{:a b 1 :id 7} {:a b 1 :id 8}]\n", "{}", err(&done));
    let requests = "{\"program\": \"data/row\", \"data\": {\"row\": {\"id\": 7}}}\n\
        {\"program\": \"data/row\", \"data\": {\"row\": {\"id\": 7}}, \"json_keys\": \"strings\"}\n\
        {\"program\": \"1\", \"json_keys\": \"symbols\"}\n";
    let answers = out(&ptcl(&["batch", "--keywords"], requests));
    let texts: Vec<_> =
        answers.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")).collect();
    assert_eq!((&texts[0]["text"], &texts[1]["text"]), (&"{:id 7}".into(), &"{\"id\" 7}".into()));
    assert!(texts[2]["error"]["message"].as_str().is_some_and(|m| m.contains("keywords")), "{}", texts[2]);
}

#[test]
fn exit_codes_tell_what_happened() {
    for (arguments, code, text) in [
        (&["run", "-e", "(return 1)"][..], 0, ""),
        (&["run", "-e", "(fail {:no :stock})"], 1, "failed: {:no :stock}"),
        (&["run"], 2, "no program given"),
        (&["run", "-e", "1", "--limits", "heap=1"], 2, "unknown limit heap"),
        (&["run", "-e", "1", "--limits", "fuel=x"], 2, "x is not a whole number"),
        (&["run", "-e", "1", "--limits", "heap_byte=64MB"], 2, "did you mean heap_bytes?"),
        (&["frobnicate"], 2, "unrecognized subcommand"),
        (&["run", "-e", "(+ 1"], 3, "parse_error"),
        (&["run", "-e", "(nope 1)"], 3, "unbound_var"),
        (&["run", "-e", "(tool/nope)"], 3, "unknown_tool"),
        (&["run", "-e", "(+ 1 nil)"], 4, "type_error"),
        (&["run", "-e", "1", "--signature", "() -> :string"], 4, "validation_error"),
        (&["run", "-e", "(loop [] (recur))"], 5, "loop_limit_exceeded"),
        (&["run", "-e", "(loop [] (recur))", "--limits", "loop_iterations=0,timeout_ms=20"], 5, "timeout"),
        (&["run", "-e", "(defn f [x] (inc (f x))) (f 1)", "--limits", "heap_bytes=100_000"], 5, "memory_exceeded"),
        (
            &["run", "-e", "1", "--signature", "() -> :nothing!"],
            2,
            "--signature () -> :nothing!: character 7: expected a type",
        ),
        (&["run", "-e", "1", "--data", "x="], 2, "the file after = is missing"),
        (&["run", "-e", "1", "--data", "=x"], 2, "the name before = is missing"),
        (&["run", "-e", "(+ 1 2)", "--limits", "fuel=1"], 5, "-e:1:1"),
        (&["run", "-e", "(subs \"abc\" 1.5)"], 4, "got the float 1.5"),
        (&["run", "-e", "(nth [1] ##-Inf)"], 4, "got the float ##-Inf"),
        (&["run", "no/such/file.clj"], 74, "no/such/file.clj"),
        (&["run", "-e", "1", "--data", "no/such/file.json"], 74, "no/such/file.json"),
    ] {
        let done = ptcl(arguments, "");
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {}", err(&done));
        assert!(err(&done).contains(text), "{arguments:?}: {}", err(&done));
    }
}

#[test]
fn what_is_given_and_is_wrong_is_named() {
    let path = |name: &str, text: &str| file(name, text).display().to_string();
    let (good, broken, array) = (path("good.json", "{}"), path("broken.json", "{\"a\": 1,"), path("array.json", "[1]"));
    let (open, unknown) = (path("open.clj", "(+ 1"), path("unknown.clj", "(nope 1)"));
    for (arguments, code, text) in [
        (
            &["--data", &good, "--data", &broken][..],
            2,
            format!("--data {broken}: cannot import the data: invalid JSON at line"),
        ),
        (&["--data", &format!("x={broken}")], 2, format!("--data x={broken}: cannot import data/x")),
        (&["--data", &good, "--memory", &broken], 2, format!("--memory {broken}: cannot import the memory")),
        (&["--memory", &array], 2, "expected an object, got an array".to_owned()),
        (&["--setup", &open], 3, "parse_error".to_owned()),
        (&["--setup", &unknown], 3, "unbound_var".to_owned()),
    ] {
        let done = ptcl(&[&["run", "-e", "1"], arguments].concat(), "");
        assert_eq!(done.status.code(), Some(code), "{arguments:?}: {}", err(&done));
        assert!(err(&done).contains(&text), "{arguments:?}: {}", err(&done));
    }
}

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
fn errors_in_long_lines_say_their_place() {
    let done = ptcl(&["run", "-e", &format!("{}\n(do {} (foo 1))", "(inc 1)", "(inc 1) ".repeat(500))], "");
    assert!(err(&done).contains("foo is not defined (-e:2:4007)"), "{}", err(&done));
}

#[test]
fn errors_are_drawn_under_the_source_line() {
    let done = ptcl(&["run", "-e", "(let [x 1]\n  (+ x nil))"], "");
    let drawn = err(&done);
    let lines: Vec<&str> = drawn.lines().collect();
    let at = lines.iter().position(|line| line.contains("(+ x nil))")).expect("the source line");
    let column = |line: &str, wanted: char| line.chars().position(|c| c == wanted);
    assert_eq!(column(lines[at], '('), column(lines[at + 1], '─'), "{drawn}");
    assert!(drawn.contains("-e:2:3"), "{drawn}");
    assert!(drawn.contains("help:"), "{drawn}");
}

#[test]
fn errors_are_drawn_in_the_text_that_they_are_of() {
    let library = file("drawn.clj", "; a library\n(defn half [x]\n  (/ x \"two\"))\n").display().to_string();
    let program = file("drawn_main.clj", "(defn twice [x] (* 2 x))\n(map half [1 2])").display().to_string();
    for mode in ["in-process", "process"] {
        let drawn = err(&ptcl(&["run", &program, "--setup", &library, "--isolation", mode], ""));
        assert!(drawn.contains("drawn.clj:3:3") && drawn.contains("(/ x \"two\"))"), "{drawn}");
        assert!(
            drawn.contains("half was called at") && drawn.contains("drawn_main.clj:2:1, in map, element 0"),
            "{drawn}"
        );
        let typed = "(defn bad [x]\n  (let [y (* x 2)]\n    (+ y \"a\")))\n(println \"a text\") (bad 3)\n";
        let drawn = err(&ptcl(&["repl", "--isolation", mode], typed));
        assert!(drawn.contains("turn 1:3:5") && drawn.contains("(+ y \"a\")))"), "{drawn}");
        assert!(drawn.contains("bad was called at prompt:1:20") && !drawn.contains("OutOfBounds"), "{drawn}");
    }
}

#[test]
fn data_and_memory_are_bound_by_name() {
    let rows = file("rows.json", "[1, 2, 3]");
    let object = file("object.json", r#"{"a": 1, "b": [2]}"#);
    let memory = file("memory.json", r#"{"total": 40}"#);
    let library = file("library.clj", "(defn twice [x] (* 2 x))");
    let (rows, object) = (rows.display().to_string(), object.display().to_string());
    let named = format!("whole={object}");
    let done = ptcl(
        &[
            "run",
            "-e",
            "[(get data/whole \"a\") data/a data/b total (twice 4)]",
            "--data",
            &object,
            "--data",
            &named,
            "--data",
            &rows,
            "--memory",
            &memory.display().to_string(),
            "--setup",
            &library.display().to_string(),
        ],
        "",
    );
    assert_eq!(out(&done), "[1 1 [2] 40 8]\n", "{}", err(&done));
    let stem = format!("(count data/ptcl-test-{}-rows)", std::process::id());
    let done = ptcl(&["run", "-e", &stem, "--data", &rows], "");
    assert_eq!(out(&done), "3\n", "{}", err(&done));
    let done = ptcl(&["run", "-e", "data/nope", "--strict-data"], "");
    assert_eq!(done.status.code(), Some(3), "{}", err(&done));
}

#[test]
fn json_is_the_whole_answer() {
    let done = ptcl(&["run", "--json", "-e", "(println 1) (+ 1 nil)"], "");
    let answer: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((&answer["verdict"], &answer["prints"][0]), (&"error".into(), &"1".into()));
    assert_eq!((done.status.code(), err(&done).as_str()), (Some(4), ""));
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
    // Data under another name than the one that is given is said as for a run.
    let done = check(&["-e", "(count data/order)"]);
    assert_eq!(err(&done), "ptcl: data/order is not given, so it is nil: did you mean data/orders?\n");
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
fn the_prompt_reads_whole_forms_and_keeps_definitions() {
    let done = ptcl(
        &["repl"],
        "(defn f [x]\n  (* x 2))\n(f 21)\n(inc *1)\n(println \"hi\") :k\n(+ 1 nil)\n:names\n:help\n:quit\n1\n",
    );
    assert_eq!(done.status.code(), Some(4), "{}", err(&done));
    let printed = out(&done);
    assert!(printed.starts_with("#'f\n42\n43\nhi\n:k\nf\n"), "{printed}");
    assert!(printed.contains(":quit"), "{printed}");
    assert!(!printed.ends_with("\n1\n"), "nothing runs after :quit");
    assert!(err(&done).contains("type_error"));
}

#[test]
fn doc_and_prompt_say_what_the_language_has() {
    let done = ptcl(&["doc", "->"], "");
    assert!(out(&done).starts_with("(-> value step ...)"), "{}", err(&done));
    let done = ptcl(&["doc", "fliter"], "");
    assert_eq!(done.status.code(), Some(2));
    assert!(err(&done).contains("did you mean filter?"), "{}", err(&done));
    assert!(out(&ptcl(&["doc", "--markdown"], "")).starts_with("# Functions"));
    assert_eq!(ptcl(&["doc"], "").status.code(), Some(2));

    let tools =
        file("tools.json", r#"{"a": "(n :int) -> :string", "b": {"signature": "() -> :int", "returns": 1}, "c": {}}"#);
    let done = ptcl(&["prompt", "--tools", &tools.display().to_string()], "");
    assert!(out(&done).ends_with("tool/a (n :int) -> :string\ntool/b () -> :int\ntool/c\n"), "{}", err(&done));
    assert!(out(&ptcl(&["prompt"], "")).len() <= 2_000);
    let wrong = file("wrong-tools.json", r#"{"a": "(n :int"}"#);
    let done = ptcl(&["prompt", "--tools", &wrong.display().to_string()], "");
    assert_eq!(done.status.code(), Some(2), "{}", err(&done));
}

#[cfg(target_os = "linux")]
#[test]
fn the_prompt_saves_loads_and_takes_back() {
    let file = std::env::temp_dir().join(format!("ptcl-session-{}", std::process::id()));
    let path = file.to_string_lossy();
    let typed = format!(
        "(defn f [x] (* 2 x))\n(def y 1)\n:save {path}\n(def y 2)\n:undo\n[y (f 21)]\n:undo\n:undo\n:names\n:load {path}\n[y (f 4)]\n:load\n:undo\n:undo\n"
    );
    for isolation in ["in-process", "process"] {
        let done = ptcl(&["repl", "--isolation", isolation], &typed);
        assert_eq!(out(&done), "#'f\n#'y\n#'y\n[1 42]\nf\n[1 8]\n", "{isolation}: {}", err(&done));
        assert!(err(&done).contains(":load takes FILE") && err(&done).contains("(session_undo)"), "{}", err(&done));
    }
    let _ = std::fs::remove_file(&file);
}

#[test]
fn the_process_door_gives_the_same() {
    let program = "(println \"hi\") (tool/none {:a 1})";
    for arguments in
        [vec!["run", "-e", "(println 1) {:a [1.5]}"], vec!["run", "-e", program], vec!["run", "-e", "(fail 1)"]]
    {
        let here = ptcl(&arguments, "");
        let there = ptcl(&[&arguments[..], &["--isolation", "process"]].concat(), "");
        assert_eq!((out(&there), err(&there), there.status), (out(&here), err(&here), here.status));
    }
    let request =
        r#"{"id": 1, "program": "(+ 1 (tool/two {}))", "tools": {"two": {"returns": 2}}, "isolation": "process"}"#;
    let answer: serde_json::Value = serde_json::from_str(&out(&ptcl(&["batch"], request))).expect("an answer");
    assert_eq!((&answer["value"], &answer["ledger"][0]["status"]), (&3.into(), &"ok".into()));
    assert!(answer["usage"]["cpu_us"].as_u64().is_some_and(|cpu| cpu > 0));
    let requests = r#"{"program": "(def x 1)", "domain": "a"}
{"program": "(inc 41)", "domain": "a"}
{"program": "x", "domain": "a"}
{"program": "1", "domain": ""}"#;
    let answers: Vec<serde_json::Value> =
        out(&ptcl(&["batch"], requests)).lines().map(|line| serde_json::from_str(line).expect("an answer")).collect();
    assert_eq!((&answers[1]["value"], &answers[1]["usage"]["cpu_us"]), (&42.into(), &serde_json::Value::Null));
    assert_eq!(answers[2]["error"]["reason"], "unbound_var");
    assert_eq!(answers[3]["error"]["reason"], "parse_error");
    let done = ptcl(&["repl", "--isolation", "process"], "(defn f [x] (* 2 x))\n(f 21)\n:names\n");
    assert!(out(&done).contains("42\nf\n"), "{}", out(&done));
}

#[cfg(target_os = "linux")]
#[test]
fn sandbox_says_what_it_can() {
    let done = ptcl(&["sandbox", "--capabilities", "--json"], "");
    let said: serde_json::Value = serde_json::from_str(&out(&done)).expect("JSON");
    assert_eq!(said["missing"].as_array().map(Vec::len), Some(0), "{said}");
    assert_eq!(done.status.code(), Some(0));
    let done = ptcl(&["sandbox", "--capabilities"], "");
    assert!(out(&done).contains("seccomp"), "{}", out(&done));
    assert_eq!(ptcl(&["sandbox", "--dir", "x"], "").status.code(), Some(2));
}

/// Starts a program that prints and then does not end, and returns it with its first line.
#[cfg(unix)]
fn endless(isolation: &str) -> (std::process::Child, String) {
    use std::io::BufRead;
    let program = "(println :begun) (loop [] (recur))";
    let limits = "loop_iterations=0,fuel=0,timeout_ms=60000";
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(["run", "--isolation", isolation, "--limits", limits, "-e", program])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ptcl starts");
    let mut line = String::new();
    let pipe = child.stdout.take().expect("a pipe");
    std::io::BufReader::new(pipe).read_line(&mut line).expect("a line");
    (child, line)
}

#[cfg(unix)]
#[test]
fn run_prints_as_the_program_does_and_ctrl_c_ends_it_in_order() {
    let isolations: &[&str] = if cfg!(target_os = "linux") { &["in-process", "process"] } else { &["in-process"] };
    for isolation in isolations {
        // The line is there while the program still runs.
        let (child, line) = endless(isolation);
        assert_eq!(line, ":begun\n");
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
        let done = child.wait_with_output().expect("ptcl ends");
        // A code, not a signal; and the error under its line.
        assert_eq!(done.status.code(), Some(130), "{isolation}");
        assert!(err(&done).contains("cancelled"), "{}", err(&done));
    }
}

/// Starts a watched program whose first line is `:begun`, and waits for that.
#[cfg(target_os = "linux")]
fn watched(dir: &Path, program: &Path) -> (std::process::Child, std::io::BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(["sandbox", "--limits", "timeout_ms=60000", "--dir"])
        .args([dir, program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ptcl starts");
    let mut pipe = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut pipe, &mut line).expect("a line");
    assert_eq!(line, ":begun\n");
    (child, pipe)
}

#[cfg(target_os = "linux")]
#[test]
fn a_watched_program_reads_lines_and_its_pipes_go_with_it() {
    let dir = std::env::temp_dir().join(format!("ptcl-pipes-{}", std::process::id()));
    let program = file("lines.clj", "(println :begun) [(tool/read-line) (tool/read-line) (tool/read-line)]");
    let ask = |byte: &str| {
        std::fs::write(dir.join("wait"), byte).expect("a question");
        std::fs::read_to_string(dir.join("status")).expect("an answer")
    };
    let (mut child, mut pipe) = watched(&dir, &program);
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"one\ntwo\r\n").expect("lines");
    drop(input);
    let mut state = ask("1");
    while state.contains("process running normally") {
        std::thread::sleep(std::time::Duration::from_millis(5));
        state = ask("1");
    }
    assert!(state.contains("exited normally"), "{state}");
    assert!(ask("0").contains("exited normally"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut pipe, &mut line).expect("the value");
    assert_eq!((line.as_str(), child.wait().expect("an end").code()), ("[\"one\" \"two\" nil]\n", Some(0)));
    // SIGTERM takes the pipes away; so does the next start when nobody could.
    for (signal, left) in [("-TERM", false), ("-KILL", true), ("-INT", false)] {
        let (mut child, _pipe) = watched(&dir, &program);
        assert!(ask("1").contains("process running normally"));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
        assert_eq!(child.wait().expect("an end").code(), None);
        assert_eq!(dir.join("wait").exists(), left, "{signal}");
    }
    std::fs::remove_dir(dir).expect("an empty directory");
}

#[cfg(target_os = "linux")]
#[test]
fn each_program_of_a_slate_begins_anew() {
    let setup = file("slate-setup.clj", "(println :hidden) (defn twice [x] (* 2 x))");
    let one = file("slate-1.clj", "(println :half) (def left 1) (twice 21)");
    let two = file("slate-2.clj", "(println \"äää\")\nleft");
    let paths = [&setup, &one, &two].map(|path| path.display().to_string());
    let done = ptcl(&["slate", "--setup", &paths[0], &paths[1], &paths[2]], "");
    assert_eq!((out(&done).as_str(), done.status.code()), (":half\n42\n", Some(3)), "{}", err(&done));
    assert!(err(&done).contains("unbound_var") && err(&done).contains("line 2, column 1"), "{}", err(&done));
    let done = ptcl(&["slate", "--json", "--output-bytes", "3", "--setup", &paths[0], &paths[1]], "");
    let text = out(&done);
    for part in ["\"output_bytes\":6", "\"value\":42", "\"text\":\"42\"", "\"failure\":null", "(3 of 6 bytes)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // What is cut is reported, and the exit code says so.
    let done = ptcl(&["slate", "--output-bytes", "3", "--setup", &paths[0], &paths[1]], "");
    assert_eq!(done.status.code(), Some(5), "{}", out(&done));
    assert!(err(&done).contains("slate-1.clj: 6 bytes printed, cut to 3: raise --output-bytes"), "{}", err(&done));
    let endless = file("slate-3.clj", "(println 1) (doseq [i (range 1000000)] (reduce + (range 10000)))");
    let done = ptcl(&["slate", "--limits", "timeout_ms=200", &endless.display().to_string()], "");
    assert_eq!((out(&done).as_str(), done.status.code()), ("1\n", Some(5)), "{}", err(&done));
}

#[test]
fn prompt_refuses_a_tool_with_fields_that_it_does_not_know() {
    let tools = |text: &str| file("tools.json", text).display().to_string();
    let swallowed = r#"{"weather": {"description": "the weather", "parameters": {}}}"#;
    let done = ptcl(&["prompt", "--tools", &tools(swallowed)], "");
    assert_eq!(done.status.code(), Some(2));
    assert!(err(&done).contains("weather: unknown field `parameters`"), "{}", err(&done));
    let done = ptcl(&["prompt", "--tools", &tools(r#"{"weather": 1}"#)], "");
    assert!(err(&done).contains("weather: it needs a signature"), "{}", err(&done));
    let known = r#"{"a": "(n :int) -> :string", "b": {"signature": "() -> :int", "returns": 1},
                    "c": {"client": true, "description": "Asks.", "input": {"properties": {"q": {"type": "string"}}}}}"#;
    let done = ptcl(&["prompt", "--tools", &tools(known)], "");
    assert!(out(&done).contains("tool/a (n :int) -> :string") && out(&done).contains("tool/b"), "{}", err(&done));
    assert!(out(&done).contains("tool/c (q? :string, ...) -> :any ; Asks."), "{}", out(&done));
    let both = r#"{"a": {"signature": "() -> :int", "output": {}}}"#;
    let done = ptcl(&["prompt", "--tools", &tools(both)], "");
    assert!(done.status.code() == Some(2) && err(&done).contains("a signature and a JSON Schema"), "{}", err(&done));
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

#[test]
fn a_prompt_without_a_terminal_keeps_no_history_and_goes_on_after_a_bad_line() {
    let home = std::env::temp_dir().join(format!("ptcl-test-home-{}", std::process::id()));
    std::fs::create_dir_all(&home).expect("a directory");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .arg("repl")
        .env("HOME", &home)
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ptcl starts");
    let typed = b"(+ 1 1)\n(str \"\xff\")\n(+ 2\n   2)\n:load lib.clj\n:nope\n{:a";
    child.stdin.take().expect("a pipe").write_all(typed).expect("it reads");
    let done = child.wait_with_output().expect("ptcl ends");
    let kept = std::fs::read_dir(&home).expect("a directory").count();
    let _ = std::fs::remove_dir_all(&home);
    let (out, said) = (out(&done), err(&done));
    assert_eq!((out.as_str(), done.status.code()), ("2\n4\n:nope\n", Some(3)), "{said}");
    assert!(said.contains("line 2 of standard input is skipped: invalid utf-8"), "{said}");
    assert!(said.contains("ptcl: lib.clj: "), "{said}");
    assert!(
        said.contains(":nope is not a command, so it is read as a keyword; the commands are :help :doc :apropos"),
        "{said}"
    );
    assert!(said.contains("parse_error"), "what is not complete at the end: {said}");
    assert_eq!(kept, 0, "nothing is written at home");
}

#[test]
fn the_prompt_shows_what_a_name_does() {
    let done = ptcl(&["repl"], ":doc map\n:doc tool/rate\n:doc\n:doc nope-at-all\n(inc 1)\n");
    let (out, said) = (out(&done), err(&done));
    assert!(out.starts_with("(map f coll)"), "{out}");
    assert!(out.contains("there is no tool/rate; this run has no tools"), "{out}");
    assert!(out.ends_with("2\n"), "{out}");
    assert!(said.contains(":doc takes NAME: show the documentation"), "{said}");
    assert!(said.contains("unknown function or form nope-at-all"), "{said}");
}

#[test]
fn a_recorded_run_is_repeated_without_its_tools() {
    let folder = std::env::temp_dir().join(format!("ptcl-records-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("run.ptc").display().to_string();
    let isolations: &[&str] = if cfg!(target_os = "linux") { &["in-process", "process"] } else { &["in-process"] };
    let program = "(println :hi) [(count data/a) (pmap (fn [i] (< i (System/currentTimeMillis))) (range 3)) (System/currentTimeMillis)]";
    let data = folder.join("data.json").display().to_string();
    std::fs::write(&data, "{\"a\": [1, 2]}").expect("a file");
    for isolation in isolations {
        let done = ptcl(&["run", "--isolation", isolation, "--record", &file, "--data", &data, "-e", program], "");
        assert_eq!(done.status.code(), Some(0), "{}", err(&done));
        let again = ptcl(&["replay", &file], "");
        assert_eq!((out(&again), again.status.code()), (out(&done), Some(0)), "{}", err(&again));
        let json = ptcl(&["replay", &file, "--json"], "");
        assert!(
            out(&json).starts_with("{\"schema\":\"ptc-lisp/1\"") && json.status.code() == Some(0),
            "{}",
            err(&json)
        );
        // Another time than the recorded one, another program, and a record that was cut off.
        let text = std::fs::read_to_string(&file).expect("the record");
        for (from, to, code, says) in [
            ("\"ms\":1", "\"ms\":2", 4, "replay_diverged: the answer differs"),
            (
                "(println :hi) ",
                "(println :ho) ",
                4,
                "replay_diverged: the answer differs from the recorded one in prints",
            ),
            ("(System/currentTimeMillis)]\"", "7]\"", 4, "replay_diverged"),
            ("ptc-record/1", "ptc-record/9", 2, "reads \"ptc-record/1\""),
            ("{\"answer\"", "{\"answered\"", 2, "unknown field `answered`"),
            ("\"run_id\"", "\"runid\"", 2, "unknown field `runid`"),
        ] {
            assert!(text.contains(from), "{from}");
            std::fs::write(&file, text.replace(from, to)).expect("a file");
            let done = ptcl(&["replay", &file], "");
            assert_eq!(done.status.code(), Some(code), "{to}: {}", err(&done));
            assert!(err(&done).contains(says), "{to}: {}", err(&done));
        }
        let cut = text.rfind("{\"answer\"").expect("an answer");
        std::fs::write(&file, &text[..cut]).expect("a file");
        let done = ptcl(&["replay", &file], "");
        assert_eq!((done.status.code(), err(&done).contains("has no answer")), (Some(2), true), "{}", err(&done));
    }
    // Deeper than most readers of JSON go.
    let deep = "(println 1) (reduce (fn [a _] [a]) [] (range 300))";
    assert_eq!(ptcl(&["run", "--record", &file, "-e", deep], "").status.code(), Some(0));
    let text = std::fs::read_to_string(&file).expect("the record");
    let answer = &text[text.rfind("{\"answer\"").expect("an answer")..];
    for (from, to, code) in [
        ("", "", 0),
        ("\"value\":[", "\"value\":[[],", 4),
        ("\"prints\":[\"1\"]", "\"prints\":[]", 4),
        (answer, "{\"answer\":7}\n", 4),
        (answer, "{\"answer\":null}\n", 2),
        (answer, "{\"answer\":{}}\n", 4),
    ] {
        std::fs::write(&file, text.replacen(from, to, 1)).expect("a file");
        let done = ptcl(&["replay", &file], "");
        assert_eq!(done.status.code(), Some(code), "{to}: {}", err(&done));
    }
    std::fs::write(&file, b"{\"schema\":\"ptc-record/1\xff\"}\n").expect("a file");
    assert_eq!(ptcl(&["replay", &file], "").status.code(), Some(2));
    let failed = ptcl(&["run", "--record", &file, "-e", "(/ 1 0)"], "");
    let again = ptcl(&["replay", &file], "");
    assert_eq!((failed.status.code(), again.status.code()), (Some(4), Some(0)), "{}", err(&again));
    let kept = std::fs::read(&file).expect("the record");
    let unread = ptcl(&["run", "--record", &file, "-e", "(/ 1"], "");
    assert_eq!((unread.status.code(), std::fs::read(&file).ok()), (Some(3), Some(kept)));
    assert_eq!(ptcl(&["run", "--record", &file, "-e", "1"], "").status.code(), Some(0));
    assert_eq!(ptcl(&["replay", &file], "").status.code(), Some(0));
    let new = folder.join("new").display().to_string();
    let unread = ptcl(&["run", "--record", &new, "-e", "(/ 1"], "");
    assert_eq!((unread.status.code(), std::fs::exists(&new).expect("a folder")), (Some(3), false));
    #[cfg(unix)]
    {
        let link = folder.join("null");
        std::os::unix::fs::symlink("/dev/null", &link).expect("a link");
        for (program, code) in [("(/ 1", 3), ("1", 0)] {
            let done = ptcl(&["run", "--record", &link.display().to_string(), "-e", program], "");
            assert_eq!((done.status.code(), link.is_symlink()), (Some(code), true), "{}", err(&done));
        }
        let (link, target) = (folder.join("dangling"), folder.join("target"));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        for (program, code, is_there) in [("(/ 1", 3, false), ("1", 0, true)] {
            let done = ptcl(&["run", "--record", &link.display().to_string(), "-e", program], "");
            assert_eq!((done.status.code(), target.exists()), (Some(code), is_there), "{}", err(&done));
        }
        if Path::new("/dev/full").exists() {
            let full = ptcl(&["run", "--record", "/dev/full", "-e", "1"], "");
            assert!(err(&full).contains("cannot be written") && !err(&full).contains("no run yet"), "{}", err(&full));
            assert_ne!(full.status.code(), Some(0));
        }
    }
    assert_eq!(ptcl(&["replay", &data], "").status.code(), Some(2));
    let nowhere = folder.join("no/such").display().to_string();
    assert_eq!(ptcl(&["run", "--record", &nowhere, "-e", "1"], "").status.code(), Some(74));
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn the_prompt_has_its_error_tools_of_its_own_and_a_record() {
    let record = file("typed.clj", "");
    let typed = format!(
        "*e\n(inc nil)\n(:message *e)\n(def x 5)\n:mock weather {{:t (+ 20 x)}}\n(:t (tool/weather {{}}))\n:tools\n:record {}\n\
         (inc x)\n(inc nil)\n:record\n(inc x)\n:fuel (map inc (range 100))\n:mock a/b 1\n:mock q\n:mock f {{:a 1 \"a\" 2}}\n(count [x (tool/weather {{}})])\n",
        record.display()
    );
    for mode in ["in-process", "process"] {
        let done = ptcl(&["repl", "--isolation", mode], &typed);
        let (out, err) = (String::from_utf8_lossy(&done.stdout).into_owned(), err(&done));
        assert!(out.starts_with("nil\n\"inc expects a number, got nil\"\n#'x\n{:t 25}\n25\n"), "{out}");
        assert!(out.contains("tool/weather always returns {\"t\":25}\n6\n6\n"), "{out}");
        assert!(out.contains("359 fuel") && out.contains("prompt:1:1 (map inc (range 100))"), "{out}");
        assert!(out.ends_with("\n2\n"), "{out}");
        assert!(err.contains("cannot make tool/f: a tool returns JSON"), "{err}");
        assert!(err.contains("\"a/b\" is not a valid tool name") && err.contains(":mock takes NAME FORM"), "{err}");
        let kept = std::fs::read_to_string(&record).unwrap();
        assert_eq!(kept, "(inc x)\n; => 6\n(inc nil)\n; => error: type_error\n");
    }
}

#[test]
fn limits_have_units_and_files_may_name_their_interpreter() {
    let limit = |limits: &str| {
        let done = ptcl(&["run", "--json", "--limits", limits, "-e", "1"], "");
        let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
        (done.status.code(), answer["limits"].clone(), err(&done))
    };
    let (_, limits, _) =
        limit("timeout_ms=5s,heap_bytes=64MB,setup_heap_bytes=1GiB,fuel=2_000k,parallel_timeout_ms=7ms");
    let of = |name: &str| limits[name].as_u64().unwrap();
    assert_eq!([of("timeout_ms"), of("heap_bytes"), of("setup_heap_bytes")], [5_000, 64_000_000, 1 << 30]);
    assert_eq!([of("fuel"), of("parallel_timeout_ms")], [2_000_000, 7]);
    for wrong in ["timeout_ms=5MB", "heap_bytes=1s", "fuel=k", "fuel=99999999999G", "fuel=-1", "heap_bytes=é"] {
        let (code, _, said) = limit(wrong);
        assert!(code == Some(2) && said.contains("is not a whole number"), "{wrong}: {code:?} {said}");
    }
    let script = file("script.clj", "#!/usr/bin/env -S ptcl run\n(inc 1)\n(inc nil)\n").display().to_string();
    let done = ptcl(&["run", &script], "");
    assert!(err(&done).contains("script.clj:3:1"), "{}", err(&done));
    // Wherever a program may come from, and whatever lays it out.
    let text = "#!/usr/bin/env -S ptcl run\n(inc   1)\n";
    assert_eq!(out(&ptcl(&["run", "-"], text)), "2\n");
    assert_eq!(out(&ptcl(&["fmt"], text)), "#!/usr/bin/env -S ptcl run\n(inc 1)\n");
    let good = file("good.clj", text).display().to_string();
    assert_eq!(out(&ptcl(&["run", "--setup", &good, "-e", "3"], "")), "3\n");
    assert_eq!(ptcl(&["test", &good], "").status.code(), Some(0));
    assert_eq!(ptcl(&["fmt", &good], "").status.code(), Some(0));
    assert!(std::fs::read_to_string(&good).expect("a file").starts_with("#!/usr/bin/env"));
}

#[test]
fn numbers_of_any_size_stay_what_they_are() {
    let big = "123456789012345678901234567890";
    for (format, wanted) in [("csv", format!("a\n{big}\n")), ("json", format!("[{{\"a\":{big}}}]\n"))] {
        assert_eq!(out(&ptcl(&["run", "-o", format, "-e", &format!("[{{:a {big}}}]")], "")), wanted);
    }
    assert!(out(&ptcl(&["run", "--table", "-e", &format!("[{{:a {big}}}]")], "")).contains(big));
    assert_eq!(out(&ptcl(&["repl"], &format!(":mock big {big}\n(tool/big {{}})"))), format!("{big}\n{big}\n"));
    let path = file("big.record", "").display().to_string();
    assert_eq!(ptcl(&["run", "--record", &path, "-e", big], "").status.code(), Some(0));
    assert_eq!(ptcl(&["replay", &path], "").status.code(), Some(0));
    let record = std::fs::read_to_string(&path).expect("a record");
    let at = record.rfind(&format!("\"value\":{big}")).or_else(|| record.rfind(big)).expect("the value");
    let changed = record[..at].to_owned() + &record[at..].replacen("567890", "567891", 1);
    std::fs::write(&path, changed).expect("a file");
    assert_eq!(ptcl(&["replay", &path], "").status.code(), Some(4));
}

#[test]
fn data_that_is_not_given_is_said() {
    let orders = file("orders.json", "{\"orders\": [1, 2]}").display().to_string();
    let run = |program: &str| ptcl(&["run", "--data", &orders, "-e", program], "");
    let done = run("(count data/order)");
    assert_eq!((out(&done).as_str(), done.status.code()), ("0\n", Some(0)));
    assert_eq!(err(&done), "ptcl: data/order is not given, so it is nil: did you mean data/orders?\n");
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
    assert!(said.contains("line 2") && said.contains("invalid JSON") && !said.contains("help"), "{said}");
}

#[test]
fn the_prompt_says_what_its_commands_did() {
    let typed = "; a comment\n:json\n:json\n(nope)\n(fail {:a 1})\n*e\n:undo 3\n(def z 1)\n:undo\n(require 's)\nhelp\nquit\n(println \"gone\")\n";
    let done = ptcl(&["repl"], typed);
    let said = err(&done);
    for part in ["JSON output: on", "JSON output: off", ":undo takes no argument", "undid the last form"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let shown = out(&done);
    let shown = shown.strip_prefix("failed: {:a 1}\n{:reason :failed :value {:a 1}}\n#'z\n").expect("values");
    assert!(shown.contains(":undo") && shown.contains("Tab completes") && !shown.contains("gone"), "{shown}");
    // A name that the session defines is that name.
    assert_eq!(out(&ptcl(&["repl"], "(def quit 7)\nquit\n")), "#'quit\n7\n");
}

/// The room of a recursion without end is free again afterwards, and the error says what to do.
#[test]
fn a_session_goes_on_after_a_recursion_without_end() {
    let done = ptcl(&["repl"], "(defn f [n] (+ 1 (f n)))\n(f 0)\n(count (range 100000))\n");
    assert!(out(&done).ends_with("100000\n"), "{}", out(&done));
    assert!(err(&done).contains("make sure that the recursion ends"), "{}", err(&done));
    assert!(err(&done).contains("more times from there\n"), "{}", err(&done));
    assert!(err(&done).contains("\n  (at most 8 calls are shown)\n"), "{}", err(&done));
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
