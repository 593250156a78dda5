//! The prompt at a terminal: typing, completing, editing over lines, cancelling, history, a narrow window. What commands
//! write to a terminal.
#![cfg(target_os = "linux")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A terminal with a prompt in it.
struct Terminal {
    master: File,
    child: Child,
    /// What has been shown since the last look, without colours and the editor's own moves.
    shown: String,
}

impl Terminal {
    fn open(home: &Path, columns: u16, arguments: &[&str]) -> Terminal {
        let (master, name) = pair(columns);
        let side = || side(&name);
        // The terminal has to be the session's own for Ctrl-C to be a signal.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_ptcl"), "repl"])
            .args(arguments)
            .env("HOME", home)
            .env("TERM", "xterm")
            .env("PAGER", "sed s/^/paged:/")
            .env_remove("XDG_STATE_HOME")
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS")
            .env_remove("LINES")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        let mut terminal = Terminal { master, child, shown: String::new() };
        terminal.until("ptc> ");
        terminal
    }

    fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text is shown. Returns all up to it.
    fn until(&mut self, text: &str) -> String {
        let end = Instant::now() + Duration::from_secs(20);
        let mut raw = Vec::new();
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            assert!(Instant::now() < end, "{text:?} is not shown, but: {:?}", self.shown);
            let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
            if poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 })).unwrap() == 0 {
                continue;
            }
            let mut bytes = [0; 4096];
            match self.master.read(&mut bytes) {
                Ok(read) if read > 0 => raw.extend_from_slice(&bytes[..read]),
                _ => panic!("it ended without {text:?}: {:?}", self.shown),
            }
            // A character may be cut by the end of what was read.
            if let Ok(text) = std::str::from_utf8(&raw) {
                self.shown.push_str(&without_escapes(text));
                raw.clear();
            }
        }
    }

    /// Types a form and gives what is shown for it.
    fn form(&mut self, form: &str) -> String {
        self.keys(&format!("{form}\r"));
        self.until("\r\n");
        let shown = self.until("ptc> ");
        shown.strip_suffix("ptc> ").unwrap().trim().to_owned()
    }

    fn leave(mut self) -> Option<i32> {
        self.keys("\u{4}");
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A terminal: its master side, and the name of the other one.
fn pair(columns: u16) -> (File, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    (File::from(master), name)
}

fn side(name: &str) -> Stdio {
    Stdio::from(OpenOptions::new().read(true).write(true).open(name).unwrap())
}

/// Runs a command with both outputs on a terminal. Returns what is written there.
fn on_terminal(arguments: &[&str]) -> String {
    on_terminal_with(&[("NO_COLOR", "1")], arguments)
}

/// Starts the command on a terminal, with these variables of the environment.
fn on_terminal_with(variables: &[(&str, &str)], arguments: &[&str]) -> String {
    on_terminal_paged(Some("sed s/^/paged:/"), variables, arguments)
}

/// Starts the command on a terminal, with a pager or the default one.
fn on_terminal_paged(pager: Option<&str>, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let (mut master, name) = pair(200);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptcl"));
    match pager {
        Some(pager) => command.env("PAGER", pager),
        None => command.env_remove("PAGER").env_remove("LESS"),
    };
    command
        .args(arguments)
        .env_remove("NO_COLOR")
        .env_remove("COLUMNS")
        .env_remove("LINES")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(side(&name))
        .stderr(side(&name));
    let mut child = command.spawn().unwrap();
    // It has the other side of the terminal, which stays open as long.
    drop(command);
    let (mut written, mut bytes) = (Vec::new(), [0; 4096]);
    // Reading fails once the command has closed its side.
    while let Ok(read @ 1..) = master.read(&mut bytes) {
        written.extend_from_slice(&bytes[..read]);
    }
    child.wait().unwrap();
    String::from_utf8(written).unwrap().replace("\r\n", "\n")
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn without_escapes(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
        } else if chars.next() == Some('[') {
            // Parameters, up to the letter that says what it is.
            let _ = chars.find(|c| c.is_ascii_alphabetic());
        }
    }
    out
}

