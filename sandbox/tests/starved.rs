//! The host's main paths on a system that gives ever fewer threads, processes and descriptors: whatever cannot be had is an
//! error of the run, or something else takes its place. Never a signal, a panic, an abort, or a hang.
//!
//! Each path runs in a process of its own, whose limit is lowered one by one. `STARVED_WIDE=1` begins further up.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: it is for Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use lisp_runtime::{Engine, Input, Limits, Outcome, Request, Tool};
    use lisp_sandbox::{Bounds, Managed, Sandbox, run_bounded};
    use rustix::process::{Resource, Rlimit, setrlimit};
    use std::io::Write;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, ExitCode, Stdio};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    /// The argument in front of the path, the resource and the limit.
    const INSIDE: &str = "--starved";
    /// A path that takes longer than this hangs.
    const LONGEST: Duration = Duration::from_secs(30);
    /// How a path that came to its end says so: with an answer, or with a clean error.
    const ANSWERED: i32 = 0;
    const REFUSED: i32 = 3;

    /// What a path came to: whether there was an answer, and what was said.
    type Came = (bool, String);
    type Path = fn() -> Came;

    const PATHS: &[(&str, Path)] = &[
        ("requests", requests),
        ("workers_and_tools", workers_and_tools),
        ("detached", detached),
        ("process_door", process_door),
        ("workers_behind_the_door", workers_behind_the_door),
        ("taken_descriptors", taken_descriptors),
        ("closure", closure),
        ("pipes", pipes),
        ("long_program", long_program),
        #[cfg(feature = "async")]
        ("future", future),
        #[cfg(feature = "async")]
        ("futures_side_by_side", futures_side_by_side),
        #[cfg(feature = "async")]
        ("future_behind_the_door", future_behind_the_door),
    ];

    fn engine() -> Engine {
        Engine::builder()
            .limits(Limits::default().with_timeout_ms(10_000).with_parallel_timeout_ms(10_000))
            .tool("quick", |call| call.get::<i64>("x"))
            .grant(Tool::new("far", |call| call.get::<i64>("x")).detached())
            .build()
            .expect("an engine")
    }

    fn came(outcome: &Outcome) -> Came {
        match outcome.problem() {
            None => (true, outcome.text().unwrap_or_default().to_owned()),
            Some(problem) => (false, problem.error.to_string()),
        }
    }

    /// Requests on several threads of the host's own, as many as there are.
    fn requests() -> Came {
        let engine = engine();
        let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(2).build() else {
            return (false, "no threads for requests".to_owned());
        };
        let program = r#"{"program": "(reduce + (pmap (fn [x] (tool/quick {:x x})) (range 20)))"}"#;
        let answers: Vec<Came> = pool.broadcast(|_| {
            let request = Request::parse(program).expect("a request");
            came(&request.outcome(&engine))
        });
        answers.into_iter().find(|(good, _)| !good).unwrap_or((true, String::new()))
    }

    fn workers_and_tools() -> Came {
        came(&engine().eval("(reduce + (pmap (fn [x] (tool/quick {:x x})) (range 200)))", Input::new()))
    }

    fn detached() -> Came {
        came(&engine().eval("(+ (tool/far {:x 1}) (first (pmap (fn [x] (tool/far {:x x})) (range 20))))", Input::new()))
    }

    fn behind_the_door(program: &str) -> Came {
        match Sandbox::builder().engine(engine()).forkers(2).build() {
            Ok(sandbox) => {
                let all: Vec<Came> = (0..3).map(|_| came(&sandbox.eval(program, &Input::new()))).collect();
                all.into_iter().find(|(good, _)| !good).unwrap_or((true, String::new()))
            }
            Err(error) => (false, error.to_string()),
        }
    }

    fn process_door() -> Came {
        behind_the_door("(do (println 1) (+ 1 (tool/quick {:x 1})))")
    }

    fn workers_behind_the_door() -> Came {
        behind_the_door("(reduce + (pmap (fn [x] (+ (tool/quick {:x x}) (tool/far {:x x}))) (range 20)))")
    }

    /// The host has taken all descriptors: a run waits for them within its deadline, and its error names the limit.
    fn taken_descriptors() -> Came {
        let take_all = || std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect::<Vec<_>>();
        let mut sandbox = match Sandbox::builder().engine(engine()).without_spares().build() {
            Ok(sandbox) => sandbox,
            Err(error) => return (false, error.to_string()),
        };
        let mut session = sandbox.session(Input::new());
        let (good, said) = came(&session.eval("1"));
        if !good {
            return (good, said);
        }
        let mut asked = lisp_runtime::LimitsRequest::default();
        asked.set("timeout_ms", 100).expect("a limit");
        let taken = take_all();
        let late = sandbox.eval("1", &Input::new().limits(asked));
        assert_eq!(late.verdict(), lisp_runtime::Verdict::Timeout, "{late:?}");
        let hint = late.problem().and_then(|problem| problem.error.hint.as_deref());
        assert!(hint.is_some_and(|hint| hint.contains("ulimit -n")), "{late:?}");
        drop(taken);
        let after = came(&sandbox.eval("2", &Input::new()));
        drop(session);
        // Nobody else is in progress, and a new one has no unused sockets.
        sandbox = match Sandbox::builder().engine(engine()).without_spares().build() {
            Ok(sandbox) => sandbox,
            Err(error) => return (false, error.to_string()),
        };
        let taken = take_all();
        let refused = sandbox.eval("1", &Input::new().limits(asked));
        drop(taken);
        assert_eq!(refused.verdict(), lisp_runtime::Verdict::HostFault, "{refused:?}");
        let error = refused.problem().map(|problem| &problem.error);
        let text =
            error.map(|error| format!("{error} {}", error.hint.as_deref().unwrap_or_default())).unwrap_or_default();
        assert!(text.contains("ulimit -n"), "{refused:?}");
        after
    }

    fn closure() -> Came {
        match run_bounded(&Bounds::new(Duration::from_secs(5), 64 << 20), || 42) {
            Ok(42) => (true, String::new()),
            Ok(other) => panic!("{other}"),
            Err(error) => (false, error.to_string()),
        }
    }

    fn pipes() -> Came {
        let sandbox = match Sandbox::builder().engine(engine()).build() {
            Ok(sandbox) => sandbox,
            Err(error) => return (false, error.to_string()),
        };
        let dir = std::env::temp_dir().join(format!("ptc-lisp-starved-{}", std::process::id()));
        let managed = Managed::start(&sandbox, &dir, "(+ 1 2)".to_owned(), Input::new());
        let came = match managed {
            Ok(managed) => {
                std::thread::sleep(Duration::from_millis(20));
                managed.stop();
                (true, managed.wait().map(|outcome| format!("{:?}", outcome.verdict())).unwrap_or_default())
            }
            Err(error) => (false, error.to_string()),
        };
        for name in ["wait", "status"] {
            let _ = std::fs::remove_file(dir.join(name));
        }
        let _ = std::fs::remove_dir(dir);
        came
    }

    /// A program that the thread for deadlines looks after, when there is one.
    fn long_program() -> Came {
        let limits = Limits::default().with_timeout_ms(300).with_loop_iterations(0);
        let engine = Engine::builder().limits(limits).build().expect("an engine");
        let outcome = engine.eval("(loop [i 0] (recur (+ i (count (map inc (range 10000))))))", Input::new());
        assert_eq!(outcome.verdict(), lisp_runtime::Verdict::Timeout, "{outcome:?}");
        came(&outcome)
    }

    /// Drives a future, and looks at it now and then: without the thread for alarms nobody but its tools wakes a run.
    #[cfg(feature = "async")]
    fn block_on<F: Future>(future: F) -> F::Output {
        struct Unpark(std::thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = std::task::Waker::from(std::sync::Arc::new(Unpark(std::thread::current())));
        let mut future = std::pin::pin!(future);
        loop {
            match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
                std::task::Poll::Ready(output) => return output,
                std::task::Poll::Pending => std::thread::park_timeout(Duration::from_millis(20)),
            }
        }
    }

    /// Tools as futures and on tool threads, in workers and by the program.
    #[cfg(feature = "async")]
    const ASYNC: &str = "[(tool/soon {:x 1}) (tool/far {:x 2})
        (reduce + (pmap (fn [x] (+ (tool/quick {:x x}) (tool/soon {:x x}))) (range 20)))]";

    #[cfg(feature = "async")]
    fn async_engine() -> Engine {
        Engine::builder()
            .limits(Limits::default().with_timeout_ms(10_000).with_parallel_timeout_ms(10_000))
            .tool("quick", |call| call.get::<i64>("x"))
            .grant(Tool::new("far", |call| call.get::<i64>("x")).detached())
            .grant(Tool::new_async("soon", |call| async move { call.get::<i64>("x") }))
            .grant(Tool::new_async("never", |_| std::future::pending::<Result<i64, lisp_runtime::ToolError>>()))
            .build()
            .expect("an engine")
    }

    /// Then a run waits for a tool that never returns, until its deadline.
    #[cfg(feature = "async")]
    fn future() -> Came {
        let engine = async_engine();
        let program = engine.compile(ASYNC).expect("a program");
        let done = came(&block_on(engine.run_async(&program, Input::new())));
        let waits = engine.compile("(tool/never {})").expect("a program");
        let mut asked = lisp_runtime::LimitsRequest::default();
        asked.set("timeout_ms", 50).expect("a limit");
        let late = block_on(engine.run_async(&waits, Input::new().limits(asked)));
        assert_eq!(late.verdict(), lisp_runtime::Verdict::Timeout, "{late:?}");
        done
    }

    #[cfg(feature = "async")]
    fn futures_side_by_side() -> Came {
        let engine = async_engine();
        let program = engine.compile(ASYNC).expect("a program");
        let mut runs: Vec<_> = (0..4).map(|_| Box::pin(engine.run_async(&program, Input::new()))).collect();
        let mut all: Vec<Came> = Vec::new();
        block_on(std::future::poll_fn(|context| {
            runs.retain_mut(|run| match run.as_mut().poll(context) {
                std::task::Poll::Ready(outcome) => {
                    all.push(came(&outcome));
                    false
                }
                std::task::Poll::Pending => true,
            });
            if runs.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        }));
        all.into_iter().find(|(good, _)| !good).unwrap_or((true, String::new()))
    }

    #[cfg(feature = "async")]
    fn future_behind_the_door() -> Came {
        let sandbox = match Sandbox::builder().engine(async_engine()).forkers(2).build() {
            Ok(sandbox) => sandbox,
            Err(error) => return (false, error.to_string()),
        };
        let all: Vec<Came> = (0..3).map(|_| came(&block_on(sandbox.eval_async(ASYNC, &Input::new())))).collect();
        all.into_iter().find(|(good, _)| !good).unwrap_or((true, String::new()))
    }

    fn resource(name: &str) -> Resource {
        match name {
            "threads" => Resource::Nproc,
            _ => Resource::Nofile,
        }
    }

    /// One path under one limit.
    fn inside(path: &str, name: &str, limit: u64) -> ExitCode {
        let path = PATHS.iter().find(|row| row.0 == path).expect("a path").1;
        setrlimit(resource(name), Rlimit { current: Some(limit), maximum: Some(limit) }).expect("a limit");
        let (good, said) = path();
        // With no descriptor left the words may go nowhere; the code is what counts.
        let _ = writeln!(std::io::stderr(), "{said}");
        ExitCode::from(if good { ANSWERED } else { REFUSED } as u8)
    }

    /// Waits for a process that may hang.
    fn ended(child: &mut Child) -> Option<std::process::ExitStatus> {
        let until = Instant::now() + LONGEST;
        while Instant::now() < until {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = child.kill();
        let _ = child.wait();
        None
    }

    /// How a path ends under a limit: with an answer, or with a clean error; or else what is wrong.
    fn under(path: &str, name: &str, limit: u64) -> Result<Option<String>, String> {
        let mut command = Command::new("/proc/self/exe");
        command.args([INSIDE, path, name, &limit.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).current_dir("/tmp");
        if rustix::process::geteuid().is_root() {
            // Root may have any number of processes; this user has none besides, not even of the path before, whose processes
            // are counted until somebody has reaped them.
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let nobody = 100_000 + std::process::id() % 100_000 * 1_000 + NEXT.fetch_add(1, Ordering::Relaxed);
            command.uid(nobody).gid(nobody);
        }
        let mut child = command.spawn().map_err(|error| format!("it cannot be started: {error}"))?;
        let said = child.stderr.take();
        let status = ended(&mut child).ok_or("it hangs")?;
        let mut text = String::new();
        if let Some(mut said) = said {
            use std::io::Read;
            let _ = said.read_to_string(&mut text);
        }
        match status.code() {
            _ if text.contains("panicked") => Err(text),
            Some(ANSWERED) => Ok(None),
            Some(REFUSED) => Ok(Some(text.trim().to_owned())),
            Some(code) => Err(format!("code {code}: {text}")),
            None => Err(format!("signal {:?}: {text}", status.signal())),
        }
    }

    pub(crate) fn main() -> ExitCode {
        lisp_sandbox::init();
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if arguments.iter().any(|argument| argument == "--list") {
            return ExitCode::SUCCESS;
        }
        if let [first, path, name, limit] = arguments.as_slice()
            && first == INSIDE
        {
            return inside(path, name, limit.parse().expect("a number"));
        }
        let only = arguments.iter().find(|argument| !argument.starts_with('-'));
        let wide = std::env::var_os("STARVED_WIDE").is_some();
        let ranges = [("threads", if wide { 120 } else { 14 }), ("descriptors", if wide { 80 } else { 26 })];
        let mut failed = Vec::new();
        for (path, _) in PATHS.iter().filter(|row| only.is_none_or(|only| row.0.contains(only.as_str()))) {
            for (name, from) in ranges {
                let (mut answers, mut errors) = (0, std::collections::BTreeMap::<String, u32>::new());
                // Down to what a process has when it begins: itself, or its three streams.
                let least = if name == "threads" { 1 } else { 3 };
                for limit in (least..=from).rev() {
                    match under(path, name, limit) {
                        Ok(None) => answers += 1,
                        Ok(Some(error)) => *errors.entry(error).or_default() += 1,
                        Err(what) => {
                            println!("FAILED {path} with {limit} {name}: {what}");
                            failed.push(format!("{path}, {limit} {name}"));
                        }
                    }
                }
                println!(
                    "{path} with {least} to {from} {name}: {answers} answers, {} clean errors",
                    errors.values().sum::<u32>()
                );
                errors.iter().for_each(|(error, times)| println!("  {times} x {error}"));
            }
        }
        if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
