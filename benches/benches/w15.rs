//! W15: whole programs over data sets, from JSON text to the answer as text, beside hand-written Rust over
//! `serde_json::Value`, Node, CPython and jaq, by turns. Rows are medians over the rounds of medians within a round, in
//! microseconds: this thread's processor time here and of CPython, the clock's of Node, which has no other. Here the
//! engine has the program from the first time on, as the others have theirs compiled before.
//!
//! `cargo bench -p ptc-lisp-benches --features jaq --bench w15 -- [--rounds N] [--split]`

use cpu_time::ThreadTime;
use lisp_benches::datasets::{self, DataProgram, answer, read, read_as_floats};
use lisp_benches::hand;
use lisp_runtime::{Engine, Input};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A program is run so often within a round: as many times as fit into [`TURN`] here, within these bounds. It is the same
/// number for everybody.
const RUNS: (u128, u128) = (5, 100);
const TURN: Duration = Duration::from_millis(60);
/// The sum is to be at most so many times that of handwritten Rust.
const TARGET: f64 = 1.3;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let rounds = args.iter().skip_while(|arg| *arg != "--rounds").nth(1);
    let rounds = rounds.map_or(5, |n| n.parse().expect("a number of rounds")).max(1_usize);
    if datasets::folder().is_none() {
        eprintln!("no folder of data sets (PTCL_DATA): the four examples only");
    }
    let programs = datasets::programs();
    let engine = datasets::engine();
    let runs: Vec<usize> = programs.iter().map(|program| runs_of_a_turn(program, &engine)).collect();
    let mut peers = peers();
    let mut rows = warm_up(&mut peers, &programs, &runs);
    for _ in 0..rounds {
        for ((program, runs), row) in programs.iter().zip(&runs).zip(&mut rows) {
            for (peer, cell) in peers.iter_mut().zip(row) {
                if let Some(times) = cell
                    && let Some((time, _)) = peer.turn(program, *runs)
                {
                    times.push(time);
                }
            }
        }
    }
    let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    let rows: Vec<Vec<Option<f64>>> =
        rows.into_iter().map(|row| row.into_iter().map(|times| times.map(median)).collect()).collect();
    print_table(&names, &programs, &rows);
    if args.iter().any(|arg| arg == "--split") {
        print_split(&engine, &programs, &runs);
    }
}

fn runs_of_a_turn(program: &DataProgram, engine: &Engine) -> usize {
    let start = ThreadTime::now();
    black_box(answer(&program.eval(engine)));
    let runs = TURN.as_nanos() / start.elapsed().as_nanos().max(1);
    runs.clamp(RUNS.0, RUNS.1) as usize
}

/// Who does the work.
trait Peer {
    fn name(&self) -> &str;
    /// Runs a program so many times: the median in microseconds, and the answer. `None` when it has no such program.
    fn turn(&mut self, program: &DataProgram, runs: usize) -> Option<(f64, String)>;
    /// Does its language tell integers from floats with nothing after the point?
    fn is_exact(&self) -> bool {
        false
    }
}

fn peers() -> Vec<Box<dyn Peer>> {
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(Ours(datasets::engine())), Box::new(Hand)];
    for (language, command, script) in [("Node", "node", "w15.js"), ("CPython", "python3", "w15.py")] {
        match Process::start(language, command, script) {
            Ok(process) => peers.push(Box::new(process)),
            Err(error) => eprintln!("{language} is left out: {command}: {error}"),
        }
    }
    #[cfg(feature = "jaq")]
    peers.push(Box::new(Jaq));
    peers
}

struct Ours(Engine);

impl Peer for Ours {
    fn name(&self) -> &str {
        "PTC-Lisp"
    }

    fn turn(&mut self, program: &DataProgram, runs: usize) -> Option<(f64, String)> {
        Some(timed(runs, || answer(&program.eval(&self.0))))
    }

    fn is_exact(&self) -> bool {
        true
    }
}

struct Hand;

impl Peer for Hand {
    fn name(&self) -> &str {
        "handwritten Rust"
    }

    fn turn(&mut self, program: &DataProgram, runs: usize) -> Option<(f64, String)> {
        let rust = hand::program(&program.name)?;
        Some(timed(runs, || rust(&program.json)))
    }

    fn is_exact(&self) -> bool {
        true
    }
}

#[cfg(feature = "jaq")]
struct Jaq;

#[cfg(feature = "jaq")]
impl Peer for Jaq {
    fn name(&self) -> &str {
        "jaq"
    }

    fn turn(&mut self, program: &DataProgram, runs: usize) -> Option<(f64, String)> {
        let filter = lisp_benches::jaq::program(&program.name)?;
        Some(timed(runs, || filter(&program.json)))
    }
}

/// An interpreter in a process of its own, which lives as long as the benchmark and measures itself.
struct Process {
    name: String,
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(language: &str, command: &str, script: &str) -> std::io::Result<Process> {
        let version = Command::new(command).arg("--version").output()?;
        if !version.status.success() {
            return Err(std::io::Error::other("it does not say its version"));
        }
        let version = String::from_utf8_lossy(&version.stdout);
        let version = version.trim().trim_start_matches(|c: char| !c.is_ascii_digit());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers").join(script);
        let mut child = Command::new(command).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (requests, answers) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Ok(Process { name: format!("{language} {version}"), child, requests, answers: BufReader::new(answers) })
    }
}

