//! A process that is watched and ended through two named pipes.

use lisp_runtime::{Engine, Input, Limits, Verdict};
use lisp_sandbox::testing::{Payload, send_frame};
use lisp_sandbox::{Managed, Sandbox};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn directory(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ptcl-{name}-{}", std::process::id()))
}

/// A client's one operation: the three lines.
fn ask(dir: &Path, byte: &[u8]) -> Vec<String> {
    let mut wait = std::fs::OpenOptions::new().write(true).open(dir.join("wait")).unwrap();
    wait.write_all(byte).unwrap();
    drop(wait);
    let mut text = String::new();
    std::fs::File::open(dir.join("status")).unwrap().read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn managed(name: &str, source: &str) -> (PathBuf, Managed) {
    let mut limits = lisp_runtime::LimitsRequest::default();
    limits.set("loop_iterations", 0).unwrap();
    let engine = Engine::builder().limits(Limits::default().with(&limits).with_timeout_ms(60_000)).build().unwrap();
    let sandbox = Sandbox::builder().engine(engine).build().unwrap();
    let dir = directory(name);
    let managed = Managed::start(&sandbox, &dir, source.to_owned(), Input::new()).unwrap();
    (dir, managed)
}

pub(crate) fn while_it_runs(_: &Sandbox) {
    let (dir, managed) = managed("runs", "(println 1) (loop [x (vec (range 10000))] (recur x))");
    std::thread::sleep(Duration::from_millis(50));
    let first = ask(&dir, b"1");
    assert_eq!((first.len(), first[2].as_str()), (3, "process running normally"));
    std::thread::sleep(Duration::from_millis(50));
    let second = ask(&dir, b"1\n");
    let cpu = |lines: &[String]| lines[0].parse::<u64>().unwrap();
    assert!(cpu(&second) > cpu(&first) && second[1].parse::<u64>().unwrap() > 100_000, "{first:?} {second:?}");
    assert!(ask(&dir, b"x")[2].starts_with("bad request"));
    // A client that asks nothing, one that never reads, and one that goes between the two steps.
    drop(std::fs::OpenOptions::new().write(true).open(dir.join("wait")).unwrap());
    let mut text = String::new();
    std::fs::File::open(dir.join("status")).unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("bad request"), "{text}");
    std::fs::OpenOptions::new().write(true).open(dir.join("wait")).unwrap().write_all(b"1").unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    for _ in 0..50 {
        assert_eq!(ask(&dir, b"1").len(), 3);
    }
    let last = ask(&dir, b"0");
    assert_eq!(last[2], "terminated");
    let outcome = managed.wait().unwrap();
    assert_eq!((outcome.verdict(), outcome.prints.join(",")), (Verdict::Cancelled, "1".to_owned()));
    assert!(!dir.join("wait").exists() && !dir.join("status").exists());
    std::fs::remove_dir(dir).unwrap();
}

/// Asks until the program runs no more.
fn when_over(dir: &Path) -> Vec<String> {
    loop {
        let status = ask(dir, b"1");
        if status[2] != "process running normally" {
            return status;
        }
    }
}

pub(crate) fn after_the_end(_: &Sandbox) {
    for (name, source, state) in [
        ("ends", "(+ 1 2)", "exited normally"),
        ("cannot", "(+ 1", "Compilation failed."),
        ("fails", "(/ 1 0)", "process interrupted: arithmetic_error"),
    ] {
        let (dir, managed) = managed(name, source);
        let first = when_over(&dir);
        assert!(first[2].starts_with(state), "{first:?}");
        assert_eq!(first[1], "0");
        assert_eq!(ask(&dir, b"1"), first, "{name}");
        assert_eq!(ask(&dir, b"0"), first, "{name}");
        assert!(managed.wait().is_some());
        std::fs::remove_dir(dir).unwrap();
    }
}

pub(crate) fn two_clients_at_once(_: &Sandbox) {
    let (dir, managed) = managed("two", "(loop [] (recur))");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // Of two that read at once one may find the pipe empty; it asks again.
            scope.spawn(|| (0..20).for_each(|_| while ask(&dir, b"1").len() != 3 {}));
        }
    });
    assert_eq!(ask(&dir, b"0")[2], "terminated");
    drop(managed);
    std::fs::remove_dir(dir).unwrap();
}

