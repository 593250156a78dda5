//! `ptcl run` as a filter: what its program prints goes to standard output whole, or it is an error; and nothing in it steers the terminal
//! of whoever reads it.

use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptcl"));
    command.arg("run").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Three million bytes in 3,000 lines, and lines of 40,000 characters.
const MUCH: &str = "(doseq [n (range 3000)] (println (str n \" \" (apply str (repeat 100 \"0123456789\"))))) \
                    (doseq [_ (range 3)] (println (apply str (repeat 4000 \"0123456789\"))))";
const WORKERS: &str = "(pmap (fn [n] (println (str n \" \" (apply str (repeat 50000 \"0123456789\"))))) (range 8))";

fn lines(program: &str) -> Vec<String> {
    let ten = "0123456789";
    match program == MUCH {
        true => {
            (0..3_000).map(|n| format!("{n} {}", ten.repeat(100))).chain((0..3).map(|_| ten.repeat(4_000))).collect()
        }
        false => (0..8).map(|n| format!("{n} {}", ten.repeat(50_000))).collect(),
    }
}

/// A file of this test's own.
fn file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("ptcl-filters-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const ISOLATIONS: &[&str] = if cfg!(target_os = "linux") { &["in-process", "process"] } else { &["in-process"] };

#[test]
fn nothing_that_is_printed_is_lost() {
    for isolation in ISOLATIONS {
        for program in [MUCH, WORKERS] {
            let output =
                run(&["--isolation", isolation, "--limits", "timeout_ms=100s,parallel_timeout_ms=100s", "-e", program]);
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8(output.stdout).unwrap();
            let mut got: Vec<&str> = text.lines().collect();
            // The last one is the value.
            got.pop();
            let mut wanted = lines(program);
            if program == WORKERS {
                // Workers print side by side.
                got.sort_unstable();
                wanted.sort_unstable();
            }
            assert!(got == wanted, "{isolation}: {} of {} lines", got.len(), wanted.len());
        }
        // Who sets a limit is told what it took away.
        for (limit, why) in [("prints_bytes=100000", "prints_bytes"), ("print_chars=500", "print_chars")] {
            let output = run(&["--isolation", isolation, "--limits", limit, "-e", MUCH]);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(5), "{limit}: {said}");
            assert!(said.contains(why), "{limit}: {said}");
        }
    }
}

#[test]
fn nothing_is_lost_line_by_line() {
    let program = "(dotimes [_ data/in] (println (apply str (repeat 10000 \"0123456789\"))))";
    let with = |limits: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptcl"));
        command.args(["run", "--lines", "--skip-nil", "-e", program]).args(limits);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"1\n15\n2\n").unwrap();
        child.wait_with_output().unwrap()
    };
    let output = with(&[]);
    let lengths: Vec<usize> = String::from_utf8(output.stdout).unwrap().lines().map(str::len).collect();
    assert_eq!((output.status.code(), lengths), (Some(0), vec![100_000; 18]), "{:?}", output.stderr);
    let output = with(&["--limits", "prints_bytes=300000"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(5) && said.contains("line 2: 13 printed lines are left out"), "{said}");
}

