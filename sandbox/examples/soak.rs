//! Mixed runs, and what they leave behind: `soak [RUNS] [DOMAINS]`, 100,000 without a number, each in a process of its own
//! without a number of domains; with one, every other run is in one of so many.
//!
//! One in ten is past its deadline, one over its memory. It fails when descriptors, processes, memory of the host or
//! memory cgroups are more at the end than after the first tenth, and when at any moment there were more threads, or more
//! memory was resident, than its ceilings.

#[cfg(target_os = "linux")]
mod linux {
    use lisp_runtime::{Engine, Input, Limits, Request, Verdict};
    use lisp_sandbox::Sandbox;
    use std::time::Instant;

    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
    }

    /// A figure of this process's status.
    fn figure(name: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
        line.trim().split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
    }

    /// Bytes resident in this process.
    fn resident() -> u64 {
        figure("VmRSS:") * 1024
    }

    /// The most threads and resident bytes that were seen while `work` was at work.
    fn sampled<T>(work: impl FnOnce() -> T) -> (T, u64, u64) {
        use std::sync::atomic::{AtomicBool, Ordering};
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                let (mut threads, mut bytes) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    (threads, bytes) = (figure("Threads:").max(threads), resident().max(bytes));
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                (threads, bytes)
            });
            let value = work();
            done.store(true, Ordering::Relaxed);
            let (threads, bytes) = sampler.join().unwrap_or_default();
            (value, threads, bytes)
        })
    }

    /// Templates and runs, those that nobody has reaped too.
    fn processes() -> usize {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ours = all.filter(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let state = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            line.windows(19).any(|part| part == b"--ptc-lisp-template") || state.contains("(exe) Z")
        });
        ours.count()
    }

    pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
        lisp_sandbox::init();
        let runs: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100_000);
        let domains: usize = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(0);
        let engine = Engine::builder()
            .limits(Limits::default().with_timeout_ms(3_000))
            .tool("add", |call| Ok(call.get::<i64>("a")? + 1))
            .build()?;
        let sandbox = Sandbox::builder().engine(engine).forkers(2).build()?;
        let programs = [
            r#"{"program": "(+ 1 2)"}"#,
            r#"{"program": "(println 1) (tool/add {:a 1})"}"#,
            r#"{"program": "(vec (range 1e9))"}"#,
            r#"{"program": "(inc nil"}"#,
            r#"{"program": "(reduce + (map inc (range 1000)))"}"#,
            r#"{"program": "(tool/none {})"}"#,
            r#"{"program": "(group-by even? (range 500))", "setup": ["(def a 1)"]}"#,
            r#"{"program": "(reduce + (pmap (fn [x] (tool/add {:a x})) (range 20)))"}"#,
            r#"{"program": "(map (fn [x] (str x)) (range 200))"}"#,
            r#"{"program": "(loop [] (recur))", "limits": {"timeout_ms": 1, "loop_iterations": 1000000000}}"#,
        ];
        let begun = Instant::now();
        let some = |from: usize, to: usize| {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let sandbox = &sandbox;
                    scope.spawn(move || {
                        for run in (from..to).skip(thread).step_by(4) {
                            match Request::parse(programs[run % programs.len()]) {
                                Ok(request) if domains > 0 && run / 10 % 2 == 0 => {
                                    let domain = sandbox.domain(&(run / 10 % domains).to_string());
                                    let outcome = domain.map(|domain| domain.run(&request));
                                    assert!(outcome.is_ok_and(|outcome| outcome.verdict() != Verdict::HostFault));
                                }
                                Ok(request) => drop(sandbox.run(&request)),
                                Err(error) => eprintln!("{error}"),
                            }
                        }
                    });
                }
            });
            assert!(sandbox.eval("(+ 1 2)", &Input::new()).is_success());
            (descriptors(), processes(), resident(), lisp_sandbox::testing::groups().len())
        };
        let first = some(0, runs / 10);
        let (last, threads, bytes) = sampled(|| some(runs / 10, runs));
        println!("at most {threads} threads and {bytes} resident bytes");
        // This one, the sampler, four that run, and those for tools; the budget of the host's heap is what four runs hold of
        // prints, ledger and replies.
        const THREADS: u64 = 6 + 64;
        const GROWTH: u64 = 16 << 20;
        assert!(threads <= THREADS && bytes <= first.2 + GROWTH, "{threads} threads, {bytes} bytes after {}", first.2);
        println!("{runs} runs in {:?}", begun.elapsed());
        println!(
            "descriptors, processes, resident bytes, memory cgroups: {first:?} after a tenth, {last:?} at the end"
        );
        // A pair of sockets or two more or less is there at any moment, and a child that waits; a leak would be of thousands.
        const LANES: usize = 16;
        const CHILDREN: usize = 2;
        // A domain has up to four processes, each with a pair of sockets.
        let children = CHILDREN + 4 * domains;
        assert!(
            last.0 <= first.0 + LANES + 8 * domains
                && last.1 <= first.1 + children
                && last.2 <= first.2 + (2 << 20)
                && last.3 <= first.3,
            "something stays behind"
        );
        drop(sandbox);
        assert_eq!(lisp_sandbox::testing::groups().len(), 0, "a memory cgroup stays behind");
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the process layer is for Linux");
}
