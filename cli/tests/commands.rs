//! The commands as a shell sees them: streams and exit codes.

#[path = "commands/batch.rs"]
mod batch;
#[path = "commands/checks.rs"]
mod checks;
#[path = "commands/pipes.rs"]
mod pipes;
#[path = "commands/repl.rs"]
mod repl;

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
        (&["run", "-e", "1", "--limits", "parallel_workers=1025"], 2, "parallel_workers=1025: the maximum is 1024"),
        (
            &["batch", "--limits", "timeout_ms=10s,fuel=5", "--ceiling", "fuel=9,timeout_ms=5s"],
            2,
            "--limits timeout_ms=10000 is above the ceiling, --ceiling timeout_ms=5000: lower it, or raise the ceiling",
        ),
        (&["batch", "--limits", "fuel=0", "--ceiling", "fuel=9"], 2, "--limits fuel=0 is no limit, which is above the"),
        (&["run", "-e", "1", "--limits", "heap_byte=64MB"], 2, "did you mean heap_bytes?"),
        (&["frobnicate"], 2, "unrecognized subcommand"),
        (&["run", "--bogus"], 2, "unexpected argument '--bogus' found\n\nUsage:"),
        (&["run", "--dat", "x"], 2, "a similar argument exists: '--data'"),
        (&["run", "-e", "(+ 1"], 3, "parse_error"),
        (&["run", "-e", "(nope 1)"], 3, "unbound_var"),
        (&["run", "-e", "(tool/nope)"], 3, "unknown_tool"),
        (&["run", "-e", "(+ 1 nil)"], 4, "type_error"),
        (&["run", "-e", "1", "--signature", "() -> :string"], 4, "validation_error"),
        (&["run", "--untrusted", "-e", "(loop [] (recur))"], 5, "loop_limit_exceeded"),
        (&["run", "--untrusted", "-e", "(count (vec (range 10000000)))"], 5, "heap_bytes"),
        (
            &["run", "--limits", "result_bytes=70", "-e", "(vec (repeat 20 #{}))"],
            5,
            "the value has 81 bytes, more than",
        ),
        (&["run", "--json", "--limits", "print_chars=2", "-e", "(println \"abc\")"], 5, "1 printed line is cut"),
        (&["run", "-e", "(loop [] (recur))", "--limits", "loop_iterations=0,timeout_ms=20"], 5, "timeout"),
        (&["run", "-e", "(defn f [x] (inc (f x))) (f 1)", "--limits", "heap_bytes=100_000"], 5, "memory_exceeded"),
        (
            &["run", "-e", "1", "--signature", "() -> :nothing!"],
            2,
            "--signature () -> :nothing!: at character 7: expected a type",
        ),
        (&["run", "-e", "1", "--data", "x="], 2, "the file after = is missing"),
        (&["run", "-e", "1", "--data", "=x"], 2, "the name before = is missing"),
        (&["run", "-e", "(+ 1 2)", "--limits", "fuel=1"], 5, "-e:1:1"),
        (&["run", "-e", "(subs \"abc\" 1.5)"], 4, "got the float 1.5"),
        (&["run", "-e", "(nth [1] ##-Inf)"], 4, "got the float ##-Inf"),
        (&["run", "-e", "1", "--signature", "{a :int"], 2, "at character 8: expected , or }"),
        (&["run", "-e", "1", "--signature", ":string"], 4, "must end with a value of the type :string"),
        (&["run", "-e", "(if)"], 3, "if cannot have 0 parts"),
        (&["run", "-e", "(when-let [x 1 y 2] 1)"], 3, "exactly one name and value"),
        (&["run", "-e", "(throw nil)"], 4, "write (throw (ex-info \"message\" {}))"),
        (&["sandbox"], 2, "--dir <DIR>"),
        (&["run", "no/such/file.clj"], 74, "no/such/file.clj: there is no such file, or no directory"),
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
    let (fails, binary) = (path("fails.clj", "(fail {:a 1})"), path("binary.clj", ""));
    std::fs::write(&binary, b"\xff\xfe").expect("a file");
    for (arguments, code, text) in [
        (
            &["--data", &good, "--data", &broken][..],
            2,
            format!("--data {broken}: cannot import the data: invalid JSON at line"),
        ),
        (&["--data", &format!("x={broken}")], 2, format!("--data x={broken}: cannot import data/x")),
        (&["--data", &good, "--memory", &broken], 2, format!("--memory {broken}: cannot import the memory")),
        (
            &["--setup", &fails],
            4,
            format!(
                "a set-up program ended with (fail {{:a 1}})\n  help: a set-up program may end with any value, but not with fail\n  in {fails}"
            ),
        ),
        (&["--setup", &binary], 74, "the file is not UTF-8 text".to_owned()),
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
        assert!(drawn.contains("bad was called at prompt:1:1") && !drawn.contains("OutOfBounds"), "{drawn}");
    }
}

