//! `:save`, `:load` and `:record` of the REPL: what they write, and the exit code when they fail.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs `ptcl` with a text on standard input.
fn ptcl(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(arguments)
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

#[test]
fn the_prompt_saves_whatever_fits() {
    let file = std::env::temp_dir().join(format!("ptcl-large-session-{}", std::process::id()));
    let path = file.to_string_lossy();
    for isolation in ["in-process", "process"] {
        let done = ptcl(&["repl", "--isolation", isolation], &format!("(def v (vec (range 60000)))\n:save {path}\n"));
        assert!(err(&done).contains("saved the session"), "{isolation}: {}", err(&done));
        assert_eq!(done.status.code(), Some(0));
        let done = ptcl(&["repl", "--isolation", isolation], &format!(":load {path}\n(count v)\n"));
        assert_eq!(out(&done), "60000\n", "{isolation}: {}", err(&done));
        // An error when loading has its hint.
        let arguments = ["repl", "--isolation", isolation, "--limits", "session_bytes=1000"];
        let done = ptcl(&arguments, &format!(":load {path}\n"));
        assert!(err(&done).contains("raise it with :limits session_bytes="), "{isolation}: {}", err(&done));
        assert_eq!(done.status.code(), Some(5));
    }
    let _ = std::fs::remove_file(&file);
}

#[test]
fn a_session_that_cannot_be_written_leaves_the_old_file() {
    let directory = std::env::temp_dir().join(format!("ptcl-save-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("s");
    let done = ptcl(&["repl"], &format!("(def a 1)\n:save {}\n", file.display()));
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let old = std::fs::read(&file).expect("a session");
    let script = format!(
        "ulimit -f 8; printf '(def v (vec (range 20000)))\\n:save %s\\n' '{}' | '{}' repl",
        file.display(),
        env!("CARGO_BIN_EXE_ptcl")
    );
    let done = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    assert_eq!(done.status.code(), Some(74), "{}", err(&done));
    assert!(err(&done).contains("File too large"), "{}", err(&done));
    assert_eq!(std::fs::read(&file).expect("the session"), old);
    assert_eq!(std::fs::read_dir(&directory).expect("the directory").count(), 1, "no other file is left");
    std::fs::remove_dir_all(&directory).expect("it is there");
}

#[test]
fn a_failed_command_of_a_piped_prompt_makes_the_exit_code() {
    for (typed, code) in [
        (":save /nosuch/x\n1\n", 74),
        (":load /nosuch/x\n", 74),
        (":record /nosuch/x\n", 74),
        (":undo\n", 2),
        (":save\n", 2),
        (":load /dev/null\n", 74),
        (":save /dev/null\n", 0),
    ] {
        let done = ptcl(&["repl"], typed);
        assert_eq!(done.status.code(), Some(code), "{typed}: {}", err(&done));
    }
}