fn home(name: &str) -> PathBuf {
    let home = std::env::temp_dir().join(format!("ptcl-terminal-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home).unwrap();
    home
}

#[test]
fn a_session_is_typed_completed_cancelled_and_remembered() {
    let home = home("session");
    let mut terminal =
        Terminal::open(&home, 100, &["--limits", "timeout_ms=60000,loop_iterations=0", "--arg", "orders=x"]);
    assert_eq!(terminal.form("(+ 1 2)"), "3");
    // A form over lines.
    terminal.keys("(str \"a\r");
    terminal.keys("b\")\r");
    terminal.until("\"a\\nb\"");
    terminal.until("ptc> ");
    assert_eq!(terminal.form("(def total 41)"), "#'total");
    // Names go on: a definition, data, a built-in.
    assert_eq!(terminal.form("(inc tot\t)"), "42");
    assert_eq!(terminal.form("data/ord\t"), "\"x\"");
    terminal.keys("(map-inde\t");
    terminal.until("map-indexed");
    // What is typed is dropped.
    terminal.keys("\u{3}");
    terminal.until("ptc> ");
    // What the function takes is shown.
    terminal.keys("(reduce ");
    terminal.until("f coll");
    terminal.keys("\u{3}");
    terminal.until("ptc> ");
    // Lines are shown while the form runs, which is ended, and the session goes on.
    terminal.keys("(do (println \"first\") (loop [] (recur)))\r");
    terminal.until("\nfirst");
    terminal.keys("\u{3}");
    terminal.until("cancelled");
    terminal.until("ptc> ");
    assert_eq!(terminal.form("(inc total)"), "42");
    // The line before the last: arrows go back over one that was typed twice once.
    assert_eq!(terminal.form("(inc total)"), "42");
    assert_eq!(terminal.form(" (str :secret)"), "\":secret\"");
    assert_eq!(terminal.form("(inc 5)"), "6");
    assert_eq!(terminal.form("\u{1b}[A\u{1b}[A"), "42");
    assert_eq!(terminal.form(":json"), "JSON output: on");
    assert_eq!(terminal.form("{:a 1}"), "{\"a\": 1}");
    assert!(terminal.form(":help").contains(":apropos TEXT"));
    assert_eq!(terminal.leave(), Some(0));
    let file = home.join(".local/state/ptcl/history");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains("secret") && kept.matches("(inc total)").count() == 3, "{kept}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // The next time it is there.
    let mut again = Terminal::open(&home, 100, &[]);
    assert!(again.form("\u{1b}[A").contains(":apropos TEXT"));
    assert_eq!(again.leave(), Some(0));
    std::fs::remove_dir_all(&home).unwrap();
}

/// What Tab offers is one word of visible characters, whatever the names of the data are.
#[test]
fn a_name_that_controls_the_terminal_is_not_offered() {
    let home = home("names");
    let data = home.join("data.json");
    std::fs::write(&data, "{\"kk\": {\"kkk\": 1}, \"k\\u001b[31m\\u009b1m\\u202e\": 1}").unwrap();
    let mut terminal = Terminal::open(&home, 80, &["--data", data.to_str().unwrap()]);
    // The only one that is offered is put in.
    terminal.keys("data/k\t");
    terminal.until("data/kk");
    terminal.keys("\u{3}");
    terminal.until("ptc> ");
    let listed = terminal.form(":data");
    assert!(listed.contains("\\u001b[31m\\u009b1m\\u202e"), "{listed:?}");
    assert_eq!(terminal.leave(), Some(0));
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn values_fit_the_window() {
    let home = home("window");
    let mut terminal = Terminal::open(&home, 60, &[]);
    let table = terminal.form("[{:a 1 :b \"x\"} {:a 22 :b \"y\"}]");
    assert_eq!(table.replace('\r', ""), "a  b\n--  -\n 1  x\n22  y");
    // What is longer than the window is shown part by part, or in the pager.
    let long = terminal.form("(vec (range 800))");
    let lines: Vec<&str> = long.lines().collect();
    assert!(lines.len() == 22 && lines.iter().all(|line| line.len() <= 60), "{long}");
    assert!(
        long.starts_with("[0 1 2") && lines[21].starts_with("... (35 more lines: :more shows them, :page"),
        "{long}"
    );
    assert!(terminal.form(":more").ends_with("... (14 more lines: :more shows them, :page shows all)"));
    assert!(terminal.form(":more").ends_with(" 799]"));
    assert!(terminal.form(":more").contains("no more to show"));
    let paged = terminal.form(":page");
    assert!(paged.starts_with("paged:[0 1 2") && paged.ends_with(" 799]"), "{paged}");
    assert!(paged.lines().all(|line| line.starts_with("paged:")), "{paged}");
    // Nested values have lines of their own, and a long string is folded.
    let nested = terminal.form("{:a {:b (vec (range 30))} :c \"x\"}").replace('\r', "");
    assert!(nested.starts_with("{:a {:b [0 1 2") && nested.ends_with("\n :c \"x\"}"), "{nested}");
    let folded = terminal.form("(apply str (repeat 100 \"é\"))").replace('\r', "");
    assert_eq!(folded, format!("\"{}\n{}\"", "é".repeat(59), "é".repeat(41)));
    assert_eq!(terminal.form("(def w (apply str (repeat 70 \"w\")))"), "#'w");
    let wide = terminal.form("(mapv (fn [n] {:n n :w w}) (range 60))");
    let (said, rows): (Vec<&str>, Vec<&str>) = wide.lines().partition(|line| line.starts_with("..."));
    assert!(rows.len() == 20 && rows.iter().all(|line| line.chars().count() <= 60), "{wide:?}");
    assert!(rows[2].starts_with(" 0  www") && rows[2].ends_with("w…"), "{wide:?}");
    let notes = ["... (wide cells are cut: :page shows all)", "... (42 more lines: :more shows them, :page shows all)"];
    assert_eq!(said, notes);
    assert!(terminal.form(":page").contains(&"w".repeat(70)));
    // Every column is there, or the note tells it.
    assert_eq!(terminal.form("(defn k [n] (keyword (str \"name\" n)))"), "#'k");
    let columns = terminal.form("[(zipmap (map k (range 5)) (repeat w))]");
    assert!(["name0", "name4"].iter().all(|name| columns.contains(name)), "{columns}");
    let columns = terminal.form("[(into {} (for [n (range 20)] [(k n) n]))]");
    assert!(columns.ends_with("... (12 columns are left out: :page shows all)"), "{columns}");
    assert!(terminal.form(":page").contains("name19"));
    // Another table is shown in parts too.
    let table = terminal.form(":table (mapv (fn [n] [n w]) (range 60))");
    assert!(table.ends_with("... (40 more lines: :more shows them, :page shows all)"), "{table}");
    assert!(terminal.form(":more").contains("\n... (20 more lines"));
    assert!(terminal.form(":page").lines().count() == 60);
    assert!(terminal.form("*1").starts_with("[[0"));
    assert!(terminal.form(":table").ends_with("... (40 more lines: :more shows them, :page shows all)"));
    // A vector of maps in other views.
    assert_eq!(terminal.form(":json [{:a 1}]"), "[{\"a\": 1}]");
    assert_eq!(terminal.form("[*1]"), "[[{:a 1}]]");
    assert_eq!(terminal.leave(), Some(0));
    std::fs::remove_dir_all(&home).unwrap();
}

/// Names after a slash go on, and so does what a command takes.
#[test]
fn tab_completes_names_after_a_slash_files_and_limits() {
    let home = home("tab");
    std::fs::write(home.join("orders.csv"), "id,n\n1,2\n").unwrap();
    let folder = home.display();
    let mut terminal = Terminal::open(&home, 200, &[]);
    assert_eq!(terminal.form("(str/upper-c\t \"a\")"), "\"A\"");
    assert_eq!(terminal.form("(clojure.string/upper-c\t \"a\")"), "\"A\"");
    assert_eq!(terminal.form("(Math/ab\t -1)"), "1");
    assert_eq!(terminal.form("(str (LocalDate/pars\t \"2026-01-02\"))"), "\"2026-01-02\"");
    for (typed, listed) in [("(Math/", "Math/sqrt"), ("(LocalDate/", "LocalDate/parse"), ("(str/", "str/join")] {
        // The first Tab puts in what all have in common, the second one lists them.
        terminal.keys(&format!("{typed}\t\t"));
        terminal.until(listed);
        terminal.until(typed);
        terminal.keys("\u{3}");
        terminal.until("ptc> ");
    }
    assert_eq!(terminal.form(&format!(":data {folder}/ord\t")), "added data/orders");
    assert_eq!(terminal.form("(count data/ord\t)"), "1");
    assert_eq!(terminal.form(&format!(":save {folder}/a.session")), format!("saved the session to {folder}/a.session"));
    assert!(terminal.form(&format!(":load {folder}/a.\t")).starts_with("loaded "));
    assert_eq!(terminal.form(":limits session_u\t"), "session_undo             10");
    assert_eq!(terminal.leave(), Some(0));
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_block_is_pasted_and_all_of_it_runs() {
    let home = home("paste");
    let mut terminal = Terminal::open(&home, 80, &[]);
    let block = "(def a 1) ; one\n(defn f [x]\n  (str x \"\n     y\"))\n(nope)\n(println (+ a 1))\n[a (f a)]";
    // As a terminal sends it that marks what is pasted, and as one that does not.
    for pasted in [format!("\u{1b}[200~{block}\u{1b}[201~\r"), block.replace('\n', "\r") + "\r"] {
        terminal.keys(&pasted);
        for shown in ["#'a", "#'f", "nope is not defined", "\n2\r\nnil", "[1 \"1\\n     y\"]"] {
            terminal.until(shown);
        }
        terminal.until("ptc> ");
    }
    assert_eq!(terminal.form("(inc a) :b"), "2\r\n:b");
    assert_eq!(terminal.leave(), Some(0));
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_form_goes_on_under_its_beginning() {
    let home = home("lines");
    let mut terminal = Terminal::open(&home, 80, &["--color", "never"]);
    terminal.keys("(let [x 1\r");
    terminal.keys("y 2]\r");
    terminal.keys("(str x y \"a\r");
    terminal.keys("b\"))\r");
    let shown = terminal.until("\"12a\\nb\"");
    assert!(shown.contains("ptc> (let [x 1\r\n...>       y 2]\r\n...>   (str x y \"a\r\nb\""), "{shown:?}");
    terminal.until("ptc> ");
    // The history has it as it was typed, and what it says is the same.
    terminal.keys("\u{1b}[A\r");
    terminal.until("\"12a\\nb\"");
    terminal.until("ptc> ");
    // Names of any script are typed and completed.
    assert_eq!(terminal.form("(def größe 5)"), "#'größe");
    assert_eq!(terminal.form("(inc grö\t)"), "6");
    assert_eq!(terminal.form("(def 名前 {:größe \"é\"})"), "#'名前");
    assert_eq!(terminal.form("名\t"), "{:größe \"é\"}");
    assert_eq!(terminal.form("(:grö\t 名\t)"), "\"é\"");
    assert_eq!(terminal.leave(), Some(0));
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn a_value_longer_than_the_window_goes_through_the_pager() {
    let long = "(do (println \"first\") (vec (range 2000)))";
    let paged = on_terminal(&["run", "-e", long]);
    assert!(paged.starts_with("first\npaged:[0 1") && paged.ends_with("1998 1999]\n"), "{paged}");
    for arguments in [&["run", "--no-pager", "-e", long][..], &["run", "-e", "(vec (range 300))"]] {
        let plain = on_terminal(arguments);
        assert!(!plain.contains("paged:"), "{plain}");
    }
    assert!(
        on_terminal(&["run", "--table", "-e", "(mapv (fn [n] {:n n}) (range 50))"]).starts_with("paged: n\npaged:--")
    );
    // A table that is too wide is not folded.
    let wide = on_terminal(&["run", "--table", "-e", "[{:a (apply str (repeat 300 \"x\"))}]"]);
    assert!(wide.starts_with("paged:a\npaged:--") && wide.lines().count() == 3, "{wide}");
}

/// `less` gets what keeps the lines of a table whole; a pager that the user names is as it is.
#[test]
fn tables_are_paged_with_lines_that_are_not_folded() {
    let home = home("less");
    let less = home.join("less");
    std::fs::write(&less, "#!/bin/sh\necho \"less($*) LESS=$LESS\"\ncat\n").unwrap();
    std::fs::set_permissions(&less, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap());
    let long = "(mapv (fn [n] {:n n}) (range 50))";
    let wide = "[{:a (apply str (repeat 300 \"x\"))}]";
    let first_line = |variables: &[(&str, &str)], arguments: &[&str]| {
        let written = on_terminal_paged(None, &[&[("PATH", path.as_str())], variables].concat(), arguments);
        written.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first_line(&[], &["run", "--table", "-e", long]), "less(-S) LESS=FRSX");
    assert_eq!(first_line(&[], &["run", "--table", "-e", wide]), "less(-S) LESS=RSX");
    assert_eq!(first_line(&[], &["run", "-e", "(vec (range 5000))"]), "less() LESS=FRX");
    assert_eq!(first_line(&[("LESS", "M")], &["run", "--table", "-e", long]), "less(-S) LESS=M");
    let own = on_terminal_paged(Some("sed s/^/own:/"), &[("PATH", path.as_str())], &["run", "--table", "-e", long]);
    assert!(own.starts_with("own: n\nown:--"), "{own}");
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn the_environment_says_what_the_terminal_can() {
    let value = ["run", "-e", "(vec (range 20))"];
    let on = |variables: &[(&str, &str)]| on_terminal_with(variables, &value);
    assert!(on(&[("TERM", "xterm")]).contains('\u{1b}'));
    let one_line = on(&[("TERM", "dumb")]);
    assert!(one_line.lines().count() == 1 && !one_line.contains('\u{1b}'), "{one_line:?}");
    let narrow = on(&[("TERM", "dumb"), ("COLUMNS", "30")]);
    assert!(narrow.lines().count() == 2 && narrow.lines().all(|line| line.len() <= 30), "{narrow:?}");
    for wrong in ["", "0", "x"] {
        assert_eq!(on(&[("TERM", "dumb"), ("COLUMNS", wrong)]), one_line);
    }
    let low = on_terminal_with(&[("NO_COLOR", "1"), ("LINES", "10")], &["run", "-e", "(vec (range 600))"]);
    assert!(low.starts_with("paged:"), "{low:?}");
}

/// Controls, invisible characters, and some that turn the direction of text. Nothing may write them to a terminal.
const HIDDEN: &str = "\u{1b}[31m\u{7}\u{202e}\u{2066}\u{9b}\r\u{7f}";

#[test]
fn nothing_that_a_program_says_controls_a_terminal() {
    let home = home("hidden");
    let file = |name: &str, text: &str| {
        let path = home.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let escaped: String = HIDDEN.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let programs = [
        file("prints.clj", &format!("(println \"{escaped}\") {{\"{escaped}\" [\"{escaped}\"]}}")),
        file("fails.clj", &format!("(fail \"{escaped}\")")),
        file("throws.clj", &format!("(defn f [] (throw (ex-info \"{escaped}\" {{:a \"{escaped}\"}}))) (f)")),
        file("source.clj", &format!("(count [\"{HIDDEN}x\" (inc 1)]) ; {HIDDEN}")),
        file("wrong.clj", &format!("(inc \"{HIDDEN}\")\n; => {escaped}")),
    ];
    let commands: [&[&str]; 9] = [
        &["run"],
        &["run", "--json"],
        &["run", "--profile"],
        &["slate"],
        &["slate", "--json"],
        &["test"],
        &["check"],
        &["fmt", "--check"],
        &["sandbox", "run"],
    ];
    for program in &programs {
        for command in &commands {
            let written = on_terminal(&[*command, &[program]].concat());
            assert!(!written.is_empty() || command[0] == "fmt", "{command:?} {program}");
            let hidden = |c: char| c != '\n' && HIDDEN.replace("[31m", "").contains(c);
            assert!(!written.contains(hidden), "{command:?} {program}: {written:?}");
        }
        let record = home.join("record").display().to_string();
        let said = on_terminal(&["run", "--record", &record, program]);
        for command in [&["replay", record.as_str()][..], &["replay", "--json", &record]] {
            let written = on_terminal(command);
            assert!(
                !written.contains(|c: char| c != '\n' && HIDDEN.replace("[31m", "").contains(c)),
                "{said} {written:?}"
            );
        }
    }
    std::fs::remove_dir_all(&home).unwrap();
}