/// What a person reads: errors always, and standard output when it is a terminal.
#[test]
fn errors_hide_nothing_and_steer_nothing() {
    let steers = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}1m\u{202e}\u{2066}\u{e0041}";
    let programs = [
        format!("(fail \"{steers}\")"),
        format!("(throw (ex-info \"{steers}\" {{}}))"),
        format!("(+ 1 \"{steers}\")"),
        format!("(let [a \"{steers}\"] (+ 1 a)) ; {steers}"),
        format!("(\"{steers}\""),
        format!("(tool/x{steers} 1)"),
        steers.to_string(),
    ];
    for program in &programs {
        let output = run(&["-e", program]);
        assert_ne!(output.status.code(), Some(0), "{program:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let raw: Vec<char> =
            said.chars().filter(|c| (c.is_control() && *c != '\n') || steers.contains(*c) && !c.is_ascii()).collect();
        assert!(raw.is_empty(), "{program:?}: {said:?}");
    }
    // Keywords, names, keys of data and names of files are no strings, which are escaped anyway.
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let key = format!("k{steers}");
    let data = file("steers.json", &format!("{{\"in\": 1, {}: 1}}", json(&key)));
    let twice = file("steers.yaml", &format!("{}: 1\n{}: 2\n", json(&key), json(&key)));
    let missing = format!("/nosuch/{steers}");
    let same_key = format!("{{(keyword {0}) 1 {0} 2}}", json(&key));
    let steered = "k\u{9b}31m\u{202e}z";
    let cases: [&[&str]; 12] = [
        &[&format!("--no{steered}")],
        &["--jobs", steers, "--lines", "-e", "1"],
        &["--out", "json", "-e", &same_key],
        &["--csv", "-e", &format!("[{same_key}]")],
        &["-e", &format!("(= (first [:a]) \"{steered}\")")],
        &["-e", &format!("(let [{steered} \"a\"] (inc {steered}))")],
        &["-e", "1", "--data", &data, "--arg", &format!("{key}=1")],
        &["-e", "data/k", "--data", &twice],
        &["-e", "1", "--data", &missing],
        &["--lines", "-e", "1", &missing],
        &["--lines", "--fold", "0", "acc", "--setup", &missing],
        &["-e", "1", "--signature", steers],
    ];
    for arguments in cases {
        let said = String::from_utf8(run(arguments).stderr).unwrap();
        let raw = said.contains(|c: char| (c.is_control() && c != '\n') || (steers.contains(c) && !c.is_ascii()));
        assert!(!said.is_empty() && !raw, "{arguments:?}: {said:?}");
    }
    // What another program reads is as it is.
    let output = run(&["-r", "-e", &format!("(println \"{steers}\") \"{steers}\"")]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{steers}\n{steers}\n"));
}

/// What a terminal gets from a run.
#[cfg(target_os = "linux")]
fn at_terminal(arguments: &[&str], input: &str) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::{Read, Write};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let side = || Stdio::from(std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptcl"));
    command.args(arguments).env("NO_COLOR", "1").env("TERM", "xterm");
    let mut child = command.stdin(Stdio::piped()).stdout(side()).stderr(side()).spawn().unwrap();
    // Without this the other side stays open.
    drop(command);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let mut shown = Vec::new();
    // It ends with an error, when nobody has the other side any more.
    let _ = std::fs::File::from(master).read_to_end(&mut shown);
    child.wait().unwrap();
    String::from_utf8(shown).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_is_steered_by_nothing_that_a_program_says() {
    let steers = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}1m\u{202e}\u{2066}\u{e0041}\rX";
    let value = format!("\"a{steers}b\"");
    let rows = format!("[{{:k {value}}}]");
    let prints = format!("(println {value})");
    let fails = format!("(fail {value})");
    let text = serde_json::to_string(&format!("a{steers}b")).unwrap();
    let json = format!("{{\"a\": {text}}}\n");
    let data = file("terminal.json", &format!("{{{text}: {{{text}: 1}}}}"));
    let same_key = format!("{{(keyword {text}) 1 {text} 2}}");
    let cases: &[(&[&str], &str)] = &[
        (&["run", "-e", &value], ""),
        (&["run", "-r", "-e", &value], ""),
        (&["run", "--out", "json", "-e", &value], ""),
        (&["run", "--csv", "-e", &rows], ""),
        (&["run", "--table", "-e", &rows], ""),
        (&["run", "-e", &prints], ""),
        (&["run", "-e", &fails], ""),
        (&["run", "-e", &format!("(+ 1 {value})")], ""),
        (&["run", "--lines", "-e", "(do (println (get data/in \"a\")) (get data/in \"a\"))"], &json),
        (&["run", "--lines", "--csv", "-e", "[(get data/in \"a\")]"], &json),
        (&["run", "--lines", "-r", "-e", "(get data/in \"a\")"], &json),
        (&["run", "--lines", "-e", "(fail (get data/in \"a\"))"], &json),
        (&["repl"], &format!("{value}\n{prints}\n{fails}\n(inc {value})\n")),
        (&["repl", "--data", &data], ":data\n"),
        (&["repl", "--memory", &data], ":defs\n"),
        (&["repl"], ":mock ab \"k\u{9b}31m\u{202e}z\"\n:tools\n"),
        (&["repl"], &format!(":json\n{same_key}\n:page\n")),
        (&["repl"], "(= (first [:a]) \"b\u{9b}31m\u{202e}z\")\n"),
        (&["repl"], &format!(":doc ab{steers}\n:load /nosuch/{}\n", steers.replace('\r', ""))),
        (&["run", "--out", "json", "-e", &same_key], ""),
        (&["run", "--lines", "--out", "json", "-e", &same_key], "1\n"),
        (&["run", "--lines", "-e", "(= (first [:ab]) \"b\u{9b}31m\u{202e}z\")"], "1\n"),
    ];
    for (arguments, input) in cases {
        let shown = at_terminal(arguments, input);
        assert!(shown.contains('a') && shown.contains('b'), "{arguments:?}: {shown:?}");
        // The terminal itself puts a return in front of each end of a line.
        let shown = shown.replace("\r\n", "\n");
        let raw: Vec<char> = shown
            .chars()
            .filter(|c| (c.is_control() && *c != '\n') || (!c.is_ascii() && steers.contains(*c)))
            .collect();
        assert!(raw.is_empty(), "{arguments:?}: {raw:?} in {shown:?}");
    }
}
