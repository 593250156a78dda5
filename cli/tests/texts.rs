//! The commands that look after programs and explain: streams, files and exit codes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs `ptcl` with a text on standard input: its exit code, standard output and standard error.
fn ptcl(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ptcl"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ptcl starts");
    // A command that does not read closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let done = child.wait_with_output().expect("ptcl ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (done.status.code().expect("a code"), text(done.stdout), text(done.stderr))
}

/// A folder of this test's own, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ptcl-texts-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn fmt_lays_out_standard_input_and_files() {
    let done = ptcl(&["fmt"], "( defn f [x]\n(* x 2) )");
    assert_eq!(done, (0, "(defn f [x]\n  (* x 2))\n".into(), String::new()));
    assert_eq!(ptcl(&["fmt", "--check"], "(f x)\n"), (0, String::new(), String::new()));
    assert_eq!(ptcl(&["fmt", "--check", "-"], "(f  x)\n"), (1, "standard input\n".into(), String::new()));

    let folder = Folder::new("fmt");
    let good = folder.file("good.clj", "(f x)\n");
    let loose = folder.file("loose.clj", "( f   x ) ; why\n\n\n\n(g)");
    let broken = folder.file("broken.clj", "(f x)\n(g [1)");
    let (code, out, said) = ptcl(&["fmt", "--check", &good, &loose], "");
    assert_eq!((code, out, said), (1, format!("{loose}\n"), String::new()));
    assert_eq!(fs::read_to_string(&loose).expect("a file"), "( f   x ) ; why\n\n\n\n(g)");
    // What cannot be read stays, and the others are laid out.
    let (code, out, said) = ptcl(&["fmt", &broken, &loose, &good], "");
    assert_eq!((code, out.as_str()), (3, ""), "{said}");
    assert!(said.contains("parse_error") && said.contains("broken.clj:2:"), "{said}");
    assert_eq!(fs::read_to_string(&loose).expect("a file"), "(f x) ; why\n\n(g)\n");
    assert_eq!(fs::read_to_string(&broken).expect("a file"), "(f x)\n(g [1)");
    assert_eq!(ptcl(&["fmt", "no/such/file.clj"], "").0, 74);
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 3, "nothing is left beside the files");
}

#[cfg(unix)]
#[test]
fn fmt_keeps_modes_and_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("modes");
    let file = folder.file("a.clj", "( f )");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).expect("a mode");
    let link = folder.0.join("link.clj");
    symlink(&file, &link).expect("a link");
    assert_eq!(ptcl(&["fmt", &link.display().to_string()], ""), (0, String::new(), String::new()));
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert_eq!(fs::read_to_string(&file).expect("a file"), "(f)\n");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o750);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).expect("a mode");
    assert_eq!(ptcl(&["fmt", &file], "").0, 0, "there is nothing to write");
    let closed = folder.file("closed.clj", "( f )");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o400)).expect("a mode");
    let (code, _, said) = ptcl(&["fmt", &closed], "");
    assert_eq!((code, said.contains("closed.clj: the file is read-only")), (74, true), "{said}");
    assert_eq!(fs::read_to_string(&closed).expect("a file"), "( f )");
}

#[test]
fn test_compares_the_examples_of_programs() {
    let folder = Folder::new("test");
    let good = "(defn twice [x] (* 2 x)) (twice 21) ; => 42\n(inc *1) ;=> 43\n\n\
        {:b 1, :a [2]}\n;; => {:a [2], :b 1}\n'(1 a) ; => (1 a) ; as data\n(/ 1 0) ; => error: arithmetic_error\n\
        (def n 1) ; => #'n\n(fail :no) ; => failed: :no\n(tool/f) ; => error: unknown_tool\ninc ; no => here\n[1 ; => 2\n 1]\n\
        (str \"a;\" \"=>\") ; => \"a;=>\"\nnil ; => nil\n##NaN ; => ##NaN\n";
    let good = folder.file("good.clj", good);
    assert_eq!(ptcl(&["test", &good], ""), (0, "11 passed, 0 failed\n".into(), String::new()));

    let bad = "; => 1\n(+ 1\n   1)\n; => 3\n(+ 1 nil)\n\n(+ 1 1)\n\n; => 2\n(/ 1 0) ; => error: type_error\n(/ 1 0) ; => 1\n'(1) ; => [1]\n";
    let bad = folder.file("bad.clj", bad);
    let (code, out, said) = ptcl(&["test", &bad, &good], "");
    assert_eq!((code, said.as_str()), (1, ""));
    let expected = [
        "bad.clj:2: (+ 1\n  expected  3\n  got       2\n",
        "bad.clj:5: (+ 1 nil)\n  expected  no error\n  got       error: type_error: ",
        "bad.clj:10: (/ 1 0)\n  expected  error: type_error\n  got       error: arithmetic_error: ",
        "bad.clj:11: (/ 1 0)\n  expected  1\n  got       error: arithmetic_error: ",
        "bad.clj:1: no expression before this comment",
        "bad.clj:9: no expression before this comment",
        "\n12 passed, 6 failed\n",
    ];
    for part in expected {
        assert!(out.contains(part), "{part} in {out}");
    }

    let endless = folder.file("endless.clj", "(loop [] (recur)) ; => error: timeout\n(+ 1 1) ; => 2\n");
    let done = ptcl(&["test", "--limits", "loop_iterations=0,timeout_ms=50", &endless], "");
    assert_eq!(done, (0, "2 passed, 0 failed\n".into(), String::new()));
    let (code, out, said) = ptcl(&["test", &folder.file("open.clj", "1 ; => 1\n(f [1)\n")], "");
    assert_eq!((code, out.as_str()), (1, "0 passed, 1 failed\n"));
    assert!(said.contains("open.clj:2:"), "{said}");
    assert_eq!(ptcl(&["test", "no/such/file.clj"], "").0, 74);
    assert_eq!(ptcl(&["test"], "").0, 2);
}

