//! Three questions of hosts, a table each, medians over rounds, by the clock: what a call of a tool takes (W16), how many requests
//! `ptcl batch` answers in a second (W17), and what a large data set takes that many runs read (W18).
//!
//! `cargo build --release -p ptcl && cargo bench -p ptc-lisp-benches --bench calls [-- W16] [--rounds N]`. The variable PTCL names
//! another `ptcl`.

#[cfg(target_os = "linux")]
mod linux {
    use lisp_benches::timing::{Arguments, median};
    use lisp_benches::{PIPELINE, orders, resident_kilobytes};
    use lisp_runtime::{Engine, Input, Limits, Outcome, Program, Recording, Tool, ToolCall};
    use lisp_sandbox::Sandbox;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    /// With this variable the program does nothing but measure a data set: in a process of its own, where no memory has been given
    /// back before.
    const LARGE: &str = "LISP_BENCHES_LARGE";
    const CALLS: usize = 200;
    const CALLER: &str = "(reduce + (map (fn [i] (tool/price {:base i})) (range 200)))";
    /// Runs with calls in a round, the first tenth of which is not measured.
    const RUNS: usize = 200;
    const REQUESTS: usize = 5_000;
    const LARGE_BYTES: usize = 64_000_000;
    const READERS: usize = 1_000;
    /// Sums over a tenth of the orders, of which it looks at every item.
    const READER: &str = "
        (let [tenth (quot (count data/orders) 10)
              from (* tenth data/part)]
          (reduce (fn [sum order] (+ sum (reduce + (map :qty (:items order)))))
                  0
                  (subvec data/orders from (+ from tenth))))";

    pub(crate) fn main() {
        lisp_sandbox::init();
        if std::env::var_os(LARGE).is_some() {
            let [import, memory, run] = large();
            println!("{import} {memory} {run}");
            return;
        }
        let arguments = Arguments::read();
        if arguments.wants("W16") {
            table(
                "W16: a call of a tool, of 200 in a run (us)",
                &["a closure", "an async tool", "with process isolation", "a closure, recorded: what is added"],
                &["1", "3", "25", "3"],
                measured(arguments.rounds, Callers::new().turns()),
            );
        }
        if arguments.wants("W17") {
            match Batch::new() {
                Ok(batch) => table(
                    "W17: `ptcl batch`, the pipeline over 100 orders",
                    &["requests a second", "megabytes of requests a second"],
                    &["30000", ""],
                    measured(arguments.rounds, || batch.rates()),
                ),
                Err(missing) => eprintln!("W17 is left out: {missing}"),
            }
        }
        if arguments.wants("W18") {
            table(
                "W18: a data set of 64 MB, and 1,000 runs that read a tenth of it",
                &["import (MB/s)", "memory after it, in sizes of the text", "a run (us)"],
                &["400", "2.5", ""],
                measured(arguments.rounds, large_in_a_process),
            );
        }
    }

    /// The medians over the rounds.
    fn measured<const N: usize>(rounds: usize, mut turn: impl FnMut() -> [f64; N]) -> [f64; N] {
        let rounds: Vec<[f64; N]> = (0..rounds).map(|_| turn()).collect();
        std::array::from_fn(|at| median(rounds.iter().map(|round| round[at]).collect()))
    }

    fn table<const N: usize>(title: &str, rows: &[&str; N], targets: &[&str; N], values: [f64; N]) {
        println!("\n| {title} | | target |\n|---|---|---|");
        for ((row, target), value) in rows.iter().zip(targets).zip(values) {
            let digits = if value < 100.0 { 2 } else { 0 };
            println!("| {row} | {value:.digits$} | {target} |");
        }
    }

    fn succeeded(outcome: &Outcome) {
        assert!(outcome.is_success(), "{:?}", outcome.problem());
    }

    /// What calls tools: engines of this process, and one behind the process mode.
    struct Callers {
        engine: Engine,
        program: Program,
        asynchronous: Engine,
        executor: tokio::runtime::Runtime,
        sandbox: Sandbox,
    }

    impl Callers {
        fn new() -> Self {
            let with = |tool: Tool| Engine::builder().grant(tool).build().expect("an engine");
            let closure = || Tool::new("price", |call| call.get::<f64>("base"));
            // Its future is ready at once: the time is that of the call, not of an executor.
            let asynchronous = Tool::new_async("price", |call: ToolCall| async move { call.get::<f64>("base") });
            let engine = with(closure());
            Callers {
                program: engine.compile(CALLER).expect("a program"),
                engine,
                asynchronous: with(asynchronous),
                executor: tokio::runtime::Builder::new_current_thread().build().expect("an executor"),
                sandbox: Sandbox::builder().engine(with(closure())).forkers(1).build().expect("a sandbox"),
            }
        }

