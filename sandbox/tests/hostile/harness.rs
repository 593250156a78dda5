//! The table at work, as each user and without each layer.

use crate::{deadline, domains, forced, memory, payloads, rows, scenes};
use lisp_runtime::{Engine, Input, Limits, Outcome, Reason, ToolError};
use lisp_sandbox::{BoundedError, Bounds, Builder, Layer, Sandbox, run_bounded, testing};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Where the host listens while payloads try to connect.
pub(crate) const PORT: u16 = 48_317;
/// A segment of shared memory that the host has.
pub(crate) const KEY: usize = 0x5054_4c43;

/// The deadline of rows, and how long after it they are killed, in milliseconds at the usual pace.
const TIMEOUT_MS: u64 = 150;
const GRACE_MS: u64 = 50;

/// How many times longer everything may take, deadlines included, where something failed at the usual pace. A busy machine is late;
/// a protection that is missing is missing at any pace.
const SLOW: u64 = 20;

/// The pace at this moment: 1 or [`SLOW`].
static PACE: AtomicU64 = AtomicU64::new(1);

/// A time at the pace of the moment.
pub(crate) fn paced(ms: u64) -> Duration {
    Duration::from_millis(ms * PACE.load(Ordering::Relaxed))
}

/// Is this the slow pace?
pub(crate) fn is_slow() -> bool {
    PACE.load(Ordering::Relaxed) == SLOW
}

/// Does something at the usual pace, and again slowly if the result is not good.
fn at_either_pace<T>(mut work: impl FnMut() -> T, good: impl Fn(&T) -> bool) -> T {
    let done = work();
    if good(&done) {
        return done;
    }
    PACE.store(SLOW, Ordering::Relaxed);
    let done = work();
    PACE.store(1, Ordering::Relaxed);
    done
}

/// A limit on time at the pace of the moment.
pub(crate) fn paced_ms(ms: u64) -> u64 {
    ms * PACE.load(Ordering::Relaxed)
}

/// How a row may end, in short: `T` timeout, `M` out of memory, `S` a forbidden call, `K` ok, `V` a violation of the
/// protocol, `O` the stack, `A` an abort, `G11` signal 11, `C10` exit code or value 10, `X` set-up, otherwise the text.
pub(crate) type Short = String;

fn of_text(text: &str) -> Short {
    let number =
        |text: &str| text.split(|c: char| !c.is_ascii_digit()).find(|n| !n.is_empty()).unwrap_or("").to_owned();
    let after = |mark: &str| text.split_once(mark).map(|(_, rest)| number(rest));
    if text.contains("forbidden system call") {
        "S".into()
    } else if text.contains("sandbox set-up") {
        "X".into()
    } else if text.contains("core dumped") {
        "a core was dumped".into()
    } else if let Some(signal) = after("killed by signal ") {
        format!("G{signal}")
    } else if text.contains("aborted") {
        "A".into()
    } else if text.contains("panicked") {
        "P".into()
    } else if let Some(code) = after("ended with code ") {
        format!("C{code}")
    } else if text.contains("without a result") {
        "C0".into()
    } else if text.contains("stack") {
        "O".into()
    } else if text.contains("process sent") {
        "V".into()
    } else {
        text.to_owned()
    }
}

pub(crate) fn short(outcome: &Outcome) -> Short {
    match outcome.problem() {
        None => "K".into(),
        Some(problem) => match problem.reason() {
            Reason::Timeout => "T".into(),
            Reason::MemoryExceeded => "M".into(),
            _ => of_text(&problem.error.message),
        },
    }
}

pub(crate) fn short_bounded(result: Result<i32, BoundedError>) -> Short {
    match result {
        Ok(code) => format!("C{code}"),
        Err(BoundedError::Timeout(_)) => "T".into(),
        Err(BoundedError::MemoryExceeded(_)) => "M".into(),
        Err(BoundedError::ExecutionError(text)) => of_text(&text),
        // No test expects this.
        Err(unknown) => format!("unknown: {unknown}"),
    }
}

pub(crate) fn engine() -> Engine {
    Engine::builder()
        .limits(Limits::default().with_timeout_ms(paced_ms(TIMEOUT_MS)).with_fuel(0).with_prints_bytes(100_000))
        .tool("quick", |_| Ok(1))
        .tool("slow", |_| {
            std::thread::sleep(paced(40));
            Ok(2)
        })
        .tool("large", |_| Ok("x".repeat(1 << 18)))
        .tool("stuck", |_| -> Result<(), ToolError> {
            std::thread::sleep(paced(1_000));
            Ok(())
        })
        .build()
        .expect("the engine")
}