/// An answer that is read in parts is whole, although another client has asked meanwhile.
pub(crate) fn slow_clients(_: &Sandbox) {
    let (dir, managed) = managed("slow", "(loop [] (recur))");
    let asks = || std::fs::write(dir.join("wait"), b"1").unwrap();
    for _ in 0..10 {
        asks();
        let mut status = std::fs::File::open(dir.join("status")).unwrap();
        let mut first = [0; 12];
        status.read_exact(&mut first).unwrap();
        asks();
        // Time in which the server could spoil it.
        std::thread::sleep(Duration::from_millis(20));
        let mut text = String::from_utf8(first.to_vec()).unwrap();
        status.read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 3 && lines[2] == "process running normally", "{text:?}");
        drop(status);
        // The answer to the other question.
        assert_eq!(std::fs::read_to_string(dir.join("status")).unwrap().lines().count(), 3);
    }
    assert_eq!(ask(&dir, b"0")[2], "terminated");
    drop(managed);
    std::fs::remove_dir(dir).unwrap();
}

/// Any number of looks, also after the end; processor time never goes back.
pub(crate) fn ten_thousand_times(_: &Sandbox) {
    let (dir, managed) = managed("often", "(loop [i 0] (if (< i 3000000) (recur (inc i)) i))");
    let (mut last, mut ended) = (0, 0);
    let begun = Instant::now();
    for look in 0.. {
        if look >= 10_000 && ended > 100 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "{ended} looks after the end");
        let lines = ask(&dir, b"1");
        let cpu: u64 = lines[0].parse().unwrap();
        assert!(lines.len() == 3 && cpu >= last, "{lines:?} after {last}");
        last = cpu;
        ended += u32::from(lines[2] == "exited normally");
    }
    assert_eq!(ask(&dir, b"0")[2], "exited normally");
    assert!(managed.wait().unwrap().is_success());
    std::fs::remove_dir(dir).unwrap();
}

/// Clients that go away after each of their steps, and clients that do not read, hold nobody up, and leave nothing open.
pub(crate) fn clients_that_go_away(_: &Sandbox) {
    let (dir, managed) = managed("away", "(loop [] (recur))");
    let wait = || std::fs::OpenOptions::new().write(true).open(dir.join("wait")).unwrap();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = descriptors();
    let begun = Instant::now();
    for round in 0..8 {
        match round % 4 {
            // Opens and writes nothing; asks and does not come; asks nonsense and does not come.
            0 => drop(wait()),
            1 => wait().write_all(b"1").unwrap(),
            2 => wait().write_all(b"?").unwrap(),
            // Comes for the answer, and does not read it.
            _ => {
                wait().write_all(b"1").unwrap();
                drop(std::fs::File::open(dir.join("status")).unwrap());
            }
        }
    }
    for _ in 0..20 {
        // An answer that was made for one of them may come to this client; and one that comes when another's is closed reads
        // nothing, and asks again.
        let answer = (0..5).map(|_| ask(&dir, b"1")).find(|lines| !lines.is_empty()).expect("an answer");
        assert!(answer[2].ends_with("process running normally"), "{answer:?}");
    }
    // One that has the pipe open and never reads does not keep the process alive.
    let idle = std::thread::scope(|scope| {
        let idle = scope.spawn(|| std::fs::File::open(dir.join("status")).unwrap());
        wait().write_all(b"1").unwrap();
        idle.join().unwrap()
    });
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
    let asked = Instant::now();
    wait().write_all(b"0").unwrap();
    // What that one has left in the pipe may come first. An answer that this thread is too late for is given up, pipe and all.
    let status = || std::fs::read_to_string(dir.join("status"));
    while status().is_ok_and(|text| !text.contains("terminated")) {}
    let outcome = managed.wait().unwrap();
    assert_eq!(outcome.verdict(), Verdict::Cancelled);
    assert!(asked.elapsed() < Duration::from_secs(100), "{:?}", asked.elapsed());
    drop(idle);
    assert!(descriptors() <= before, "{} then {}", before, descriptors());
    std::fs::remove_dir(dir).unwrap();
}

