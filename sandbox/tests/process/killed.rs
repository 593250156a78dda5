//! Recorded runs in processes that are killed: at each line of the record, and while a tool is at work. What goes on in another
//! process, at either isolation and any width, comes to the same answer with the same fuel, and writes nothing twice.

use lisp_runtime::record::{CallState, Settled};
use lisp_runtime::tools::Effect;
use lisp_runtime::{Engine, Input, Limits, LimitsRequest, Record, Recording, Tool, ToolError};
use lisp_sandbox::Sandbox;
use rustix::process::{Signal, getpid, kill_process};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a life is told by: its folder, its isolation, the width of parallel calls, and where it is killed.
const LIFE: &str = "PTC_TEST_LIFE";

const PROGRAM: &str = "[(tool/write {:n 1}) (pos? (System/currentTimeMillis)) (try (tool/fails {:n 1}) (catch Exception e (:message e)))
    (pmap (fn [i] [(tool/write {:n (+ 10 i)}) (tool/read {:n i}) (pos? (System/currentTimeMillis))]) (range 3))
    (try (tool/flaky {:n 1}) (catch Exception e :not-yet)) (tool/flaky {:n 1}) (tool/flaky {:n 1}) (tool/write {:n 2})]";

/// How many lines the record has behind the run, and how many calls write.
const LINES: u32 = 1 + 3 * 2 + 1 + 3 * (2 + 2 + 1) + 2 * 2;
const WRITES: u32 = 5;

/// Ends this process as nothing else does.
fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}