        /// A round: microseconds a call.
        fn turns(self) -> impl FnMut() -> [f64; 4] {
            let program = self.asynchronous.compile(CALLER).expect("a program");
            move || {
                let closure = a_call(|| succeeded(&self.engine.run(&self.program, Input::new())));
                let run = || self.executor.block_on(self.asynchronous.run_async(&program, Input::new()));
                let asynchronous = a_call(|| succeeded(&run()));
                let mode = a_call(|| succeeded(&self.sandbox.eval(CALLER, &Input::new())));
                let recorded = a_call(|| {
                    let recording = Recording::new();
                    succeeded(&self.engine.run(&self.program, Input::new().record(&recording)));
                });
                [closure, asynchronous, mode, recorded - closure]
            }
        }
    }

    /// The median of the times of runs, for one of their calls.
    fn a_call(run: impl Fn()) -> f64 {
        let mut times: Vec<f64> = (0..RUNS).map(|_| microseconds(&run)).collect();
        median(times.split_off(RUNS / 10)) / CALLS as f64
    }

    fn microseconds(work: impl FnOnce()) -> f64 {
        let begun = Instant::now();
        work();
        begun.elapsed().as_secs_f64() * 1e6
    }

    /// Requests in a file, each with its program and its orders, as a host sends them.
    struct Batch {
        ptcl: PathBuf,
        requests: PathBuf,
        bytes: usize,
    }

    impl Batch {
        fn new() -> Result<Self, String> {
            let here = std::env::current_exe().map_err(|error| error.to_string())?;
            let built = here.ancestors().nth(2).map(|release| release.join("ptcl")).unwrap_or_default();
            let ptcl = std::env::var_os("PTCL").map_or(built, PathBuf::from);
            if !ptcl.is_file() {
                return Err(format!("no {}: cargo build --release -p ptcl", ptcl.display()));
            }
            let program = serde_json::to_string(PIPELINE).map_err(|error| error.to_string())?;
            let request = format!("{{\"program\":{program},\"data\":{{\"orders\":{}}}}}\n", orders(100));
            let requests = std::env::temp_dir().join(format!("lisp-benches-{}.jsonl", std::process::id()));
            let batch = Batch { ptcl, requests, bytes: request.len() * REQUESTS };
            batch.write(&request)?;
            let answer = batch.command().stdout(Stdio::piped()).output().map_err(|error| error.to_string())?;
            let answer = String::from_utf8_lossy(&answer.stdout);
            if !answer.contains("\"verdict\":\"ok\"") || !answer.contains("revenue") {
                return Err(format!("its answer is {answer}"));
            }
            batch.write(&request.repeat(REQUESTS))?;
            Ok(batch)
        }

        fn write(&self, requests: &str) -> Result<(), String> {
            std::fs::write(&self.requests, requests).map_err(|error| error.to_string())
        }

        fn command(&self) -> Command {
            let mut command = Command::new(&self.ptcl);
            let requests = std::fs::File::open(&self.requests).expect("the requests");
            command.arg("batch").stdin(requests).stdout(Stdio::null());
            command
        }

        /// A round.
        fn rates(&self) -> [f64; 2] {
            let mut command = self.command();
            let time = microseconds(|| assert!(command.status().expect("ptcl").success(), "ptcl batch failed"));
            [REQUESTS as f64 / time * 1e6, self.bytes as f64 / time]
        }
    }

    impl Drop for Batch {
        fn drop(&mut self) {
            // What cannot be removed is the system's to clear away.
            let _ = std::fs::remove_file(&self.requests);
        }
    }

    fn large_in_a_process() -> [f64; 3] {
        let program = std::env::current_exe().expect("this program");
        let output = Command::new(program).env(LARGE, "1").stderr(Stdio::inherit()).output().expect("a process");
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        numbers.try_into().expect("three numbers")
    }

    /// Megabytes a second of the import, memory after it in sizes of the text, and microseconds of a run.
    fn large() -> [f64; 3] {
        let limits = Limits::default().with_timeout_ms(60_000).with_setup_heap_bytes(0);
        let engine = Engine::builder().limits(limits).build().expect("an engine");
        let program = engine.compile(READER).expect("a program");
        let before = resident_kilobytes();
        let text = large_text();
        let bytes = text.len() as f64;
        let begun = Instant::now();
        let set = engine.import("orders", text).expect("a data set");
        let import = begun.elapsed().as_secs_f64() * 1e6;
        let memory = (resident_kilobytes() - before) * 1024.0 / bytes;
        let run = |part: usize| {
            let input = Input::new().data_set(&set).data("part", &(part % 10));
            microseconds(|| succeeded(&engine.run(&program, input)))
        };
        [bytes / import, memory, median((0..READERS).map(run).collect())]
    }

    fn large_text() -> String {
        // An order takes some 165 bytes; the few that are too many or missing do not matter.
        orders(LARGE_BYTES / 165)
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::main();
    #[cfg(not(target_os = "linux"))]
    println!("the process layer is for Linux");
}
