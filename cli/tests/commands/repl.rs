//! The prompt, with its input from a pipe.

use super::{err, file, out, ptcl};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_prompt_reads_whole_forms_and_keeps_definitions() {
    let done = ptcl(
        &["repl"],
        "(defn f [x]\n  (* x 2))\n(f 21)\n(inc *1)\n(println \"hi\") :k\n(+ 1 nil)\n:names\n:help\n:quit\n1\n",
    );
    assert_eq!(done.status.code(), Some(4), "{}", err(&done));
    let printed = out(&done);
    assert!(printed.starts_with("#'f\n42\n43\nhi\nnil\n:k\nf\n"), "{printed}");
    assert!(printed.contains(":quit"), "{printed}");
    assert!(!printed.ends_with("\n1\n"), "nothing runs after :quit");
    assert!(err(&done).contains("type_error"));
}

#[cfg(target_os = "linux")]
#[test]
fn the_prompt_saves_loads_and_takes_back() {
    let file = std::env::temp_dir().join(format!("ptcl-session-{}", std::process::id()));
    let path = file.to_string_lossy();
    let typed = format!(
        "(defn f [x] (* 2 x))\n(def y 1)\n:save {path}\n(def y 2)\n:undo\n[y (f 21)]\n:undo\n:names\n:load {path}\n[y (f 4)]\n:load\n:undo\n:names\n:undo\n:undo\n"
    );
    for isolation in ["in-process", "process"] {
        let done = ptcl(&["repl", "--isolation", isolation], &typed);
        assert_eq!(out(&done), "#'f\n#'y\n#'y\n[1 42]\nf\n[1 8]\nf\n", "{isolation}: {}", err(&done));
        let said = [
            "undid (def y 2)\n".to_owned(),
            "undid (def y 1) and the form after it, which changed no definition\n".to_owned(),
            ":load takes FILE".to_owned(),
            format!("undid :load {path}\nundid (defn f [x] (* 2 x))\nnothing to undo\n"),
        ];
        assert!(said.iter().all(|part| err(&done).contains(part)), "{isolation}: {}", err(&done));
        let _ = std::fs::remove_file(&file);
    }
}

/// `:undo` goes past what only shows something, and past the sessions that were replaced.
#[test]
fn undo_takes_back_what_changed_and_says_what() {
    let saved = file("undone", "");
    let saved = saved.display();
    let long = "x".repeat(70);
    let typed = format!(
        "(def a 1)\n:save {saved}\na\n:undo\n:undo\n(+ 1 2)\n:undo\n(def {long} 1) ; long\n:undo\n(do (def b 1)\n 5)\n:undo\n\
         (def c 1)\n:load {saved}\n:limits fuel=5G\n(def d 1)\n:undo\n:undo\n:defs\n(inc nil)\n:undo\n:defs\n"
    );
    let done = ptcl(&["repl"], &typed);
    let long = format!("undid (def {}…\n", "x".repeat(55));
    for part in [
        "undid (def a 1) and the form after it, which changed no definition\nnothing to undo\n",
        "nothing to undo: no form changed a definition\n",
        &long,
        "undid (do (def b 1)…\n",
        &format!("fuel: 0 (no limit) -> 5000000000\nundid (def d 1)\nundid :load {saved}\n"),
        "undid (def c 1)\n",
    ] {
        assert!(err(&done).contains(part), "{part}: {}", err(&done));
    }
    assert!(out(&done).ends_with("#'d\nc\n\n"), "{}", out(&done));
}

/// What a file has is lost only if that is asked for.
#[cfg(target_os = "linux")]
#[test]
fn a_session_is_not_saved_over_another_file() {
    let precious = file("precious.csv", "a,b\n1,2\n");
    let path = precious.display();
    for isolation in ["in-process", "process"] {
        std::fs::write(&precious, "a,b\n1,2\n").unwrap();
        let arguments = ["repl", "--isolation", isolation];
        let done = ptcl(&arguments, &format!("(def a 1)\n:save {path}\n"));
        let said = format!("{path} exists and is not a saved session; :save! {path} replaces it\n");
        assert_eq!((err(&done), done.status.code()), (said, Some(2)));
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "a,b\n1,2\n");
        // A saved session may be replaced.
        let done = ptcl(
            &arguments,
            &format!("(def a 1)\n:save! {path}\n(def a 2)\n:save {path}\n(def a 3)\n:load {path}\na\n"),
        );
        assert!(out(&done).ends_with("#'a\n2\n"), "{}{}", out(&done), err(&done));
    }
}