/// A program that waits for a tool is measured too.
pub(crate) fn while_a_tool_is_called(_: &Sandbox) {
    let (calls, called) = std::sync::mpsc::channel::<std::sync::mpsc::Sender<()>>();
    let tool = move |_: &lisp_runtime::ToolCall| {
        let (go_on, wait) = std::sync::mpsc::channel();
        calls.send(go_on)?;
        Ok(wait.recv()?)
    };
    let engine =
        Engine::builder().limits(Limits::default().with_timeout_ms(60_000)).tool("hold", tool).build().unwrap();
    let sandbox = Sandbox::builder().engine(engine).build().unwrap();
    let dir = directory("hold");
    let source = "(tool/hold {}) (count (vec (range 100000))) (tool/hold {})";
    let managed = Managed::start(&sandbox, &dir, source.to_owned(), Input::new()).unwrap();
    let figures = |lines: Vec<String>| (lines[0].parse::<u64>().unwrap(), lines[1].parse::<u64>().unwrap());
    let first_call = called.recv().unwrap();
    let before = figures(ask(&dir, b"1"));
    first_call.send(()).unwrap();
    let second_call = called.recv().unwrap();
    let after = figures(ask(&dir, b"1"));
    assert!(before.0 > 0 && before.1 > 0, "{before:?}");
    assert!(after.0 > before.0 && after.1 > before.1 + 500_000, "{before:?} {after:?}");
    second_call.send(()).unwrap();
    assert_eq!(ask(&dir, b"0").len(), 3);
    drop(managed);
    std::fs::remove_dir(dir).unwrap();
}

/// A client may think between its two steps, and one that writes much asks no more than it gets answers for.
pub(crate) fn slow_and_talkative_clients(_: &Sandbox) {
    let (dir, managed) = managed("slow", "(loop [] (recur))");
    let write = |bytes: &[u8]| {
        std::fs::OpenOptions::new().write(true).open(dir.join("wait")).unwrap().write_all(bytes).unwrap();
    };
    let read = || {
        let mut text = String::new();
        std::fs::File::open(dir.join("status")).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    write(b"1");
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(read().contains("process running normally"));
    write(&[b'1'; 60_000]);
    write(b"0");
    std::thread::sleep(Duration::from_millis(1_500));
    let begun = Instant::now();
    assert!(read().contains("terminated"));
    assert_eq!(managed.wait().unwrap().verdict(), Verdict::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
    assert!(!dir.join("wait").exists() && !dir.join("status").exists());
    std::fs::remove_dir(dir).unwrap();
}

/// Pipes that a killed server left are replaced; those of a living one, and files of those names, are not touched.
pub(crate) fn what_is_there_already(sandbox: &Sandbox) {
    let (dir, first) = managed("there", "(loop [] (recur))");
    let start = || Managed::start(sandbox, &dir, "1".to_owned(), Input::new());
    assert_eq!(start().unwrap_err().to_string(), "wait: a pipe that another process serves");
    assert_eq!(ask(&dir, b"1")[2], "process running normally");
    drop(first);
    for name in ["wait", "status"] {
        let made = std::process::Command::new("mkfifo").arg(dir.join(name)).status().unwrap();
        assert!(made.success());
    }
    let second = start().unwrap();
    assert_eq!(when_over(&dir)[2], "exited normally");
    assert_eq!(ask(&dir, b"0")[2], "exited normally");
    assert!(second.wait().unwrap().is_success());
    std::fs::write(dir.join("wait"), "mine").unwrap();
    assert!(start().unwrap_err().to_string().starts_with("wait: already exists and is not a pipe"));
    assert_eq!(std::fs::read_to_string(dir.join("wait")).unwrap(), "mine");
    assert!(!dir.join("status").exists());
    std::fs::remove_dir_all(dir).unwrap();
}

/// Trouble inside the process shows in the third line.
pub(crate) fn trouble(_: &Sandbox) {
    for (name, state) in [("aborts", "was aborted"), ("forbidden", "forbidden system call")] {
        let (dir, managed) = payload(name, name);
        std::thread::sleep(Duration::from_millis(100));
        let lines = ask(&dir, b"1");
        println!("  {name}: {}", lines[2]);
        assert!(lines[2].starts_with("process interrupted: host_fault") && lines[2].contains(state), "{lines:?}");
        assert_eq!(ask(&dir, b"0")[2], lines[2]);
        drop(managed);
        std::fs::remove_dir(dir).unwrap();
    }
}

/// A second termination finds no pipe; two in one breath are one.
pub(crate) fn terminated_twice(_: &Sandbox) {
    let (dir, managed) = managed("twice", "(loop [] (recur))");
    assert_eq!(ask(&dir, b"0")[2], "terminated");
    assert!(managed.wait().is_some());
    let again = std::fs::OpenOptions::new().write(true).open(dir.join("wait")).map(drop);
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    std::fs::remove_dir(&dir).unwrap();
    let (dir, managed) = self::managed("breath", "(loop [] (recur))");
    assert_eq!(ask(&dir, b"00")[2], "terminated");
    // The second answer is nobody's, and is given up.
    let begun = Instant::now();
    assert_eq!(managed.wait().unwrap().verdict(), Verdict::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
    std::fs::remove_dir(dir).unwrap();
}

/// Whoever had the pipe open when another terminated the process is answered all the same. On a busy machine the second may
/// come after the end; then both come once more.
pub(crate) fn asked_in_grace(_: &Sandbox) {
    assert!((0..10).any(|_| second_is_answered()), "the second came too late, ten times");
}

/// One terminates the process, another asks 15 ms later. Returns whether the pipe was still there for it.
fn second_is_answered() -> bool {
    let (dir, managed) = payload("in-grace", "never_mind");
    std::thread::sleep(Duration::from_millis(50));
    let mut late = std::fs::OpenOptions::new().write(true).open(dir.join("wait")).unwrap();
    let status = dir.join("status");
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&dir, b"0"));
        std::thread::sleep(Duration::from_millis(15));
        // A pipe that nobody reads any more cannot be written.
        let asked = late.write_all(b"1").is_ok();
        drop(late);
        let first = first.join().unwrap();
        let second = std::fs::File::open(&status).ok().filter(|_| asked).map(|mut pipe| {
            let mut second = String::new();
            pipe.read_to_string(&mut second).unwrap();
            second
        });
        (first, second)
    });
    assert_eq!(first[2], "forced termination");
    // Of two that read at once one may find the pipe empty.
    let all_is_well = |text: &String| text.is_empty() || text.contains("forced termination");
    assert!(second.iter().all(all_is_well), "{second:?}");
    drop(managed);
    std::fs::remove_dir(dir).unwrap();
    second.is_some()
}