/// A person's own program has room and time; each line of `--lines` and programs of others have the strict limits.
#[test]
fn limits_are_those_of_who_wrote_the_program() {
    let work = "[(count (vec (range 3000000))) (loop [n 0] (if (< n 100000) (recur (inc n)) n))]";
    assert_eq!(out(&ptcl(&["run", "-e", work], "")), "[3000000 100000]\n");
    assert_eq!(out(&ptcl(&["repl"], &format!("{work}\n"))), "[3000000 100000]\n");
    for strict in [&["run", "--untrusted", "-e", work][..], &["run", "--lines", "-e", work]] {
        let done = ptcl(strict, "1\n");
        assert!(done.status.code() == Some(5) && err(&done).contains("memory_exceeded"), "{strict:?}: {}", err(&done));
    }
    assert_eq!(ptcl(&["repl", "--untrusted"], &format!("{work}\n")).status.code(), Some(5));
    let limits = out(&ptcl(&["repl", "--untrusted"], ":limits\n"));
    assert!(
        limits.contains("heap_bytes               10000000\n") && limits.contains("prints_bytes             0 (no"),
        "{limits}"
    );
    // What is printed is whole everywhere.
    let prints = "(dotimes [_ 30] (println (apply str (repeat 50000 \"ab\"))))";
    for command in
        [&["run", "-e", prints][..], &["run", "--untrusted", "-e", prints], &["repl"], &["repl", "--untrusted"]]
    {
        let done = ptcl(command, &format!("{prints}\n"));
        assert_eq!(out(&done).matches("ab").count(), 1_500_000, "{command:?}: {}", err(&done));
    }
    let answer: serde_json::Value =
        serde_json::from_slice(&ptcl(&["run", "--json", "-e", prints], "").stdout).expect("JSON");
    assert_eq!(
        answer["prints"].as_array().map(|lines| lines.iter().all(|line| line.as_str().unwrap().len() == 100_000)),
        Some(true)
    );
    assert_eq!((answer["prints"].as_array().map(Vec::len), &answer["truncated"]), (Some(30), &serde_json::json!({})));
}

/// What a setup program prints is shown if it fails, on standard error, and its error names its file.
#[test]
fn setup_programs_print_nothing_unless_they_fail() {
    let good = file("setup_good.clj", "(println \"said\") (defn half [x] (/ x 0))").display().to_string();
    let bad = file("setup_bad.clj", "(def a 1)\n(println \"said\")\n(/ a 0)").display().to_string();
    let record = file("setup_record", "").display().to_string();
    for isolation in ["in-process", "in_process", "process"] {
        for (command, typed) in [
            (&["run", "-e", "(inc 1)"][..], ""),
            (&["run", "--lines", "-e", "(inc data/in)"], "1\n"),
            (&["repl"], "(inc 1)\n"),
        ] {
            let command = [command, &["--isolation", isolation, "--setup"]].concat();
            let done = ptcl(&[&command[..], &[&good]].concat(), typed);
            assert_eq!((out(&done).as_str(), err(&done).as_str()), ("2\n", ""), "{command:?}");
            let done = ptcl(&[&command[..], &[&bad]].concat(), typed);
            let said = err(&done);
            assert_eq!((out(&done).as_str(), done.status.code()), ("", Some(4)), "{command:?}: {said}");
            assert!(said.contains(&format!("{bad}:3:1")), "{command:?}: {said}");
            // A session in another process does not send it.
            let is_sent = !(command.contains(&"repl") && isolation == "process");
            assert_eq!(said.contains("said\n"), is_sent, "{command:?}: {said}");
        }
    }
    ptcl(&["run", "--setup", &good, "--record", &record, "-e", "(half 1)"], "");
    let said = err(&ptcl(&["replay", &record], ""));
    assert!(said.contains("setup program 1 of the record:1:") && said.contains("called at record:1:1"), "{said}");
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