/// `:data` adds data to a session, as `--data` does.
#[test]
fn data_is_added_to_a_session() {
    let rows = file("added.csv", "n\n1\n2\n");
    let object = file("added.json", "{\"rate\": 0.5, \"names\": {\"deep\": [\"x\"]}}");
    let broken = file("broken.json", "{\"a\": [1, ");
    let (path, object, broken) = (rows.display(), object.display(), broken.display());
    let stem = rows.file_stem().unwrap().to_string_lossy();
    let typed = format!(
        "(def a 1)\n:load {path}\n:data {path}\n:data {object}\n:data all={object}\n\
         [a (map :n data/{stem}) data/rate (get-in data/all [\"names\" \"deep\"])]\n\
         :undo\n:limits fuel=9G\ndata/rate\n:data\n:data {broken}\n:data given=x.json\n:data given={object}\n:data no-such.csv\n:data =x\ndata/rate\n"
    );
    let isolations = if cfg!(target_os = "linux") { &["in-process", "process"][..] } else { &["in-process"] };
    for isolation in isolations {
        std::fs::write(&rows, "n\n1\n2\n").unwrap();
        let done = ptcl(&["repl", "--typed", "--isolation", isolation, "--arg", "given=1"], &typed);
        let listed = format!("data/all data/given data/names data/rate data/{stem}");
        assert!(out(&done).starts_with("#'a\n[1 [1 2] 0.5 [\"x\"]]\n0.5\n"), "{}{}", out(&done), err(&done));
        let mut names: Vec<&str> = listed.split(' ').collect();
        names.sort_unstable();
        assert!(out(&done).ends_with(&format!("{}\n0.5\n", names.join(" "))), "{}", out(&done));
        for part in [
            format!("{path} is not a saved session; to read data, write :data {path}\n"),
            format!("added data/{stem}\nadded data/rate data/names\nadded data/all\nundid (def a 1)"),
            format!("ptcl: :data {broken}: invalid JSON: the text ends"),
            "data/given was bound when the REPL started".to_owned(),
            "ptcl: no-such.csv: there is no such file".to_owned(),
            ":data =x: the name before = is missing".to_owned(),
        ] {
            assert!(err(&done).contains(&part), "{part}: {}", err(&done));
        }
        // A file that changed is read again.
        let change = format!(":data {path}\n(count data/{stem})\n");
        let done = ptcl(&["repl", "--isolation", isolation], &change.repeat(2));
        assert_eq!(out(&done), "2\n2\n", "{}", err(&done));
    }
}

/// Times of other REPLs have a command here.
#[test]
fn the_time_of_a_form_is_named() {
    for typed in ["(time (+ 1 2))\n", "%timeit (+ 1 2)\n", "%time (+ 1 2)\n"] {
        let done = ptcl(&["repl"], typed);
        assert!(err(&done).contains("for the time of a form, write :time FORM"), "{typed}: {}", err(&done));
        assert!(!err(&done).contains("currentTimeMillis") && done.status.code() != Some(0), "{}", err(&done));
    }
    assert_eq!(out(&ptcl(&["repl"], "(defn time [x] x)\n(time 5)\n")), "#'time\n5\n");
}