#[test]
fn test_reads_the_blocks_of_pages() {
    let folder = Folder::new("pages");
    let page = "# Page\n\n```clojure\n(def a 1)\na ; => 1\n```\n\n```text\n(nope) ; => 1\n```\n\n~~~lisp\n(+ 1 1) ; => 3\na ; => error: unbound_var\n~~~\n\n```clojure\n(f [1)\n```\n";
    let page = folder.file("page.md", page);
    let (code, out, said) = ptcl(&["test", &page], "");
    assert_eq!(code, 1);
    assert!(out.contains("page.md:13: (+ 1 1)\n  expected  3\n  got       2\n"), "{out}");
    assert!(out.ends_with("2 passed, 2 failed\n"), "{out}");
    assert!(said.contains("page.md:18:"), "{said}");
}

#[test]
fn explain_says_what_a_reason_and_a_kind_mean() {
    let (code, out, said) = ptcl(&["explain", "arity_mismatch"], "");
    assert_eq!((code, said.as_str()), (0, ""));
    for part in ["A function of the program is called", "\nWhy\n", "\nWhat to do\n", "; => error: arity_mismatch\n"] {
        assert!(out.contains(part), "{part} in {out}");
    }
    assert!(ptcl(&["explain", "timeout"], "").1.ends_with("A program cannot catch this error.\n"));
    let (_, list, _) = ptcl(&["explain"], "");
    for reason in lisp_runtime::Reason::ALL {
        assert!(list.lines().any(|line| line.starts_with(&format!("{reason} "))), "{reason}");
        let (code, out, _) = ptcl(&["explain", reason.name()], "");
        assert!(code == 0 && out.starts_with(&format!("{reason}\n\n")), "{reason}");
    }
    for kind in lisp_runtime::outcome::WarningKind::ALL.iter().map(|kind| kind.name()) {
        assert!(list.lines().any(|line| line.starts_with(&format!("{kind} "))), "{kind}");
        let (code, out, _) = ptcl(&["explain", &kind.replace('_', "-")], "");
        assert!(code == 0 && out.starts_with(&format!("{kind}\n\n")), "{kind}");
        assert!(
            out.contains(&format!("; => warning: {kind}\n")) && out.contains("does not change the outcome"),
            "{out}"
        );
    }
    let (code, _, said) = ptcl(&["explain", "type_eror"], "");
    assert_eq!((code, said.contains("did you mean type_error")), (2, true), "{said}");
    let (code, _, said) = ptcl(&["explain", "zzz"], "");
    assert_eq!((code, said.contains("ptcl explain lists all of them")), (2, true), "{said}");
}

/// The commands, as the help lists them.
fn commands() -> Vec<String> {
    let (_, help, _) = ptcl(&["--help"], "");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn completions_and_manual_pages_know_all_commands() {
    let commands = commands();
    assert!(commands.len() >= 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, script, said) = ptcl(&["completions", shell], "");
        assert_eq!((code, said.as_str()), (0, ""), "{shell}");
        for name in &commands {
            assert!(script.contains(name.as_str()), "{name} in the script of {shell}");
        }
        assert!(script.contains("strict-data"), "{shell}");
    }
    assert_eq!(ptcl(&["completions", "sash"], "").0, 2);

    let folder = Folder::new("man");
    let pages = folder.0.join("man1");
    assert_eq!(ptcl(&["man", &pages.display().to_string()], ""), (0, String::new(), String::new()));
    let read = |name: &str| fs::read_to_string(pages.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(ptcl(&["man"], "").1, read("ptcl.1"));
    assert!(read("ptcl.1").contains(".TH"));
    for name in &commands {
        let page = read(&format!("ptcl-{name}.1"));
        assert!(page.contains(".SH OPTIONS") && page.contains(&format!("ptcl\\-{name}")), "{page}");
    }
    assert_eq!(ptcl(&["man", &folder.file("taken", "")], "").0, 74);
}

/// The pages of the book that are not made of other pages: their examples run, and every page of the summary is there.
#[test]
fn the_book_runs() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/src");
    let summary = fs::read_to_string(format!("{root}/SUMMARY.md")).expect("a summary");
    let pages: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(pages.len() > 10, "{summary}");
    for page in pages {
        let text = fs::read_to_string(format!("{root}/{page}")).unwrap_or_else(|error| panic!("{page}: {error}"));
        match text.strip_prefix("{{#include ") {
            Some(path) => {
                let path = path.trim().trim_end_matches("}}");
                assert!(fs::metadata(format!("{root}/{path}")).is_ok(), "{page} includes {path}");
            }
            None if text.contains("```clojure") => {
                let (code, out, said) = ptcl(&["test", &format!("{root}/{page}")], "");
                assert_eq!((code, said.as_str()), (0, ""), "{out}");
            }
            None => {}
        }
    }
}