pub(crate) fn builder() -> Builder {
    Sandbox::builder().engine(engine()).grace(paced(GRACE_MS))
}

/// A row as it went.
pub(crate) struct Seen {
    what: String,
    mode: String,
    verdict: Short,
    took: Duration,
    max: Duration,
}

/// What has been seen.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) mode: String,
    pub(crate) seen: Vec<Seen>,
    pub(crate) passed: usize,
    pub(crate) failures: Vec<String>,
    pub(crate) skipped: Vec<String>,
}

impl Tally {
    pub(crate) fn check(&mut self, what: &str, good: bool, saw: impl std::fmt::Display) {
        if good {
            self.passed += 1;
        } else {
            println!("FAILED [{}] {what}: {saw}", self.mode);
            self.failures.push(what.to_owned());
        }
    }

    /// A row: how it ended, among those it may, and in time.
    pub(crate) fn row(&mut self, what: &str, expected: &[&str], max: Duration, (saw, took): (Short, Duration)) {
        let good = is_good(expected, max, &(saw.clone(), took));
        self.check(what, good, format_args!("{saw} after {took:?}, expected {expected:?} in {max:?}"));
        self.seen.push(Seen { what: what.to_owned(), mode: self.mode.clone(), verdict: saw, took, max });
    }

    /// Adds what a part of the test has seen.
    fn take(&mut self, part: Tally) {
        self.passed += part.passed;
        self.seen.extend(part.seen);
        self.failures.extend(part.failures);
        self.skipped.extend(part.skipped);
    }

    /// Every row that has been seen.
    fn print(&self) {
        println!("{:<44} {:<38} {:<8} {:>8} {:>8}", "payload", "mode", "verdict", "ms", "most ms");
        for Seen { what, mode, verdict, took, max } in &self.seen {
            println!("{what:<44} {mode:<38} {verdict:<8} {:>8} {:>8}", took.as_millis(), max.as_millis());
        }
    }

    pub(crate) fn skip(&mut self, layer: &str, what: &str) {
        println!("skipped: {layer} [{}] {what}", self.mode);
        self.skipped.push(layer.to_owned());
    }
}

/// Did it end as it may, and in time?
fn is_good(expected: &[&str], max: Duration, (saw, took): &(Short, Duration)) -> bool {
    expected.contains(&saw.as_str()) && *took <= max
}

/// A row behind the template's mode: the short verdict, and how long it took.
pub(crate) fn by_template(sandbox: &Sandbox, payload: &str) -> (Outcome, Duration) {
    let begun = Instant::now();
    let (outcome, _) = sandbox.run_payload(payload, &Input::new(), 0);
    (outcome, begun.elapsed())
}

/// The same in a bounded closure.
pub(crate) fn by_closure(bounds: &Bounds, payload: testing::Payload) -> (Short, Duration) {
    let begun = Instant::now();
    let work = || {
        let channel = std::mem::ManuallyDrop::new(testing::bounded_channel());
        payload(&channel)
    };
    (short_bounded(run_bounded(bounds, work)), begun.elapsed())
}

pub(crate) fn bounds() -> Bounds {
    Bounds::new(paced(TIMEOUT_MS), 64 << 20)
}

/// A part of the test: once, and again slowly if a check of it fails. What the second says counts.
fn part(tally: &mut Tally, part: fn(&mut Tally)) {
    let once = || {
        let mut own = Tally { mode: tally.mode.clone(), ..Tally::default() };
        part(&mut own);
        own
    };
    let own = at_either_pace(once, |own| own.failures.is_empty());
    tally.take(own);
}

/// Every row of the table, with some layers left out, behind both modes.
fn table(tally: &mut Tally, off: &[Layer]) {
    let sandbox = || off.iter().fold(builder(), |builder, &layer| builder.without(layer)).requiring_none().build();
    let usual = match sandbox() {
        Ok(sandbox) => sandbox,
        Err(error) => return tally.check("template", false, error),
    };
    // Made at the slow pace, when a row is first done again.
    let slow = std::cell::OnceCell::new();
    for row in rows::ROWS {
        if row.closure {
            scenes::wait_for_threads();
        }
        let again = |work: &dyn Fn() -> (Short, Duration)| {
            let paced = || (work(), paced(row.max_ms));
            at_either_pace(paced, |(seen, max)| is_good(row.expected, *max, seen))
        };
        let (seen, max) = again(&|| {
            let sandbox = if is_slow() { slow.get_or_init(|| sandbox().expect("a sandbox")) } else { &usual };
            let (outcome, took) = by_template(sandbox, row.payload);
            (short(&outcome), took)
        });
        tally.row(&format!("{} {} (template)", row.line, row.payload), row.expected, max, seen);
        if row.closure {
            let payload = payloads::ALL_PAYLOADS.iter().find(|p| p.0 == row.payload).expect("a payload").1;
            let closure = || by_closure(&off.iter().fold(bounds(), |bounds, &layer| bounds.without(layer)), payload);
            let (seen, max) = again(&closure);
            tally.row(&format!("{} {} (closure)", row.line, row.payload), row.expected, max, seen);
        }
    }
}