#[test]
fn a_form_is_shown_as_a_table_or_as_json() {
    let done =
        ptcl(&["repl"], ":table [{:a 1 :b \"x\\ny\"}]\n:table\n:json {:a [1]}\n{:a [1]}\n:table 5\n:table (inc nil)\n");
    let table = "a  b\n-  ----\n1  x\\ny\n";
    assert_eq!(out(&done), format!("{table}{table}{{\"a\":[1]}}\n{{:a [1]}}\n"), "{}", err(&done));
    assert!(
        err(&done).contains("a table takes a vector of maps or of vectors; this value is a number\n"),
        "{}",
        err(&done)
    );
    assert!(err(&done).contains("type_error"), "{}", err(&done));
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
fn the_prompt_has_its_error_tools_of_its_own_and_a_record() {
    let record = file("typed.clj", "");
    let typed = format!(
        "*e\n(inc nil)\n(:message *e)\n(def x 5)\n:mock weather {{:t (+ 20 x)}}\n(:t (tool/weather {{}}))\n:tools\n:record {}\n\
         (inc x)\n(inc nil)\n:record\n(inc x)\n:fuel (map inc (range 100))\n:mock a/b 1\n:mock q\n:mock f {{:a 1 \"a\" 2}}\n(count [x (tool/weather {{}})])\n",
        record.display()
    );
    for mode in ["in-process", "process"] {
        std::fs::write(&record, "").unwrap();
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

/// A new tool and other limits leave what can be undone.
#[test]
fn a_session_with_new_tools_and_limits_undoes_what_was_before() {
    let typed = "(def x 1)\n(def x 2)\n:mock a 5\n(def x (tool/a {}))\n:limits loop_iterations=2\n(loop [n 0] (if (< n 5) (recur (inc n)) n))\n\
                 x\n:undo\nx\n:undo\n[x (tool/a {})]\n(inc nil)\n:undo\n:names\n:undo\n";
    for isolation in ["in-process", "process"] {
        let done = ptcl(&["repl", "--isolation", isolation], typed);
        let (out, said) = (out(&done), err(&done));
        assert_eq!(out, "#'x\n#'x\n5\n#'x\n5\n2\n[1 5]\n\n", "{said}");
        assert!(said.contains("loop_limit_exceeded") && said.contains("nothing to undo"), "{said}");
        assert!(said.contains("prompt:1:1") || said.contains("(inc nil)"), "{said}");
    }
    let done = ptcl(&["repl"], ":limits timeout_ms=7s, fuel=0\n:limits nope=1\n:limits fuel\n:limits\n");
    let (out, said) = (out(&done), err(&done));
    assert!(
        out.contains("timeout_ms               7000\n") && out.contains("fuel                     0 (no limit)\n"),
        "{out}"
    );
    assert!(said.contains(":limits nope=1: unknown limit nope"), "{said}");
    assert!(said.contains("fuel: 0 (no limit) -> 0 (no limit)\ntimeout_ms: 3600000 -> 7000\n"), "{said}");
    assert!(out.starts_with("fuel                     0 (no limit)\n"), "{out}");
    for (limits, why) in [("fuel=5,fuel=6", "fuel is given twice"), ("heap_bytes=+5", "+5 is"), ("fuel=_1", "_1 is")] {
        let done = ptcl(&["repl", "--limits", limits], "1\n");
        assert!(done.status.code() == Some(2) && err(&done).contains(why), "{}", err(&done));
        let done = ptcl(&["repl"], &format!(":limits {limits}\n"));
        assert!(done.status.code() == Some(2) && err(&done).contains(why), "{}", err(&done));
    }
}

/// Each `:undo` takes back one form, or says why it cannot.
#[test]
fn a_form_is_undone_at_a_time() {
    let definitions =
        |names: std::ops::RangeInclusive<u32>| names.map(|n| format!("(def a{n} {n})\n")).collect::<String>();
    let undone = |count: usize| ":undo\n".repeat(count);
    // More forms than a session keeps: those before it are not touched.
    let (first, later) = (definitions(1..=3), definitions(4..=16));
    let done = ptcl(&["repl"], &format!("{first}:limits fuel=5G\n{later}{}:defs\n{}:defs\n", undone(10), undone(2)));
    let defs =
        |output: &str| output.lines().filter(|line| line.starts_with('a')).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(defs(&out(&done)), ["a1 a2 a3 a4 a5 a6"; 2], "{}", err(&done));
    assert!(err(&done).matches("undid (def a").count() == 10 && err(&done).contains("(session_undo)"));
    // Where nothing can be undone, nothing is.
    let typed = format!("{first}:limits session_undo=0\n{}:undo\n:defs\n", definitions(4..=5));
    let done = ptcl(&["repl"], &typed);
    assert_eq!(defs(&out(&done)), ["a1 a2 a3 a4 a5"], "{}", err(&done));
    // Forms that failed do not count.
    let done = ptcl(&["repl"], &format!("{first}:limits fuel=5G\n(nope)\n(inc nil)\n:undo\n:undo\n:defs\n"));
    assert_eq!(defs(&out(&done)), ["a1"], "{}", err(&done));
    // Of many sessions, the last ones are kept.
    let many: String = (1..=12).map(|n| format!("(def a{n} 1)\n:limits fuel={n}G\n")).collect();
    let done = ptcl(&["repl"], &format!("{many}{}:defs\n", undone(9)));
    assert_eq!(defs(&out(&done)), ["a1 a2 a3 a4"], "{}", err(&done));
    assert!(err(&done).contains("at most 8 sessions before :limits, :mock, :data or :load are kept"), "{}", err(&done));
    assert_eq!(done.status.code(), Some(5));
}

/// A limit that is too low for the session can be raised again.
#[cfg(target_os = "linux")]
#[test]
fn limits_that_the_session_exceeds_can_be_raised() {
    let saved = file("raised", "");
    let saved = saved.display();
    let grows = "(def a (vec (range 1000)))\n";
    let typed = format!(
        "{grows}:save {saved}\n:limits session_bytes=1MB\n:save {saved}\n:limits session_bytes=300\n:load {saved}\n(count a)\n"
    );
    for isolation in ["in-process", "process"] {
        for (arguments, before) in [(&["--limits", "session_bytes=300"][..], ""), (&[], ":limits session_bytes=300\n")]
        {
            let arguments = [&["repl", "--isolation", isolation], arguments].concat();
            let done = ptcl(&arguments, &format!("{before}{typed}"));
            assert_eq!(out(&done), "#'a\n1000\n", "{}", err(&done));
            let too_long = "bytes; the limit session_bytes is 300, for the definitions";
            assert_eq!(err(&done).matches(too_long).count(), 2, "{}", err(&done));
            assert!(err(&done).contains("saved the session to"), "{}", err(&done));
        }
        let typed = "(def a 1)\n:limits timeout_ms=0\na\n:limits timeout_ms=60s\na\n";
        let done = ptcl(&["repl", "--isolation", isolation], typed);
        assert_eq!(out(&done), "#'a\n1\n", "{}", err(&done));
    }
}

/// `:record` does not empty a file that exists.
#[test]
fn a_record_is_added_to_what_a_file_has() {
    let record = file("precious.clj", "(precious)\n");
    let done = ptcl(&["repl"], &format!(":record {}\n(inc 1)\n", record.display()));
    assert_eq!(std::fs::read_to_string(&record).unwrap(), "(precious)\n(inc 1)\n; => 2\n", "{}", err(&done));
}

#[test]
fn forms_of_commands_and_long_forms_go_on_over_lines() {
    let numbers: String = (0..3_000).map(|n| format!("{n} ; ) \n")).collect();
    let typed = format!(":mock o {{:a 1\n :b \"}}\n\"}}\n(tool/o {{}})\n(count [{numbers}\n\\]\n])\n(f ]\n7\n");
    let done = ptcl(&["repl"], &typed);
    assert_eq!(out(&done), "{:a 1 :b \"}\\n\"}\n{\"a\" 1 \"b\" \"}\\n\"}\n3001\n7\n", "{}", err(&done));
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_loaded() {
    let pipe = std::env::temp_dir().join(format!("ptcl-test-{}-pipe", std::process::id()));
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let typed = format!(":load {0}\n:record {0}\n:load /tmp\n(inc 1)\n", pipe.display());
    let done = ptcl(&["repl"], &typed);
    let _ = std::fs::remove_file(&pipe);
    let said = err(&done);
    assert_eq!((out(&done).as_str(), done.status.code()), ("2\n", Some(74)), "{said}");
    assert_eq!(said.matches("it is a pipe or a device").count(), 2, "{said}");
    assert!(said.contains("/tmp: it is a directory"), "{said}");
}

#[test]
fn the_prompt_says_what_its_commands_did() {
    let typed = "; a comment\n:json\n:json\n(nope)\n(fail {:a 1})\n*e\n:undo 3\n(def z 1)\n:undo\n(require 's)\nhelp\nquit\n(println \"gone\")\n";
    let done = ptcl(&["repl"], typed);
    let said = err(&done);
    for part in ["JSON output: on", "JSON output: off", ":undo takes no argument", "undid (def z 1)"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let shown = out(&done);
    let shown = shown.strip_prefix("failed: {:a 1}\n{:reason :failed :value {:a 1}}\n#'z\n").expect("values");
    assert!(shown.contains(":undo") && shown.contains("Tab completes") && !shown.contains("gone"), "{shown}");
    // A name that the session defines is that name.
    assert_eq!(out(&ptcl(&["repl"], "(def quit 7)\nquit\n")), "#'quit\n7\n");
}

#[test]
fn a_command_that_does_nothing_is_wrong_usage() {
    for (typed, says) in [
        (":doc zzz", "unknown function or form zzz: :apropos TEXT finds names"),
        (":quit now", ":quit takes no argument"),
        (":table", "no last value yet"),
        (":page", "no last value yet"),
        (":reload", "nothing to reload"),
        (":mock", ":mock takes NAME FORM"),
        (":undo", "nothing to undo"),
        (":doc str/upper-cas", "unknown function or form str/upper-cas: did you mean str/upper-case?"),
        (":limits fule", "unknown limit fule: did you mean fuel?"),
        (":limits zzz", "unknown limit zzz: :limits lists them"),
    ] {
        let done = ptcl(&["repl"], &format!("{typed}\n"));
        assert!(err(&done).contains(says), "{typed}: {}", err(&done));
        assert_eq!(done.status.code(), Some(2), "{typed}");
    }
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
