//! What every command says of itself, and the commands of README.md.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn ptcl(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ptcl")).args(arguments).output().unwrap()
}

/// The commands that a page of help lists, except `help`, which takes the names of others.
fn listed(page: &str) -> Vec<String> {
    let listed = page.split_once("Commands:\n").map_or("", |(_, listed)| listed);
    let rows = listed.lines().take_while(|line| !line.is_empty());
    let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
    let names = names.filter_map(|row| row.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The commands, as the first page lists them.
fn commands() -> Vec<String> {
    listed(&String::from_utf8(ptcl(&["--help"]).stdout).unwrap())
}

/// Adds the help of a command, and of the commands that it lists.
fn add_help(command: &[String], page: &mut String) {
    let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    let done = ptcl(&arguments);
    assert_eq!((done.status.code(), done.stderr.len()), (Some(0), 0), "{command:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    writeln!(page, "$ ptcl {}\n{text}", arguments.join(" ")).unwrap();
    for name in listed(&text) {
        add_help(&[command, &[name]].concat(), page);
    }
}

/// The help of every command is as written: `PTCL_HELP=write cargo test --workspace --test help` writes the page again.
#[test]
fn every_help_is_as_written() {
    let kept = root().join("cli/tests/help.txt");
    let mut page = String::new();
    add_help(&[], &mut page);
    if std::env::var_os("PTCL_HELP").is_some() {
        fs::write(&kept, &page).unwrap();
    }
    let before = fs::read_to_string(&kept).unwrap();
    let differs = page.lines().zip(before.lines()).find(|(now, then)| now != then);
    assert_eq!((differs, page.len()), (None, before.len()), "PTCL_HELP=write writes cli/tests/help.txt");
}

#[test]
fn every_command_refuses_what_it_does_not_know() {
    for name in commands() {
        let done = ptcl(&[&name, "--no-such-option"]);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), done.stdout.len()), (Some(2), 0), "{name}: {said}");
        assert!(said.contains("--no-such-option"), "{name}: {said}");
    }
    let done = ptcl(&["no-such-command"]);
    assert_eq!((done.status.code(), done.stdout.len()), (Some(2), 0));
    assert_eq!(ptcl(&[]).status.code(), Some(2));
    assert_eq!(
        String::from_utf8(ptcl(&["--version"]).stdout).unwrap(),
        format!("ptcl {}\n", env!("CARGO_PKG_VERSION"))
    );
}

/// A line of a page, and what it writes.
const SAID: &[(&str, &str)] = &[
    ("examples/orders.clj", ":counted 310"),
    ("(frequencies", "\"shipped\""),
    ("--table", "status"),
    ("--then", "4.0\n"),
    ("--fold", "19\n"),
    ("--from csv", "19\n"),
    ("--from yaml", "{\"b\":1,\"a\":[\"x\",\"y\"]}\n"),
    ("-R --lines", "ONE\nTWO\n"),
    ("--lines", "a\nb\n"),
    ("--slurp", "2\n"),
    ("--arg who=world", "\"hello world\"\n"),
    ("--flame", "249750.0\n"),
];

/// Each command of these pages that runs a program, as it stands there.
#[test]
fn commands_of_the_pages_run() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    fs::create_dir_all(folder.join("examples")).unwrap();
    for name in ["orders.json", "orders.clj"] {
        fs::copy(root().join("examples").join(name), folder.join("examples").join(name)).unwrap();
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_ptcl")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut seen = Vec::new();
    for page in ["README.md", "docs/command-line.md", "docs/hosts.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let blocks = text.split("```sh\n").skip(1).filter_map(|block| block.split_once("```"));
        let lines = blocks.flat_map(|(block, _)| block.lines());
        for line in lines.filter(|line| line.contains("ptcl run") && !line.contains("--record")) {
            let done = Command::new("sh").args(["-c", line]).current_dir(&folder).env("PATH", &path).output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            assert_eq!(done.status.code(), Some(0), "{line}: {err}");
            let said = SAID.iter().find(|(part, _)| line.contains(part));
            let (part, said) = said.unwrap_or_else(|| panic!("no word on what this writes: {line}"));
            assert!(out.contains(said), "{line}: {out}");
            seen.push(*part);
        }
    }
    assert!(SAID.iter().all(|(part, _)| seen.contains(part)), "{seen:?}");
}

/// A command whose standard output is closed or full ends with an error.
#[test]
fn texts_are_not_lost_without_standard_output() {
    for command in [
        "run -e 1",
        "doc map",
        "doc --markdown",
        "explain",
        "explain type_error",
        "prompt",
        "completions bash",
        "man",
        "sandbox --capabilities",
        "sandbox --capabilities --json",
        "fmt -",
        "fmt --check -",
        "check -",
        "test ../examples/orders.clj",
        "repl",
        "--version",
        "run --help",
    ] {
        for (redirection, why) in [(">&-", "standard output is closed"), (">/dev/full", "No space left")] {
            let script = format!("echo '(+  1)' | \"$0\" {command} {redirection}");
            let done = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_ptcl")]).output().expect("a shell");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(74), "{command} {redirection}: {said}");
            let is_clap = command.contains("--version") || command.contains("--help");
            assert!(said.contains(why) || is_clap && why.starts_with("No"), "{command} {redirection}: {said}");
        }
    }
}