#[test]
fn the_prompt_takes_tools_from_any_list() {
    let folder = Folder::new("tools");
    let prompt = |text: &str| {
        let (_, out, err) = ptcl(&["prompt", "--tools", &folder.file("tools.json", text)], "");
        (out, err)
    };
    let schema = r#"{"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"], "additionalProperties": false}"#;
    for text in [
        r#"{"price": "(sku :string) -> :any"}"#.to_owned(),
        format!(r#"[{{"name": "price", "description": "What it costs.", "parameters": {schema}}}]"#),
        format!(r#"{{"tools": [{{"name": "price", "inputSchema": {schema}}}]}}"#),
        format!(r#"[{{"type": "function", "function": {{"name": "price", "parameters": {schema}}}}}]"#),
    ] {
        let (prompt, said) = prompt(&text);
        assert!(prompt.contains("tool/price (") && prompt.contains("sku :string"), "{text}: {said}");
    }
    let (_, said) = prompt("[1]");
    assert!(said.contains("a list of tools with name"), "{said}");
    assert!(prompt(r#"[{"parameters": {}}]"#).1.contains("has no name"));
    let retail = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/retail/tools.json");
    let (_, out, err) = ptcl(&["prompt", "--tools", retail], "");
    assert!(out.contains("tool/cancel_pending_order"), "{err}");
}

#[test]
fn a_replay_shows_what_the_run_did_and_every_part_that_differs() {
    let folder = Folder::new("replay");
    let record = folder.0.join("run.ptc").display().to_string();
    let recorded = |program: &str| ptcl(&["run", "--record", &record, "-e", program], "");
    for program in ["(println \"hello\") (/ 1 0)", "(println \"hello\") (fail {:a 1})"] {
        let (code, out, said) = recorded(program);
        assert!(code != 0 && out == "hello\n", "{out}");
        let (code, again, said_again) = ptcl(&["replay", &record], "");
        assert_eq!((code, again.as_str()), (0, "hello\n"), "{said_again}");
        assert_eq!(said_again.replace("record:", "-e:"), said);
    }
    recorded("(println (range 3)) (reduce + (range 10))");
    let text = fs::read_to_string(&record).expect("a record");
    let said = |text: String| {
        fs::write(&record, text).expect("a file");
        let (code, _, said) = ptcl(&["replay", &record], "");
        assert_eq!(code, 4, "{said}");
        said.trim_end().to_owned()
    };
    let prefix = "replay_diverged: the answer differs from the recorded one in";
    let differs = said(text.replace("(range 10)", "(range 11)"));
    assert_eq!(differs, format!("{prefix} value (45, now 55) and fuel"));
    let differs = said(text.replace("(range 3)", "(range 2)"));
    assert_eq!(differs, format!("{prefix} prints ([\"[0 1 2]\"], now [\"[0 1]\"]) and fuel"));
    let long = said(text.replace("(reduce + (range 10))", "(apply str (range 400))"));
    assert!(long.starts_with(&format!("{prefix} value (45, now ")) && long.len() < 300, "{long}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_stack_is_enough() {
    for arguments in ["--version", "run -e '(reduce + (range 10))'"] {
        let script = format!("ulimit -s 64; exec {} {arguments}", env!("CARGO_BIN_EXE_ptcl"));
        let done = Command::new("sh").args(["-c", &script]).output().expect("sh starts");
        assert_eq!(done.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn the_pages_are_in_the_command() {
    let (code, list, _) = ptcl(&["docs"], "");
    assert_eq!(code, 0);
    for line in list.lines() {
        let name = line.split(' ').next().unwrap();
        let (code, page, said) = ptcl(&["docs", name], "");
        assert!(code == 0 && page.starts_with("# ") && page.len() > 1_000, "{name}: {said}");
    }
    assert!(list.contains("command-line  the commands and their options\n"), "{list}");
    assert_eq!(
        ptcl(&["docs", "limits.md"], "").1,
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/limits.md")).unwrap()
    );
    let (code, _, said) = ptcl(&["docs", "limit"], "");
    assert_eq!(
        (code, said.as_str()),
        (2, "ptcl: unknown page limit: did you mean limits? ptcl docs lists the pages\n")
    );
}
