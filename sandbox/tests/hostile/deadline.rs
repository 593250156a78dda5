//! Time and threads: what ends close to its deadline, closures beside threads, closures with threads of their own.

use crate::payloads::{raw, spin};
use crate::{Tally, bounds, by_closure, by_template, paced, short};
use lisp_runtime::{Engine, Limits};
use lisp_sandbox::{
    BoundedError, Bounds, Sandbox, run_bounded, run_bounded_despite_threads, run_bounded_measured, testing,
};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What needs a process with one thread.
pub(crate) fn before_any_thread(tally: &mut Tally) {
    spinning_threads(tally);
    as_many_threads_as_there_are(tally);
    rayon_in_a_closure(tally);
    two_senders(tally);
}

/// The rest.
pub(crate) fn with_threads(tally: &mut Tally) {
    runs_at_the_deadline(tally);
    closures_at_the_deadline(tally);
    beside_threads(tally);
}

/// Is a long count wanted?
fn long() -> bool {
    std::env::args().any(|argument| argument == "--long")
}

/// 5: the time of all threads is on the bill.
fn spinning_threads(tally: &mut Tally) {
    for threads in [8, 64] {
        let max = paced(400);
        let spin_all = || {
            let bounds = Bounds::new(paced(150), 512 << 20).with_threads();
            run_bounded_measured(&bounds, || {
                for _ in 0..threads {
                    let spin = || loop {
                        std::hint::spin_loop();
                    };
                    // Less than the default: 64 of those would be most of the budget.
                    let _ = std::thread::Builder::new().stack_size(1 << 18).spawn(spin);
                }
                spin(&testing::bounded_channel())
            })
        };
        let (result, used) = spin_all();
        let seen = (crate::short_bounded(result), used.wall);
        tally.row(&format!("5 {threads} threads spinning (closure)"), &["T"], max, seen);
        let cpu = Duration::from_micros(used.cpu_us);
        println!("{threads} threads spinning: {cpu:?} of processor time in {:?}", used.wall);
        // How many processors they have had is the machine's matter; how long each has worked is not.
        const EACH: Duration = Duration::from_millis(10);
        let bounds = Bounds::new(paced(20_000), 512 << 20).with_threads();
        let (result, used) = run_bounded_measured(&bounds, || {
            let work = || while own_time() < EACH {};
            let all: Vec<_> = (0..threads).map(|_| std::thread::spawn(work)).collect();
            all.into_iter().filter_map(|thread| thread.join().ok()).count()
        });
        let good = result == Ok(threads) && Duration::from_micros(used.cpu_us) >= EACH * threads as u32;
        tally.check(&format!("5 {threads} threads' processor time"), good, format_args!("{result:?} {used:?}"));
    }
}

/// Processor time of this thread.
fn own_time() -> Duration {
    let mut time = [0_u64; 2];
    raw(libc::SYS_clock_gettime, [libc::CLOCK_THREAD_CPUTIME_ID as usize, time.as_mut_ptr() as usize, 0, 0, 0, 0]);
    Duration::new(time[0], time[1] as u32)
}

/// 24.
fn as_many_threads_as_there_are(tally: &mut Tally) {
    let seen = by_closure(&bounds().with_threads(), |_| {
        let started = (0..10_000).take_while(|_| {
            std::thread::Builder::new()
                .stack_size(1 << 16)
                .spawn(|| std::thread::sleep(Duration::from_secs(900)))
                .is_ok()
        });
        if started.count() < 10_000 { 10 } else { 42 }
    });
    tally.row("24 as many threads as there are (closure)", &["C10", "T", "M", "A"], paced(400), seen);
    // 17: their stacks are on the bill.
    let seen = by_closure(&bounds().with_threads(), |_| {
        let started = (0..100).take_while(|_| {
            std::thread::Builder::new()
                .stack_size(8 << 20)
                .spawn(|| std::thread::sleep(Duration::from_secs(900)))
                .is_ok()
        });
        if started.count() <= 8 { 10 } else { 42 }
    });
    tally.row("17 stacks of threads (closure)", &["C10", "M"], paced(400), seen);
}

/// 58: a pool of threads in a closure, within its budget and beyond; afterwards nothing of it is there.
fn rayon_in_a_closure(tally: &mut Tally) {
    use rayon::prelude::*;
    const THREADS: usize = 4;
    const STACK: usize = 1 << 20;
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(THREADS).stack_size(STACK).build();
    // This thread may have the other user's half.
    let children = || std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let before = children();
    let held = 16 << 20;
    let sum = || {
        let all: Vec<u64> = (0..held as u64 / 8).collect();
        pool().map_or(0, |pool| pool.install(|| all.par_iter().map(|n| n * 2).sum::<u64>()))
    };
    let expected = (held as u64 / 8) * (held as u64 / 8 - 1);
    let within = |budget: u64| {
        let bounds = Bounds::new(paced(5_000), budget).with_threads();
        run_bounded(&bounds, sum)
    };
    // The least that is enough, to a megabyte.
    let enough = (1..64_u64).find(|&megabytes| within(megabytes << 20) == Ok(expected)).unwrap_or(64);
    println!("rayon with {THREADS} threads over {held} bytes: enough with {enough} MiB");
    let max = ((held + THREADS * STACK) >> 20) as u64 + 4;
    tally.check("58 rayon's budget is what it holds", enough <= max, format_args!("{enough} of {max} MiB"));
    let exact = (0..5).map(|_| within(enough << 20)).find(|result| *result != Ok(expected));
    tally.check("58 rayon with the exact budget", exact.is_none(), format_args!("{exact:?}"));
    let over = within(held as u64 - (2 << 20));
    let good = matches!(over, Err(BoundedError::MemoryExceeded(_)));
    tally.check("58 rayon over the budget", good, format_args!("{over:?}"));
    let in_a_thread = run_bounded(&Bounds::new(paced(2_000), 64 << 20).with_threads(), || {
        pool().map_or(0, |pool| {
            pool.install(|| (0..4_u32).into_par_iter().map(|_| std::hint::black_box(vec![1_u8; 512 << 20]).len()).sum())
        })
    });
    let good = matches!(in_a_thread, Err(BoundedError::MemoryExceeded(_)));
    tally.check("58 a worker over the budget", good, format_args!("{in_a_thread:?}"));
    let left = children();
    tally.check("58 no process stays", left == before, format_args!("{left}, before {before}"));
}

