//! `ptcl run` over data from standard input, the formats of what it writes, and outputs that take nothing.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a command came to: its code, its output, what it said.
type Came = (Option<i32>, String, String);

fn ptcl(arguments: &[&str], input: &[u8]) -> Came {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .arg("run")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::Builder::new().spawn(move || drop(stdin.write_all(&input))).unwrap();
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn out(arguments: &[&str], input: &str) -> String {
    let (code, out, err) = ptcl(arguments, input.as_bytes());
    assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    out
}

const PEOPLE: &str = r#"[{"name": "Ann", "n": 7, "tags": ["a"]}, {"name": "Bo \"B\", jr", "n": null}]"#;

#[test]
fn standard_input_is_data_in_when_the_program_names_it() {
    assert_eq!(out(&["-e", "(get-in data/in [\"a\" 1])"], r#"{"a": [1, 2]}"#), "2\n");
    assert_eq!(out(&["-e", "(count data/in)"], "\u{feff}[1, 2]"), "2\n");
    assert_eq!(out(&["-e", "(:a data/in)", "--keywords"], r#"{"a": 5}"#), "5\n");
    assert_eq!(out(&["-e", "(count data/in)", "--slurp"], "{\"a\": 1} [2]\n3\n"), "3\n");
    assert_eq!(out(&["-e", "data/in", "--slurp"], ""), "[]\n");
    // What an option binds is not read.
    assert_eq!(out(&["-e", "data/in", "--arg", "in=x"], "not JSON"), "\"x\"\n");
    assert_eq!(out(&["-e", "1"], "not JSON"), "1\n");
    for (arguments, input, code, says) in [
        (
            &["-e", "data/in"][..],
            "{\"a\": ",
            2,
            "\n  help: correct the JSON there, or name another format with --from\n",
        ),
        (&["-e", "data/in"], "1 2", 2, "use --lines for one on each line"),
        // The line at fault, and not the one where the reader noticed.
        (
            &["-e", "data/in", "--from", "ndjson"],
            "{\"a\":1}\n{\"a\":\n{\"a\":3}\n",
            2,
            "standard input: invalid JSON at line 2, column 6: the text ends where a value must be",
        ),
        (&["-e", "data/in", "--lines"], "1x", 2, "ptcl: line 1: cannot import data/in: invalid JSON at column 2: "),
        (&["-e", "data/in", "--slurp"], "1 [2", 2, "standard input: "),
        (&["-", "--lines"], "data/in", 2, "cannot both come from standard input"),
        (&["-e", "1", "--arg", "x"], "", 2, "write NAME=VALUE"),
        (&["-e", "data/x", "--arg-json", "x=[1"], "", 2, "--arg-json x=[1: "),
    ] {
        let (came, out, err) = ptcl(arguments, input.as_bytes());
        assert!(err.contains(says), "{arguments:?}: {err}");
        assert_eq!((came, out.as_str()), (Some(code), ""), "{arguments:?}");
    }
    assert_eq!(
        out(&["-e", "[data/a data/b]", "--arg", "a=1=2", "--arg-json", "b={\"c\": [1]}"], ""),
        "[\"1=2\" {\"c\" [1]}]\n"
    );
}

/// A file of this test's own.
fn file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("ptcl-data-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn files_after_the_program_are_data_in() {
    let csv = file("orders.csv", "id,total\n1,2.50\n2,\"1,000\"\n");
    let rows = "[{\"id\" \"1\" \"total\" \"2.50\"} {\"id\" \"2\" \"total\" \"1,000\"}]\n";
    assert_eq!(out(&["-e", "data/in", &csv], "not read"), rows);
    let program = file("program.clj", "(map :id data/in)");
    assert_eq!(out(&[&program, &csv, "--typed", "--keywords"], ""), "[1 2]\n");
    // By its name as a data set too.
    let bound = format!("orders={csv}");
    assert_eq!(out(&["-e", "(count data/orders)", "--data", &bound], ""), "2\n");
    // Standard input has the format of --from.
    assert_eq!(out(&["-e", "data/in", "--from", "tsv", "--no-header"], "a\tb\\tc\n"), "[[\"a\" \"b\\tc\"]]\n");
    assert_eq!(out(&["-e", "(:a data/in)", "--from", "yaml", "--keywords"], "a: [x, 1.5]\n"), "[\"x\" 1.5]\n");
    assert_eq!(out(&["-e", "data/in", "-R"], "a\nb"), "\"a\\nb\"\n");
    let toml = file("settings.toml", "[server]\nport = 80\n");
    assert_eq!(out(&["-e", "(get data/server \"port\")", "--data", &toml], ""), "80\n");
    // Several files are read line by line, or as one vector.
    let more = file("more.ndjson", "{\"id\": 3}\n{\"id\": 4}\n");
    assert_eq!(out(&["-e", "(map #(get % \"id\") data/in)", "--slurp", &csv, &more], ""), "[\"1\" \"2\" 3 4]\n");
    assert_eq!(
        out(&["--lines", "-e", "(get data/in \"id\")", &csv, "-", &more], "{\"id\": 0}"),
        "\"1\"\n\"2\"\n0\n3\n4\n"
    );
    assert_eq!(out(&["--lines", "-R", "-e", "(count data/in)"], "ab\n\nc\r\n"), "2\n0\n1\n");
    for (arguments, input, code, says) in [
        (&["-e", "data/in", &csv, &more][..], "", 2, "--slurp"),
        (&["-e", "data/in", "no-such.csv"], "", 74, "no-such.csv"),
        (&["-e", "data/in", "--from", "csv"], "a,b\n1\n", 2, "standard input: line 2: the row has 1 cell"),
        (
            &["-e", "data/in", "--lines", "--from", "csv"],
            "a,b\n1,2\n1\n",
            2,
            "standard input: line 3: the row has 1 cell",
        ),
        (&["-e", "(/ 1 0)", "--lines", "--from", "csv"], "a,b\n1,2\n", 4, "row 1"),
        (&["-e", "(/ 1 0)", "--lines", &more], "", 4, &format!("{more}:1: ")),
        (&["-e", "data/in", "--lines", "--from", "toml"], "a = 1", 2, "TOML is one value"),
        (&["-e", "data/in", "--from", "csv"], "a,b\n1\n", 2, "the header has 2: add the missing cells"),
        (&["-e", "data/in", "--from", "csv"], "a\n1,2\n", 2, "the header has 1: quote a cell that has a comma"),
        (&["-e", "data/in", "--lines", "-R", "--line-bytes", "3"], "abcd\n", 2, "line 1 has more than 3 bytes"),
        (&["-e", "data/in", &toml, "--from", "json"], "", 2, &format!("{toml}: ")),
    ] {
        let (came, _, err) = ptcl(arguments, input.as_bytes());
        assert!(err.contains(says), "{arguments:?}: {err}");
        assert_eq!(came, Some(code), "{arguments:?}: {err}");
    }
}

/// Of equal keys the last counts, wherever JSON comes in.
#[test]
fn the_last_of_equal_keys_counts() {
    let twice = r#"{"a": 1, "b": 0, "a": 2}"#;
    let wanted = "{\"a\" 2 \"b\" 0}\n";
    let file = std::env::temp_dir().join(format!("ptcl-twice-{}.json", std::process::id()));
    std::fs::write(&file, twice).unwrap();
    let path = file.to_str().unwrap();
    for (arguments, input) in [
        (&["-e", "data/in"][..], twice),
        (&["-e", "data/in", "--lines"], twice),
        (&["-e", "(first data/in)", "--slurp"], twice),
        (&["-e", "data/x", "--arg-json", &format!("x={twice}")], ""),
        (&["-e", "data/x", "--data", &format!("x={path}")], ""),
        (&["-e", "{\"a\" data/a \"b\" data/b}", "--data", path], ""),
    ] {
        assert_eq!(out(arguments, input), wanted, "{arguments:?}");
    }
    drop(std::fs::remove_file(&file));
}

#[test]
fn a_warning_on_the_program_goes_to_standard_error() {
    let fence = "ptcl: warning at line 1, column 1: the program is in a Markdown code fence, whose lines are skipped; \
        send the program without the lines of the fence\n";
    let program = "```clojure\n(count (re-seq #\"\\\\d\" \"a1\"))\n```";
    let (code, out, err) = ptcl(&["-e", program], b"");
    assert_eq!((code, out.as_str()), (Some(0), "0\n"));
    let doubled = "ptcl: warning at line 2, column 18: \\\\d in a pattern literal is a backslash and the letter d; \
        if you mean a digit, write \\d: a pattern literal is raw\n";
    assert_eq!(err, format!("{fence}{doubled}"));
    // Once, however many lines there are; and before the error of a program that fails.
    let (_, out, err) = ptcl(&["--lines", "-e", "```\n(inc data/in)\n```"], b"1\n2\n3\n");
    assert_eq!((out.as_str(), err.as_str()), ("2\n3\n4\n", fence));
    let (code, _, err) = ptcl(&["-e", "```\n(/ 1 0)\n```"], b"");
    assert!(code == Some(4) && err.starts_with(fence), "{err}");
    let (_, json, err) = ptcl(&["--json", "-e", "```\n1\n```"], b"");
    assert!(err.is_empty() && json.contains(r#""kind":"code_fence""#), "{json} {err}");
}

/// The first lines are checked, and a mistake that many lines have is written once.
#[test]
fn lines_are_checked_and_each_warning_is_written_once() {
    let program = "(or (:totl data/in) (:total data/in))\n(if (= (:s data/in) :a) 1 (:total data/in))";
    let line = |n: u32, s: &str| format!("{{\"total\": {n}, \"s\": {s}}}\n");
    let input = line(1, "5") + &line(2, "\"a\"") + &line(3, "\"a\"") + &line(4, "\"b\"").repeat(200);
    let warning = "ptcl: warning at line 2, column 5: this compares the keyword :a with strings, which are never equal; \
        write \"a\" (for line 2 of the input)\n";
    for jobs in ["1", "2"] {
        let (code, out, err) = ptcl(&["--lines", "--jobs", jobs, "-e", program], input.as_bytes());
        assert_eq!((code, out), (Some(0), format!("1\n2\n3\n{}", "4\n".repeat(200))));
        assert_eq!(err, warning);
    }
    // Later ones are not.
    let late = line(1, "5").repeat(100) + &line(2, "\"a\"");
    let (_, _, err) = ptcl(&["--lines", "-e", program], late.as_bytes());
    assert_eq!(err, "");
    // Before the error of a line that fails, and after the output of the lines before it.
    let (code, out, err) =
        ptcl(&["--lines", "-e", "(:totl data/in) (quot 1 (:n data/in))"], b"{\"n\": 1}\n{\"n\": 0, \"total\": 1}\n");
    assert_eq!((code, out.as_str()), (Some(4), "1\n"));
    assert!(
        err.starts_with("ptcl: warning at line 1, column 1: ") && err.contains("line 2: arithmetic_error"),
        "{err}"
    );
}

/// Data from files does not count when the option of an input is named.
#[test]
fn an_option_that_is_not_json_is_named_for_a_line() {
    let (code, _, err) =
        ptcl(&["--lines", "-e", "data/x", "--data", "examples/orders.json", "--arg-json", "x={"], b"1\n");
    assert_eq!(code, Some(2));
    assert!(err.starts_with("ptcl: line 1: --arg-json x={: cannot import data/x: invalid JSON"), "{err}");
}

/// NaN and infinities have no JSON: they are null in it, and each is named.
#[test]
fn a_number_that_json_has_not_is_null_and_named() {
    for (option, written) in [
        (&["--out", "json"][..], "[{\"a\":null,\"b\":1}]\n"),
        (&["--raw"], "[{\"a\":null,\"b\":1}]\n"),
        (&["--csv"], "a,b\n,1\n"),
    ] {
        let (code, out, err) = ptcl(&[&["-e", "[{:a ##NaN :b 1}]"], option].concat(), b"");
        assert_eq!((code, out.as_str()), (Some(0), written));
        assert_eq!(err, "ptcl: $[0].a of the value is ##NaN, which JSON cannot express: it is written as null\n");
    }
    assert_eq!(out(&["-e", "[##Inf]"], ""), "[##Inf]\n");
    let lines = |options: &[&str]| {
        ptcl(&[&["--lines", "-e", "(if (= data/in 2) ##Inf data/in)"], options].concat(), b"1\n2\nnull\n")
    };
    let (code, out, err) = lines(&["--out", "json"]);
    assert_eq!((code, out.as_str()), (Some(0), "1\nnull\nnull\n"));
    assert_eq!(err, "ptcl: line 2: $ of the value is ##Inf, which JSON cannot express: it is written as null\n");
    // It is no nil.
    assert_eq!(lines(&["--skip-nil"]), (Some(0), "1\n##Inf\n".to_owned(), String::new()));
    let (_, json, _) = ptcl(&["--json", "-e", "##NaN"], b"");
    assert!(json.contains(r#""value":null"#) && json.contains(r#""kind":"null_in_value""#), "{json}");
}

#[test]
fn a_value_is_written_in_the_format_that_is_asked_for() {
    assert_eq!(
        out(&["-e", "data/in", "--out", "pretty"], r#"{"b": [1, {}], "a": null}"#),
        "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": null\n}\n"
    );
    let yaml = "b: \"2020-01-01\"\na:\n- 1\n- \"010\"\nc: null\n";
    assert_eq!(out(&["-e", "data/in", "--out", "yaml"], r#"{"b": "2020-01-01", "a": [1, "010"], "c": null}"#), yaml);
    assert_eq!(out(&["-e", "data/in", "--out", "yaml", "--from", "yaml"], yaml), yaml);
    assert_eq!(out(&["-e", "{:x 1N}", "--out", "yaml"], ""), "x: 1\n");
    assert_eq!(out(&["--lines", "-e", "data/in", "--out", "yaml"], "{\"a\": 1}\n[]\n"), "---\na: 1\n---\n[]\n");
    assert_eq!(out(&["-e", "data/in", "--out", "ndjson"], "[1, [2, 3], \"a\"]"), "1\n[2,3]\n\"a\"\n");
    assert_eq!(out(&["-e", "data/in", "--out", "tsv"], r#"[{"a": "x\ty"}]"#), "a\nx\\ty\n");
    assert_eq!(out(&["--lines", "-e", "data/in", "--out", "tsv"], "{\"a\": 1}\n{\"a\": 2}\n"), "a\n1\n2\n");
    let coloured = out(&["-e", "{:a 1}", "--color", "always"], "");
    assert_eq!(coloured, "{\u{1b}[36m:a\u{1b}[0m \u{1b}[35m1\u{1b}[0m}\n");
    let of = |option: &[&str]| out(&[&["-e", "data/in"], option].concat(), PEOPLE);
    assert_eq!(
        of(&["--out", "json"]),
        "[{\"name\":\"Ann\",\"n\":7,\"tags\":[\"a\"]},{\"name\":\"Bo \\\"B\\\", jr\",\"n\":null}]\n"
    );
    assert_eq!(of(&["--csv"]), "name,n,tags\nAnn,7,\"[\"\"a\"\"]\"\n\"Bo \"\"B\"\", jr\",,\n");
    assert_eq!(of(&["--table"]), "name        n  tags\n----------  -  -----\nAnn         7  [\"a\"]\nBo \"B\", jr\n");
    assert_eq!(out(&["-r", "-e", "(get (first data/in) \"name\")"], PEOPLE), "Ann\n");
    assert_eq!(out(&["-r", "-e", "[1 \"a\"]"], ""), "[1,\"a\"]\n");
    for (arguments, says) in [
        (&["--csv", "-e", "(+ 1 2)"][..], "CSV takes a vector of maps or of vectors; this value is a number"),
        (&["--table", "-e", "[1 2]"], "a table takes a vector of maps"),
        (&["--out", "json", "-e", "{:a 1 \"a\" 2}"], "the value: two keys"),
        (&["--out", "yaml", "-e", &format!("[{}N]", "9".repeat(50))], "cannot be written as YAML"),
    ] {
        let (code, out, err) = ptcl(arguments, b"");
        assert!(err.contains(says), "{err}");
        assert_eq!((code, out.as_str()), (Some(4), ""));
    }
    let (code, _, err) = ptcl(&["--csv", "--table", "-e", "1"], b"");
    assert!(code == Some(2) && err.contains("cannot be used with"), "{err}");
}

#[test]
fn lines_are_worked_on_side_by_side_and_written_in_order() {
    let many: String = (0..20_000).map(|n| format!("{{\"n\": {n}, \"text\": \"{}\"}}\n", "x".repeat(n % 97))).collect();
    let program = "(let [n (get data/in \"n\")] (when (= 0 (mod n 7)) (println n)) (count (get data/in \"text\")))";
    let all = out(&["--lines", "--out", "json", "-e", program], &many);
    let mut lines = all.lines();
    for n in 0..20_000 {
        if n % 7 == 0 {
            assert_eq!(lines.next().unwrap(), n.to_string());
        }
        assert_eq!(lines.next().unwrap(), (n % 97).to_string());
    }
    assert_eq!(lines.next(), None);
    // Other data is there for each line; empty lines are none; the last line needs no end.
    let rows = out(&["--lines", "-e", "[data/k (get data/in \"a\")]", "--arg", "k=x"], "{\"a\":1}\n\n  \n{\"a\":2}");
    assert_eq!(rows, "[\"x\" 1]\n[\"x\" 2]\n");
    assert_eq!(out(&["--lines", "--csv", "-e", "data/in"], "{\"b\":1,\"a\":2}\n{\"a\":3}\n"), "b,a\n1,2\n,3\n");
    assert_eq!(out(&["--lines", "-r", "-e", "(str data/in \"!\")"], "\"a\"\n\"b\"\n"), "a!\nb!\n");
    assert_eq!(out(&["--lines", "-e", "data/in"], ""), "");
}

#[cfg(target_os = "linux")]
#[test]
fn lines_run_behind_the_process_door_too() {
    let row = out(&["--isolation", "process", "--out", "json", "-e", "(assoc data/in \"c\" 3)"], r#"{"b": 1, "a": 2}"#);
    assert_eq!(row, "{\"b\":1,\"a\":2,\"c\":3}\n");
    let rows = out(&["--lines", "--isolation", "process", "-e", "(inc data/in)"], "1\n2\n3\n");
    assert_eq!(rows, "2\n3\n4\n");
}

#[test]
fn a_line_that_fails_is_named_and_stops_the_rest_unless_told_otherwise() {
    let input = "1\n2\nnope\n4\n\"x\"\n6\n";
    let (code, out, err) = ptcl(&["--lines", "-e", "(inc data/in)"], input.as_bytes());
    assert_eq!((code, out.as_str()), (Some(2), "2\n3\n"));
    assert!(err.starts_with("ptcl: line 3: cannot import data/in: invalid JSON at column "), "{err}");
    let (code, out, err) = ptcl(&["--lines", "--keep-going", "-e", "(inc data/in)"], input.as_bytes());
    assert_eq!((code, out.as_str()), (Some(4), "2\n3\n5\n7\n"));
    let said: Vec<&str> = err.lines().filter(|line| line.starts_with("ptcl: line ")).map(|line| &line[..12]).collect();
    assert_eq!(said, ["ptcl: line 3", "ptcl: line 5"], "{err}");
    // A setup program from a pipe is shown, though it can be read only once.
    let (code, _, err) = ptcl(&["--setup", "/dev/stdin", "-e", "1"], b"(inc nil)");
    assert!(code == Some(4) && err.contains("(inc nil)") && err.contains("/dev/stdin:1:1"), "{err}");
    // The highest of the codes, whatever the order of the lines.
    for (input, wanted) in [("[1]\n9\n\"x\"\n", 4), ("\"x\"\n9\n[1]\n", 4), ("9\n[1]\n", 1), ("9\n", 0)] {
        let program = "(cond (vector? data/in) (fail 1) (string? data/in) (inc data/in) :else data/in)";
        let (code, out, _) = ptcl(&["--lines", "--keep-going", "-e", program], input.as_bytes());
        assert_eq!((code, out.as_str()), (Some(wanted), "9\n"), "{input}");
    }
    let (code, out, err) = ptcl(&["--lines", "-e", "(fail data/in)"], b"7\n8\n");
    assert_eq!((code, out.as_str(), err.as_str()), (Some(1), "", "ptcl: line 1: failed: 7\n"));
    let (code, _, err) = ptcl(&["--lines", "-e", "(nope"], b"7\n");
    assert!(code == Some(3) && err.contains("parse_error"), "{err}");
    let (code, out, err) =
        ptcl(&["--lines", "-e", "data/in", "--line-bytes", "10"], &[b"1\n".as_slice(), &[b'1'; 600_000]].concat());
    assert!(code == Some(74) && err.contains("--line-bytes"), "{code:?} {out} {err}");
    let (code, out, err) = ptcl(&["--lines", "-e", "data/in", "--line-bytes", "3"], b"1\n123\n1234\n5\n");
    assert_eq!((code, out.as_str()), (Some(74), "1\n123\n"));
    assert!(err.contains("line 3: the line has more than 3 bytes: raise --line-bytes"), "{err}");
    let (code, out, err) = ptcl(&["--lines", "-e", "data/in"], b"1\n\"\xff\"\n");
    assert_eq!((code, out.as_str()), (Some(74), "1\n"));
    assert!(err.contains("line 2: the line is not UTF-8"), "{err}");
    let (code, out, err) = ptcl(&["--lines", "--csv", "-e", "data/in"], b"{\"a\":1}\n{\"b\":1}\n");
    assert_eq!((code, out.as_str()), (Some(4), "a\n1\n"));
    assert!(err.contains("line 2: row 2 has the key \"b\""), "{err}");
}

/// Values of lines that are there come while others are to come, and a failed one ends the command though its input goes on.
#[test]
fn lines_that_come_slowly_are_answered_at_once() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(["run", "--lines", "-e", "(inc data/in)"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    for n in 0..5 {
        writeln!(stdin, "{n}").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), (n + 1).to_string());
    }
    writeln!(stdin, "null").unwrap();
    assert_eq!(ended(&mut child), Some(4));
    assert!(lines.next().is_none());
}

/// Waits for the end of a command, and returns its code. One that does not end is killed, and fails the test.
fn ended(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + Duration::from_secs(100);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_profile_is_shown_beside_the_source_and_drawn() {
    let program = "(defn half [x] (/ x 2))\n(reduce + (map half (range 1000)))";
    let svg = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flame.svg");
    for mode in ["in-process", "process"] {
        let arguments = ["--profile", "--flame", svg.to_str().unwrap(), "--isolation", mode, "-e", program];
        let (code, out, err) = ptcl(&arguments, b"");
        assert_eq!((code, out.as_str()), (Some(0), "249750.0\n"), "{err}");
        let row = |end: &str| err.lines().find(|line| line.ends_with(end)).unwrap_or_else(|| panic!("{end}: {err}"));
        let fuel = |end: &str| row(end).split_whitespace().next().unwrap().replace(',', "").parse::<u64>().unwrap();
        assert!(fuel("   1 | (defn half [x] (/ x 2))") > 3_000, "{err}");
        assert!(fuel("   2 | (reduce + (map half (range 1000)))") > 3_000, "{err}");
        assert!(fuel("-e:2:11 (map half (range 1000))") >= fuel("-e:1:16 (/ x 2)"), "{err}");
        let drawn = std::fs::read_to_string(&svg).unwrap();
        assert!(drawn.contains("<svg") && drawn.contains("half 1:16 (/ x 2)"), "{drawn}");
        std::fs::remove_file(&svg).unwrap();
    }
    let (code, _, err) = ptcl(&["--flame", "/no/such/place.svg", "-e", "1"], b"");
    assert_eq!(code, Some(74), "{err}");
    assert!(err.contains("/no/such/place.svg"), "{err}");
    // A failed run has one too; what cannot be compiled has none.
    let (code, _, err) = ptcl(&["--profile", "-e", "(map inc [1 nil])"], b"");
    assert!(code == Some(4) && err.contains("profile: ") && err.contains("in map, element 1"), "{code:?} {err}");
    let (code, _, err) = ptcl(&["--profile", "-e", "(map inc"], b"");
    assert!(code == Some(3) && !err.contains("profile: "), "{code:?} {err}");
}

#[test]
fn a_watched_program_runs_again_when_it_changes() {
    use std::io::{BufRead, BufReader};
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watched.clj");
    std::fs::write(&program, "(+ 1 1)").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(["run", "--watch", program.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut err = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(out.next().unwrap().unwrap(), "2");
    assert!(err.next().unwrap().unwrap().contains("waiting for a change"));
    std::fs::write(&program, "(inc nil)").unwrap();
    assert_eq!(err.next().unwrap().unwrap(), "type_error");
    let mut rest = err.by_ref().map_while(Result::ok);
    assert!(rest.any(|line| line.contains("waiting for a change")));
    std::fs::write(&program, "(+ 1 100)").unwrap();
    assert_eq!(out.next().unwrap().unwrap(), "101");
    child.kill().unwrap();
    child.wait().unwrap();
    for wrong in [&["--watch", "-e", "1"][..], &["--watch", "-"]] {
        let (code, _, said) = ptcl(wrong, b"");
        assert!(code == Some(2) && said.contains("as FILE, or its data with --data FILE"), "{code:?} {said}");
    }
}

#[test]
fn colours_are_as_asked() {
    let coloured = |arguments: &[&str]| ptcl(&[arguments, &["-e", "(inc nil)"]].concat(), b"").2.contains('\u{1b}');
    assert!(coloured(&["--color", "always"]));
    assert!(!coloured(&["--color", "never"]) && !coloured(&["--color", "auto"]) && !coloured(&[]));
    assert_eq!(ptcl(&["--color", "pink", "-e", "1"], b"").0, Some(2));
}

#[test]
fn lines_whose_value_is_nil_can_be_left_out() {
    let lines = "{\"n\": 1}\n{\"n\": 5}\n{\"n\": null}\n{\"n\": 7}\n";
    let program = "(when (> (or (:n data/in) 0) 4) (println :seen) (:n data/in))";
    assert_eq!(out(&["--lines", "--skip-nil", "--out", "json", "-e", program], lines), ":seen\n5\n:seen\n7\n");
    assert_eq!(out(&["--lines", "--out", "json", "-e", "(:n data/in)"], lines), "1\n5\nnull\n7\n");
    assert_eq!(
        out(&["--lines", "--skip-nil", "--csv", "-e", "(when (:n data/in) {:n (:n data/in)})"], lines),
        "n\n1\n5\n7\n"
    );
    assert_eq!(ptcl(&["--skip-nil", "-e", "1"], b"").0, Some(2));
}

/// What is written to a closed or full output is missed by nobody but the caller, who is told by the exit code; nothing panics.
#[cfg(target_os = "linux")]
#[test]
fn outputs_that_take_nothing_break_nothing() {
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &command.replace("ptcl", env!("CARGO_BIN_EXE_ptcl"))]).env("HOME", std::env::temp_dir());
        shell.output().expect("a shell").status.code()
    };
    for (command, code) in [
        ("ptcl run -e '(' 2>/dev/full", 3),
        ("ptcl run -e '(inc nil)' 2>/dev/full", 4),
        ("ptcl run -e '(fail 1)' 2>/dev/full", 1),
        ("ptcl run --profile -e '(+ 1 2)' 2>/dev/full", 0),
        ("ptcl run /nosuch 2>/dev/full", 74),
        ("ptcl check /nosuch 2>/dev/full", 74),
        ("ptcl explain nosuch 2>/dev/full", 2),
        ("ptcl serve --config /nosuch 2>/dev/full", 2),
        ("echo ':save /dev/null/x' | ptcl repl 2>/dev/full", 74),
        ("echo ':foo' | ptcl repl 2>/dev/full", 0),
        ("ptcl run -e '(+ 1 2)' >/dev/full", 74),
        ("ptcl run -e '(+ 1 2)' >&-", 74),
        ("ptcl run -e '(+ 1 2)' >/dev/null", 0),
        // As a parent opens it that wants no output.
        ("ptcl run -e '(+ 1 2)' 1<>/dev/null", 0),
        ("ptcl doc map 1<>/dev/null", 0),
        ("echo ':help' | ptcl repl >/dev/full", 74),
        ("echo ':limits' | ptcl repl >/dev/full", 74),
        ("echo ':apropos map' | ptcl repl >/dev/full", 74),
    ] {
        assert_eq!(shell(command), Some(code), "{command}");
    }
}

/// One value of all lines, in every format that has lines.
#[test]
fn lines_are_folded_to_one_value() {
    let sum = ["--lines", "--fold", "0", "(+ acc (get data/in \"n\"))"];
    assert_eq!(out(&sum, "{\"n\": 1}\n\n{\"n\": 2}\n{\"n\": 39}"), "42\n");
    assert_eq!(out(&sum, ""), "0\n");
    let typed = |format: &str, text: &str| {
        let fold = "(update acc (keyword (:k data/in)) (fnil + 0) (:n data/in)) ; data/in";
        out(&["--lines", "--from", format, "--typed", "--keywords", "--fold", "{:seen #{}}", fold], text)
    };
    assert_eq!(typed("csv", "k,n\na,1\nb,2\na,3\n"), "{:a 4 :b 2 :seen #{}}\n");
    assert_eq!(typed("tsv", "k\tn\na\t1\n"), "{:a 1 :seen #{}}\n");
    assert_eq!(out(&["--lines", "-R", "--fold", "-1", "(max acc (count data/in))"], "ab\n\nabc\n"), "3\n");
    // Values of the language stay what they are; what is given is there, and what is printed is in order.
    let file = file("fold.ndjson", "1\n2\n");
    let program = "(println data/in (str \"data/in\")) (conj acc [:k data/x (inc data/in)])";
    assert_eq!(
        out(&["--lines", "--fold", "#{}", program, "--arg", "x=y", "--out", "json", &file, "-"], "3"),
        "1 data/in\n2 data/in\n3 data/in\n[[\"k\",\"y\",2],[\"k\",\"y\",3],[\"k\",\"y\",4]]\n"
    );
    let setup = self::file("fold.clj", "(defn n [] (get data/in \"n\"))");
    let given = self::file("in.json", "{\"in\": 1}");
    for (arguments, code, says) in [
        (&["--fold", "0", "(/ acc data/in)"][..], 4, "line 2: arithmetic_error"),
        // What would be lost, or mean something else inside the fold.
        (&["--fold", "0", "(return data/in)"], 4, "line 1: --fold EXPR called (return v): leave return out"),
        (&["--fold", "(return 5)", "acc"], 4, "--fold INIT called (return v): leave return out"),
        (&["--fold", "0", "(recur acc data/in)"], 3, "--fold EXPR:1:1"),
        (&["--fold", "", "acc"], 2, "--fold INIT must be one form, such as 0 or []; this has 0"),
        (&["--fold", "\"doc\" 5", "acc"], 2, "this has 2"),
        (&["--fold", "0", "; nothing"], 2, "--fold EXPR must have a form"),
        (&["--fold", "acc", "acc"], 3, "acc is not defined"),
        (&["--fold", "data/in", "acc"], 2, "there is no line yet"),
        (&["--fold", "0", "acc", "--arg", "in=x"], 2, "with --fold, data/in is the line"),
        (&["--fold", "0", "acc", "--data", &given], 2, "with --fold, data/in is the line"),
        (&["--fold", "0", "(n)", "--setup", &setup], 2, "only EXPR has data/in"),
        (&["--fold", "0", "(throw (ex-info \"*INPUT* bad\" {}))"], 4, "*INPUT* bad"),
        (&["--fold", "0", "(data/in 1)"], 4, "with data/in = 1"),
        (&["--fold", "0", "(+ acc\n  (quot 1 data/in))"], 4, "--fold EXPR:2:3"),
        (&["--fold", "0", "(+ acc\n  (quot 1 data/in))"], 4, "(quot 1 data/in)"),
        (&["--fold", "0", "(let [a data/in] (quot a 0))"], 4, "line 1: arithmetic_error"),
        (&["--fold", "(inc nil)", "acc"], 4, "--fold INIT:1:1"),
        (&["--fold", "0", "(+ acc"], 3, "--fold EXPR:1:1"),
        (&["--fold", "0", "acc) 1"], 3, "--fold EXPR:1:4"),
        (&["--fold", "0", "(nope acc)"], 3, "--fold EXPR:1:2"),
        (&["--fold", "0", "(nope acc)\n(nope2 1)"], 3, "--fold EXPR:2:2"),
        (&["--fold", "0", "(fail {:a data/in})"], 1, "line 1: failed: {:a 1}"),
        (&["--fold", "0", "(if (= data/in 0) (inc nil) 1)", "-"], 4, "line 2: type_error"),
        (&["--fold", "0", "acc", "-e", "1"], 2, "cannot be used with"),
        (&["--fold", "0"], 2, "2 values required"),
    ] {
        let (came, out, err) = ptcl(&[&["--lines"], arguments].concat(), b"1\n0\n");
        assert!(err.contains(says) && !err.contains("*input*") && !err.contains("ptcl-fold"), "{arguments:?}: {err}");
        assert_eq!((came, out.as_str()), (Some(code), ""), "{arguments:?}: {err}");
    }
    // It reads lines without --lines too.
    assert_eq!(out(&["--fold", "0", "(+ acc data/in)"], "1\n2\n"), "3\n");
    let table = ["--lines", "--fold", "[]", "(conj acc {:n data/in})", "--table"];
    assert_eq!(out(&table, "1\n20\n"), " n\n--\n 1\n20\n");
    let (code, _, err) = ptcl(&["--lines", "--table", "-e", "data/in"], b"1\n");
    assert!(code == Some(2) && err.contains("--slurp in place of --lines"), "{err}");
    // A misspelt acc.
    for (arguments, is_acc) in [
        (&["--fold", "0", "(inc ac)"][..], true),
        (&["--fold", "0", "acc", "--then", "(inc accc)"], true),
        (&["--fold", "ac", "acc"], false),
        (&["--fold", "0", "(inc total)"], false),
    ] {
        let (code, _, err) = ptcl(arguments, b"1\n");
        assert!(code == Some(3) && err.contains("did you mean acc?") == is_acc, "{arguments:?}: {err}");
    }
    let fold = &["--lines", "--keep-going", "--fold", "0", "(+ acc data/in)"];
    let (code, out, err) = ptcl(fold, b"1\nnope\n\"x\"\n4\n");
    assert_eq!((code, out.as_str()), (Some(4), "5\n"), "{err}");
    assert!(
        err.contains("line 2: cannot import data/in: invalid JSON at column") && err.contains("line 3: type_error"),
        "{err}"
    );
    // A text of the program's own is as it is, and names of the fold's own are refused.
    let (_, _, err) = ptcl(&["--lines", "--fold", "0", "(throw (ex-info \"*input* bad\" {}))"], b"1\n");
    assert!(err.contains("*input* bad") && !err.contains("data/in bad"), "{err}");
    for name in ["*input*", "(def ptcl-fold-step nil)", "(tool/ptcl-fold-line {})"] {
        let (code, _, err) = ptcl(&["--lines", "--fold", "0", name], b"1\n");
        assert!(code == Some(2) && err.contains("which --fold uses itself"), "{err}");
    }
}

/// `--then` finishes the value.
#[test]
fn a_fold_is_finished_by_one_more_expression() {
    let step = "{:n (inc (:n acc)) :sum (+ (:sum acc) data/in)}";
    let mean = ["--fold", "{:n 0 :sum 0}", step, "--then", "(/ (:sum acc) (:n acc))"];
    assert_eq!(out(&mean, "1\n2\n6\n"), "3.0\n");
    let csv = ["--fold", "{}", "(assoc acc data/in 1)", "--then", "(def k (keys acc)) (map vector k)", "--csv"];
    assert_eq!(out(&csv, "\"b\"\n\"a\"\n"), "a\nb\n");
    for (then, code, says) in [
        ("(inc (:sum nil))", 4, "--then EXPR:1:1"),
        ("(inc\n  (/ acc 0))", 4, "--then EXPR:2:3"),
        ("(inc acc", 3, "--then EXPR:1:1"),
        ("(nope acc)", 3, "--then EXPR:1:2"),
        ("", 2, "--then EXPR must have a form, such as acc"),
        ("data/in", 2, "--then EXPR has data/in, and there is no line any more"),
        ("(ptcl-fold-step acc 1)", 2, "which --fold uses itself"),
        ("(fail {:acc acc})", 1, "failed: {:acc 3}"),
    ] {
        let (came, out, err) = ptcl(&["--fold", "0", "(+ acc data/in)", "--then", then], b"1\n2\n");
        assert!(err.contains(says) && !err.contains("ptcl-fold-then"), "{then}: {err}");
        assert_eq!((came, out.as_str()), (Some(code), ""), "{then}: {err}");
    }
    for arguments in [&["-e", "1", "--then", "2"][..], &["--then", "2"]] {
        let (code, _, err) = ptcl(arguments, b"");
        assert!(code == Some(2) && err.contains("--then"), "{err}");
    }
}

/// YAML may have several documents.
#[test]
fn documents_of_yaml_are_read_one_by_one() {
    let text = "a: 1\n---\nb: [1, 2]\n";
    let read = |arguments: &[&str]| out(&[&["--from", "yaml", "--out", "json"], arguments].concat(), text);
    assert_eq!(read(&["--slurp", "-e", "data/in"]), "[{\"a\":1},{\"b\":[1,2]}]\n");
    assert_eq!(read(&["--lines", "-e", "data/in"]), "{\"a\":1}\n{\"b\":[1,2]}\n");
    assert_eq!(read(&["--fold", "[]", "(into acc (keys data/in))"]), "[\"a\",\"b\"]\n");
    let (code, _, err) = ptcl(&["--from", "yaml", "-e", "data/in"], text.as_bytes());
    assert!(
        code == Some(2) && err.contains("2 documents") && err.contains("--slurp") && err.contains("--lines"),
        "{err}"
    );
    let file = file("two.yaml", text);
    let (code, _, err) = ptcl(&["--lines", "-e", "(inc (:a data/in))", &file], b"");
    assert!(code == Some(4) && err.contains(&format!("{file}: document 2: type_error")), "{err}");
    let (code, _, err) = ptcl(&["--lines", "--from", "yaml", "-e", "data/in"], b"a: 1\n---\nb: [1\n");
    assert!(code == Some(2) && err.contains("standard input: invalid YAML") && err.contains("line 3"), "{err}");
}

/// A text that ends too early is told by the same place and the same words, however it is read.
#[test]
fn a_text_that_ends_early_is_told_in_plain_words() {
    for (line, column, words) in [
        ("[1, 2", 6, "the text ends inside a list"),
        ("{\"a\": 1", 8, "the text ends inside an object"),
        ("\"a", 3, "the text ends inside a string"),
        ("{\"a\":", 6, "the text ends where a value must be"),
    ] {
        let text = format!("1\n{line}\n3\n4\n");
        let file = file("early.ndjson", &text);
        for arguments in [&["-e", "data/in"][..], &["-e", "data/in", "--slurp"], &["-e", "data/in", "--lines"]] {
            let (code, _, err) = ptcl(&[arguments, &[&file]].concat(), b"");
            let is_named = err.contains(&format!("column {column}: {words}")) && !err.contains("EOF");
            assert!(code == Some(2) && is_named, "{arguments:?}: {err}");
        }
        let (_, _, err) = ptcl(&["-e", "data/in"], line.as_bytes());
        assert!(err.contains(&format!("line 1, column {column}: {words}")), "{err}");
    }
}

/// The errors of lines that cannot be read are those of a run without a fold.
#[test]
fn a_line_that_a_fold_cannot_read_is_named_as_without_it() {
    let deep = "[".repeat(513) + &"]".repeat(513);
    for line in ["{\"a\": \"\\ud800\"}", "1e400", &deep, "nope"] {
        let (code, _, plain) = ptcl(&["--lines", "-e", "data/in"], line.as_bytes());
        let (came, out, folded) = ptcl(&["--lines", "--fold", "0", "data/in"], line.as_bytes());
        assert_eq!((code, came, out.as_str()), (Some(2), Some(2), ""));
        assert_eq!(folded, plain);
    }
}

/// What limits take from the printed lines of a fold is said once, after the value.
#[test]
fn printed_lines_that_a_fold_loses_are_counted() {
    let program = "(do (println \"aaaaaaaaaa\") (+ acc data/in))";
    let fold = ["--lines", "--limits", "print_chars=5", "--fold", "0", program];
    let (code, out, err) = ptcl(&fold, b"1\n2\n");
    assert_eq!((code, out.lines().last()), (Some(5), Some("3")));
    assert_eq!(err, "ptcl: 2 printed lines are cut: raise the limit print_chars, or set it to 0\n");
    let (code, _, err) = ptcl(&fold, b"1\nnull\n");
    assert!(code == Some(4) && err.contains("line 2: type_error") && err.contains("2 printed lines are cut"), "{err}");
}

/// A fold ends when nobody reads what it prints, though its input goes on.
#[test]
fn a_fold_whose_output_is_closed_ends() {
    let isolations: &[&str] = if cfg!(target_os = "linux") { &["in-process", "process"] } else { &["in-process"] };
    for isolation in isolations {
        let program = "(do (println acc) (+ acc data/in))";
        let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
            .args(["run", "--lines", "--isolation", isolation, "--fold", "0", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::Builder::new().spawn(move || while stdin.write_all(b"1\n").is_ok() {}).unwrap();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "0\n");
        drop(out);
        assert_eq!(ended(&mut child), Some(74), "{isolation}");
        writer.join().unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
        assert_eq!(said, "");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn lines_are_folded_behind_the_process_door_too() {
    let fold = ["--lines", "--isolation", "process", "--fold", "[]", "(do (println acc) (conj acc data/in))"];
    assert_eq!(out(&fold, "1\n{\"a\": null}\n"), "[]\n[1]\n[1 {\"a\" nil}]\n");
}

/// Memory does not grow with the lines: the data has ten times what the program may hold.
#[test]
fn a_fold_holds_one_line() {
    let line = format!("{{\"n\": 1, \"text\": \"{}\"}}\n", "x".repeat(1_000));
    let limit = "heap_bytes=1MB,setup_heap_bytes=4MB";
    let fold = ["--lines", "--fold", "0", "(+ acc (get data/in \"n\"))", "--limits", limit];
    assert_eq!(out(&fold, &line.repeat(10_000)), "10000\n");
}