impl Peer for Process {
    fn name(&self) -> &str {
        &self.name
    }

    fn turn(&mut self, program: &DataProgram, runs: usize) -> Option<(f64, String)> {
        let request = json!({"program": program.name, "file": program.file, "runs": runs});
        writeln!(self.requests, "{request}").expect("a process that listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("a process that answers");
        let reply: Value = serde_json::from_str(&line).expect("JSON");
        Some((reply["micros"].as_f64()?, reply["answer"].as_str()?.to_owned()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everybody runs every program once before the rounds. A cell is `None` where a peer has no such program, or a wrong
/// answer.
fn warm_up(peers: &mut [Box<dyn Peer>], programs: &[DataProgram], runs: &[usize]) -> Vec<Vec<Option<Vec<f64>>>> {
    let mut rows = Vec::new();
    for (program, runs) in programs.iter().zip(runs) {
        let answers: Vec<Option<String>> =
            peers.iter_mut().map(|peer| peer.turn(program, *runs).map(|(_, answer)| answer)).collect();
        let right = answers[0].as_deref().expect("an answer of this interpreter");
        let mut row = Vec::new();
        for (peer, answer) in peers.iter().zip(&answers) {
            let is_right = answer.as_deref().is_some_and(|answer| match peer.is_exact() {
                true => read(answer) == read(right),
                false => read_as_floats(answer) == read_as_floats(right),
            });
            if let (Some(wrong), false) = (answer, is_right) {
                eprintln!("{}, {}: wrong answer: {wrong}", program.name, peer.name());
            }
            row.push(is_right.then(Vec::new));
        }
        rows.push(row);
    }
    rows
}

/// The median in microseconds of this thread's processor time, and the last answer.
fn timed<T>(runs: usize, mut work: impl FnMut() -> T) -> (f64, T) {
    timed_on(runs, || (), |()| work())
}

/// The median time of work on something that is made before the time counts.
fn timed_on<I, T>(runs: usize, mut make: impl FnMut() -> I, mut work: impl FnMut(I) -> T) -> (f64, T) {
    let mut times = Vec::with_capacity(runs);
    loop {
        let input = make();
        let start = ThreadTime::now();
        let answer = black_box(work(input));
        times.push(start.elapsed().as_secs_f64() * 1e6);
        if times.len() >= runs {
            return (median(times), answer);
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn print_table(names: &[&str], programs: &[DataProgram], rows: &[Vec<Option<f64>>]) {
    print_header("program", names);
    for (program, row) in programs.iter().zip(rows) {
        let cells = row.iter().map(|cell| cell.map(|time| show(time, row[1]))).map(|cell| cell.unwrap_or("-".into()));
        print_row(&program.name, cells);
    }
    // Those with programs missing are compared with the same programs of handwritten Rust.
    let sums: Vec<(f64, f64)> = (0..names.len())
        .map(|peer| {
            let both = rows.iter().filter_map(|row| Some((row[peer]?, row[1]?)));
            both.fold((0.0, 0.0), |sum, (time, rust)| (sum.0 + time, sum.1 + rust))
        })
        .collect();
    print_row("sum", sums.iter().map(|(time, rust)| if *time > 0.0 { show(*time, Some(*rust)) } else { "-".into() }));
    let (ours, rust) = sums[0];
    println!("\nThe sum is {:.2} times that of handwritten Rust; the target is {TARGET}.", ours / rust);
}

/// Where the time of this interpreter goes, and what reading the text alone takes handwritten Rust.
fn print_split(engine: &Engine, programs: &[DataProgram], runs: &[usize]) {
    println!();
    print_header("program", &["import", "compile", "run", "all three", "text to text", "`serde_json` into `Value`"]);
    let mut sums = [0.0; 6];
    for (program, runs) in programs.iter().zip(runs) {
        let data = program.import(engine, program.json.clone());
        let compiled = program.compile(engine);
        let (import, ()) = timed_on(*runs, || program.json.clone(), |json| drop(program.import(engine, json)));
        let (compile, _) = timed(*runs, || drop(program.compile(engine)));
        let (run, _) = timed(*runs, || answer(&engine.run(&compiled, Input::new().data_set(&data))));
        let (whole, _) = timed(*runs, || answer(&program.eval(engine)));
        let (parse, _) = timed(*runs, || drop(serde_json::from_str::<Value>(&program.json)));
        let cells = [import, compile, run, import + compile + run, whole, parse];
        sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += cell);
        print_row(&program.name, cells.iter().map(|cell| show(*cell, None)));
    }
    print_row("sum", sums.iter().map(|sum| show(*sum, None)));
}

fn print_header(first: &str, names: &[&str]) {
    print_row(first, names.iter().map(|name| (*name).to_owned()));
    println!("|---|{}", "---|".repeat(names.len()));
}

fn print_row(name: &str, cells: impl Iterator<Item = String>) {
    println!("| {name} |{}", cells.map(|cell| format!(" {cell} |")).collect::<String>());
}

/// A time, and how many times another it is.
fn show(time: f64, other: Option<f64>) -> String {
    let digits = usize::from(time < 100.0);
    match other {
        Some(other) if other != time => format!("{time:.digits$} ({:.2}x)", time / other),
        _ => format!("{time:.digits$}"),
    }
}