/// 42: a frame from another thread of the process besides its own.
fn two_senders(tally: &mut Tally) {
    let result = run_bounded(&Bounds::new(paced(2_000), 64 << 20).with_threads(), || {
        let send = || testing::send_frame(&std::mem::ManuallyDrop::new(testing::bounded_channel()), b'R', 0, "7");
        let sent = std::thread::spawn(send).join();
        i32::from(sent.is_ok_and(|sent| sent))
    });
    let saw = crate::short_bounded(result);
    tally.check("42 a frame of another thread", saw == "V", saw);
}

/// Did both happen? Where the machine is too busy for that, one is enough.
fn both(values: usize, timeouts: usize) -> bool {
    crate::is_slow() || values > 0 && timeouts > 0
}

/// 6: a value or a timeout, never both, neither, or for ever; a value is whole.
fn runs_at_the_deadline(tally: &mut Tally) {
    const RUNS: usize = 1_000;
    let engine = Engine::builder().limits(Limits::default().with_timeout_ms(8)).build().expect("an engine");
    let sandbox = Sandbox::builder().engine(engine).grace(Duration::ZERO).build().expect("a sandbox");
    let (left, values, timeouts) = (AtomicUsize::new(RUNS), AtomicUsize::new(0), AtomicUsize::new(0));
    let others = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    let (outcome, took) = by_template(&sandbox, "near_the_deadline");
                    match short(&outcome).as_str() {
                        _ if took > paced(2_000) => others.lock().expect("a list").push(format!("{took:?}")),
                        "K" if outcome.text() == Some("1") => drop(values.fetch_add(1, Ordering::Relaxed)),
                        "T" if outcome.text().is_none() => drop(timeouts.fetch_add(1, Ordering::Relaxed)),
                        other => others.lock().expect("a list").push(other.to_owned()),
                    }
                }
            });
        }
    });
    let (values, timeouts) = (values.into_inner(), timeouts.into_inner());
    let others = others.into_inner().expect("a list");
    println!("{RUNS} runs at their deadline: {values} values, {timeouts} timeouts");
    let good = others.is_empty() && values + timeouts == RUNS && both(values, timeouts);
    tally.check("6 runs at their deadline", good, format_args!("{values}, {timeouts}, {others:?}"));
}

/// 6, for closures.
fn closures_at_the_deadline(tally: &mut Tally) {
    const EACH: usize = 125;
    let (values, timeouts) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let others = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (values, timeouts, others) = (&values, &timeouts, &others);
            scope.spawn(move || {
                for round in 0..EACH as u64 {
                    let bounds = Bounds::new(Duration::from_millis(12), 1 << 24);
                    let sleep = Duration::from_millis(5 + (thread + round) % 8 * 2);
                    match run_bounded_despite_threads(&bounds, || {
                        std::thread::sleep(sleep);
                        [7_u64; 3]
                    }) {
                        Ok([7, 7, 7]) => drop(values.fetch_add(1, Ordering::Relaxed)),
                        Err(BoundedError::Timeout(12)) => drop(timeouts.fetch_add(1, Ordering::Relaxed)),
                        other => others.lock().expect("a list").push(other),
                    }
                }
            });
        }
    });
    let (values, timeouts) = (values.into_inner(), timeouts.into_inner());
    let others = others.into_inner().expect("a list");
    println!("{} closures at their deadline: {values} values, {timeouts} timeouts", 8 * EACH);
    let good = others.is_empty() && values + timeouts == 8 * EACH && both(values, timeouts);
    tally.check("6 closures at their deadline", good, format_args!("{values}, {timeouts}, {others:?}"));
}

/// 57: refused beside threads; under its longer name it works, whatever they do with the allocator and standard output.
fn beside_threads(tally: &mut Tally) {
    let calls = if long() { 10_000 } else { 500 };
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = Vec::new();
            for n in 1_usize.. {
                held.push(vec![1_u8; n * 7919 % 50_000]);
                if n % 64 == 0 {
                    held.clear();
                }
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        scope.spawn(|| {
            // The lock is what matters; nothing is written.
            while !stop.load(Ordering::Relaxed) {
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(b"").and_then(|()| out.flush());
            }
        });
        let refused = run_bounded(&bounds(), || 1);
        let said = matches!(&refused, Err(BoundedError::ExecutionError(text)) if text.contains("threads"));
        tally.check("57 refused with threads", said, format_args!("{refused:?}"));
        let patient = Bounds::new(paced(10_000), 64 << 20);
        let wrong = |n: &usize| {
            let n = *n;
            let work = || (0..n % 50 + 1).map(|n| vec![n; 100].len()).sum::<usize>();
            run_bounded_despite_threads(&patient, work) != Ok((n % 50 + 1) * 100)
        };
        let wrong = (0..calls).filter(wrong).count();
        stop.store(true, Ordering::Relaxed);
        tally.check("57 beside threads", wrong == 0, format_args!("{wrong} of {calls}"));
    });
    println!("{calls} closures beside threads in {:?}", begun.elapsed());
}