fn append(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// Writes a line at one go: another thread may kill the process at any moment.
fn write_line(path: &Path, line: &str) -> std::io::Result<()> {
    append(path).write_all(format!("{line}\n").as_bytes())
}

/// The tools of a life. What is written stands in a file; the n-th write is killed behind it.
fn engine(folder: &Path, killed_at: u32) -> Engine {
    let (world, attempts) = (folder.join("world"), folder.join("attempts"));
    let count = AtomicU32::new(0);
    let write = Tool::new("write", move |call| {
        let n = call.get::<i64>("n")?;
        write_line(&world, &format!("{} {n}", call.key().unwrap_or_default()))?;
        if count.fetch_add(1, Ordering::Relaxed) + 1 == killed_at {
            die();
        }
        Ok(n)
    });
    // The first call of the run fails, in whichever life it is.
    let flaky = Tool::new("flaky", move |call| {
        write_line(&attempts, call.key().unwrap_or_default())?;
        let first = std::fs::read_to_string(&attempts)?;
        match first.lines().next() == call.key() {
            true => Err(ToolError::new("not yet")),
            false => call.get::<i64>("n"),
        }
    });
    Engine::builder()
        .limits(Limits::default().with_timeout_ms(60_000).with_parallel_timeout_ms(60_000))
        .grant(write.with_effect(Effect::Write))
        .grant(flaky.cached().with_effect(Effect::Read))
        .grant(Tool::new("read", |call| Ok(call.get::<i64>("n")? * 2)).with_effect(Effect::Read))
        .grant(Tool::new("fails", |_| Err::<(), _>(ToolError::new("no"))).with_effect(Effect::Read))
        .build()
        .unwrap()
}

/// One life of a run, when this process was started for one. Returns whether it was.
pub(crate) fn live() -> bool {
    let Ok(life) = std::env::var(LIFE) else { return false };
    let told: Vec<&str> = life.split('|').collect();
    let [folder, isolation, width, mode, at] = told[..] else { panic!("{life}") };
    let (folder, at): (PathBuf, u32) = (folder.into(), at.parse().unwrap());
    let engine = engine(&folder, if mode == "effect" { at } else { 0 });
    let (file, lines, mode) = (append(&folder.join("record")), Mutex::new(0), mode.to_owned());
    let keep = move |line: &str| {
        let mut lines = lines.lock().unwrap();
        *lines += 1;
        let killed = |when: &str| *lines == at && mode == when;
        let bytes = if killed("before") {
            0
        } else if killed("half") {
            line.len() / 2
        } else {
            line.len()
        };
        (&file).write_all(&line.as_bytes()[..bytes])?;
        if bytes < line.len() || killed("behind") {
            die();
        }
        Ok(())
    };
    let recording = Recording::builder().recorder(keep);
    let text = std::fs::read_to_string(folder.join("record")).unwrap();
    let mut asked = LimitsRequest::default();
    asked.set("parallel_window", width.parse().unwrap()).unwrap();
    let (source, input) = match text.is_empty() {
        true => (PROGRAM.to_owned(), Input::new().record(&recording.build())),
        false => {
            let record = Record::parse(text).unwrap();
            let (program, input, _) = engine.open_record_with(&record, &[], &recording).unwrap();
            (program.source().to_owned(), input)
        }
    };
    let input = input.limits_over(&asked);
    let outcome = match isolation {
        "process" => Sandbox::builder().engine(engine).build().unwrap().eval(&source, &input),
        _ => engine.eval(&source, input),
    };
    let answer = match outcome.problem() {
        Some(problem) => format!("{:?} {}", problem.reason(), problem.error.message),
        None => format!("{:?} {} {}", outcome.text(), outcome.usage.fuel, outcome.usage.tool_calls),
    };
    std::fs::write(folder.join("answer"), answer).unwrap();
    true
}

/// A run in a folder of its own.
struct Lives {
    folder: PathBuf,
    count: u32,
}

impl Lives {
    fn new(name: &str) -> Lives {
        let folder = std::env::temp_dir().join(format!("ptc-killed-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Lives { folder, count: 0 }
    }

    fn written(&self) -> Vec<(String, i64)> {
        let text = std::fs::read_to_string(self.folder.join("world")).unwrap_or_default();
        let line = |line: &str| line.rsplit_once(' ').map(|(key, n)| (key.to_owned(), n.parse().unwrap())).unwrap();
        text.lines().map(line).collect()
    }

    /// What the run came to; `None` when it was killed. Then the host looks into the world what came of the calls that nobody
    /// knows of, and keeps the record so.
    fn next(&mut self, isolation: &str, width: u32, mode: &str, at: u32) -> Option<String> {
        self.count += 1;
        let life = format!("{}|{isolation}|{width}|{mode}|{at}", self.folder.display());
        let status = Command::new(std::env::current_exe().unwrap()).env(LIFE, &life).status().unwrap();
        let file = self.folder.join("record");
        if status.signal() != Some(9) {
            assert!(status.success(), "{life}: {status}\n{}", std::fs::read_to_string(file).unwrap());
            return Some(std::fs::read_to_string(self.folder.join("answer")).unwrap());
        }
        let written: BTreeMap<String, i64> = self.written().into_iter().collect();
        let text = std::fs::read_to_string(&file).unwrap();
        if !text.contains('\n') {
            std::fs::write(&file, "").unwrap();
            return None;
        }
        let mut record = Record::parse(text).unwrap();
        for call in
            record.open_calls().into_iter().filter(|call| call.tool == "write" && call.state == CallState::Started)
        {
            let settled = match written.get(&format!("{}/{}", record.run_id(), call.name)) {
                Some(n) => Settled::Done(n.to_string()),
                None => Settled::NotMade,
            };
            record.settle(&call.name, settled).unwrap();
        }
        std::fs::write(file, record.text()).unwrap();
        None
    }

    /// The run came to its end: it wrote what it should, once each.
    fn check(self, answer: &str, whole: &str, what: &str) {
        assert_eq!(answer, whole, "{what}\n{}", std::fs::read_to_string(self.folder.join("record")).unwrap());
        let mut numbers: Vec<i64> = self.written().into_iter().map(|(_, n)| n).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 10, 11, 12], "{what}");
        std::fs::remove_dir_all(self.folder).unwrap();
    }
}

pub(crate) fn everywhere(_: &Sandbox) {
    let mut first = Lives::new("whole");
    let whole = first.next("in-process", 1, "never", 0).unwrap();
    let lines = std::fs::read_to_string(first.folder.join("record")).unwrap().lines().count();
    assert_eq!(u32::try_from(lines), Ok(LINES), "{}", std::fs::read_to_string(first.folder.join("record")).unwrap());
    first.check(&whole, &whole, "whole");
    // Two threads, each with every other place to be killed at.
    let places: Vec<(&str, u32)> = (1..=LINES)
        .flat_map(|at| [("before", at), ("half", at), ("behind", at)])
        .chain((1..=WRITES).map(|at| ("effect", at)))
        .collect();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (whole, places) = (&whole, &places);
            scope.spawn(move || {
                for (number, &(mode, at)) in places.iter().enumerate().filter(|(number, _)| number % 2 == thread) {
                    let doors = [["in-process", "process"], ["process", "in-process"], ["in-process", "in-process"]];
                    let [isolation, other] = doors[number / 2 % 3];
                    let what = format!("{mode} {at}, {isolation} then {other}");
                    let mut lives = Lives::new(&format!("{mode}-{at}"));
                    assert_eq!(lives.next(isolation, 1 + 7 * (at % 2), mode, at), None, "{what} is not killed");
                    let answer = lives.next(other, 8 - 7 * (at % 2), "never", 0).expect("it is not killed");
                    lives.check(&answer, whole, &what);
                }
            });
        }
    });
    // A run that is killed again and again, behind a few lines each.
    for steps in [2, 3] {
        let mut lives = Lives::new(&format!("steps-{steps}"));
        let answer = loop {
            let (isolation, width) = [("in-process", 1), ("process", 8)][lives.count as usize % 2];
            match lives.next(isolation, width, "behind", steps) {
                Some(answer) => break answer,
                None => assert!(lives.count < LINES),
            }
        };
        assert!(lives.count > LINES / (steps + 1), "{}", lives.count);
        lives.check(&answer, &whole, &format!("every {steps} lines"));
    }
}
