//! Programs that run while somebody watches: signals, `ptcl sandbox` and `ptcl slate`.

use super::{err, file, out, ptcl};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

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
fn endless(isolation: &str, folds: bool) -> (std::process::Child, String) {
    use std::io::BufRead;
    let program = "(println :begun) (loop [] (recur))";
    let limits = "loop_iterations=0,fuel=0,timeout_ms=60000";
    let how: &[&str] = if folds { &["--lines", "--fold", "0"] } else { &["-e"] };
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(["run", "--isolation", isolation, "--limits", limits])
        .args(how)
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ptcl starts");
    child.stdin.take().expect("a pipe").write_all(b"1\n").expect("it reads");
    let mut line = String::new();
    let pipe = child.stdout.take().expect("a pipe");
    std::io::BufReader::new(pipe).read_line(&mut line).expect("a line");
    (child, line)
}

#[cfg(unix)]
#[test]
fn run_prints_as_the_program_does_and_ctrl_c_ends_it_in_order() {
    let isolations: &[&str] = if cfg!(target_os = "linux") { &["in-process", "process"] } else { &["in-process"] };
    for (isolation, folds) in isolations.iter().flat_map(|isolation| [(isolation, false), (isolation, true)]) {
        // The line is there while the program still runs.
        let (child, line) = endless(isolation, folds);
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
    assert!(err(&done).contains("unbound_var") && err(&done).contains("slate-2.clj:2:1]"), "{}", err(&done));
    // The drawn error shows the position; a second line has no use.
    assert!(!err(&done).contains("line 2, column 1"), "{}", err(&done));
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