static ASKED: AtomicBool = AtomicBool::new(false);

/// Has SIGUSR1, by which a process is asked to end, set a flag.
#[allow(unsafe_code, reason = "payloads do what programs must not be able to do")]
fn listen() {
    extern "C" fn on_signal(_: libc::c_int) {
        ASKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler does nothing but an atomic store.
    unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as usize) };
}

const REPORT: &str = r#"{"end":{"Ok":{"kind":"value","json":{"Ok":"1"},"text":"1","text_bytes":1,"memory":{"Ok":"{}"}}},
    "prints":[],"whole":false,"calls":[],"prints_dropped":0,"usage":{"fuel":1,"compute_us":1,"duration_us":1,"heap_peak_bytes":1,
    "heap_live_bytes":1,"allocated_bytes":1,"compactions":0,"tool_calls":0,"workers_peak":0,"output_bytes":1},"names":[],"clock":[],"prints_cut":0,"refused":[],"more_refused":0}"#;

/// Ends 30 ms after it was asked.
fn tidy_up(run: &OwnedFd) -> i32 {
    listen();
    while !ASKED.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(30));
    send_frame(run, b'R', 0, REPORT);
    0
}

/// Does not end when it is asked.
fn never_mind(_: &OwnedFd) -> i32 {
    listen();
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Ends as a process does whose stack or heap is broken.
fn aborts(_: &OwnedFd) -> i32 {
    std::process::abort()
}

/// Makes a call that the filter has no rule for.
fn forbidden(_: &OwnedFd) -> i32 {
    i32::from(std::process::Command::new("/bin/true").status().is_ok())
}

pub(crate) const PAYLOADS: &[(&str, Payload)] =
    &[("tidy_up", tidy_up), ("never_mind", never_mind), ("aborts", aborts), ("forbidden", forbidden)];

fn payload(name: &str, payload: &'static str) -> (PathBuf, Managed) {
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(60_000)).build().unwrap();
    let sandbox = Sandbox::builder().engine(engine).build().unwrap();
    let dir = directory(name);
    let managed = Managed::start_payload(&sandbox, &dir, payload).unwrap();
    (dir, managed)
}

/// A process that is terminated has 50 ms. One that ends within them has ended by itself; one that does not is made to.
pub(crate) fn grace(_: &Sandbox) {
    for (name, state, least, max) in
        [("tidy_up", "exited normally", 25, 100_000), ("never_mind", "forced termination", 45, 100_000)]
    {
        let (dir, managed) = payload(name, name);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(ask(&dir, b"1")[2], "process running normally");
        let begun = Instant::now();
        assert_eq!(ask(&dir, b"0")[2], state, "{name}");
        let took = begun.elapsed();
        println!("  {name}: {state} after {took:?}");
        assert!(took >= Duration::from_millis(least) && took < Duration::from_millis(max), "{name} {took:?}");
        drop(managed);
        std::fs::remove_dir(dir).unwrap();
    }
}