/// The other user's half goes on beside this one while both mostly wait (`Turn::Beside`); what loads the machine or measures
/// time has it alone.
enum Turn {
    Beside,
    Alone,
}

/// Waits for a turn between the halves, by a lock on the program itself: both have it open.
fn wait_for(turn: Turn, program: &std::fs::File) {
    let locked = match turn {
        Turn::Beside => program.lock_shared(),
        Turn::Alone => program.lock(),
    };
    locked.expect("a lock on the test's own program");
}

fn all(mode: &str) -> Tally {
    let program = std::fs::File::open("/proc/self/exe").expect("the test's own program");
    let mut tally = Tally { mode: mode.to_owned(), ..Tally::default() };
    wait_for(Turn::Alone, &program);
    part(&mut tally, scenes::before_any_thread);
    part(&mut tally, deadline::before_any_thread);
    part(&mut tally, memory::before_any_thread);
    wait_for(Turn::Beside, &program);
    table(&mut tally, &[]);
    tally.mode = format!("{mode}, no namespaces, no cgroup");
    table(&mut tally, &[rows::NAMESPACES, &[Layer::MemoryCgroup]].concat());
    tally.mode = mode.to_owned();
    part(&mut tally, rows::layered);
    wait_for(Turn::Alone, &program);
    part(&mut tally, scenes::with_threads);
    part(&mut tally, deadline::with_threads);
    part(&mut tally, memory::with_threads);
    wait_for(Turn::Beside, &program);
    part(&mut tally, domains::all);
    part(&mut tally, forced::all);
    program.unlock().expect("a lock on the test's own program");
    tally
}

/// Takes each protection away and says which rows turn red.
fn mutate() -> bool {
    let mut all_seen = true;
    for &layer in Layer::ALL {
        let mut tally = Tally { mode: format!("without {layer}"), ..Tally::default() };
        table(&mut tally, &[layer]);
        rows::layered_without(&mut tally, layer);
        let red = tally.failures.len();
        println!("without {layer}: {red} red: {}", tally.failures.join("; "));
        all_seen &= red > 0 || !tally.skipped.is_empty();
    }
    all_seen
}

pub(crate) fn main() -> ExitCode {
    testing::init(payloads::ALL_PAYLOADS);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The harness's own questions.
    if arguments.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    if let [first, name, pace] = arguments.as_slice()
        && first == forced::ARGUMENT
    {
        PACE.store(pace.parse().expect("a number"), Ordering::Relaxed);
        return forced::inside(name);
    }
    // It stays for as long as this process; the other user finds it there.
    let listener = std::net::TcpListener::bind(("127.0.0.1", PORT));
    payloads::raw(libc::SYS_shmget, [KEY, 4096, (libc::IPC_CREAT | 0o666) as usize, 0, 0, 0]);
    if arguments.iter().any(|a| a == "--mutate") {
        return if mutate() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let child = arguments.iter().any(|a| a == "--as-nobody");
    let root = payloads::raw(libc::SYS_geteuid, [0; 6]) == 0;
    let mode = if root { "root" } else { "unprivileged" };
    // Most rows wait for a deadline: the other user's half goes on beside this one.
    let nobody = (root && !child).then(|| {
        let mut half = Command::new("/proc/self/exe");
        half.args(&arguments).arg("--as-nobody").uid(65_534).gid(65_534).current_dir("/").spawn()
    });
    let tally = all(mode);
    if arguments.iter().any(|a| a == "--table") {
        tally.print();
    }
    println!("{mode}: {} passed, {} failed, {} skipped", tally.passed, tally.failures.len(), tally.skipped.len());
    let mut good = tally.failures.is_empty();
    if let Some(nobody) = nobody {
        good &= nobody.and_then(|mut half| half.wait()).is_ok_and(|status| status.success());
    } else if !root && !child {
        println!("skipped: root; run the test as root for the other half");
    }
    drop(listener);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
