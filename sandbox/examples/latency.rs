//! How long an empty run takes, how many there are in a second, and how late a run that does not end is killed:
//! `latency [RUNS] [FORKERS] [THREADS] [OPTION]...`, where an option is `without_namespaces`, `without_spares`, `pause`
//! for a client that asks every other millisecond, `calls` for runs that call a tool 200 times, `data` for runs that share a data set of some 25 MB, or `domain` for runs that share
//! processes.

#[cfg(target_os = "linux")]
mod linux {
    use lisp_runtime::{Engine, Input, Limits, Outcome, Tool};
    use lisp_sandbox::{Sandbox, testing};
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    fn spin(_: &OwnedFd) -> i32 {
        loop {
            std::hint::spin_loop();
        }
    }

    struct Sorted(Vec<f64>);

    impl Sorted {
        fn new(mut values: Vec<f64>) -> Self {
            values.sort_by(f64::total_cmp);
            Sorted(values)
        }

        fn at(&self, part: f64) -> f64 {
            self.0.get((self.0.len().saturating_sub(1) as f64 * part) as usize).copied().unwrap_or(f64::NAN)
        }

        fn line(&self) -> String {
            let [low, half, max, last] = [0.1, 0.5, 0.99, 1.0].map(|part| self.at(part));
            format!("p10 {low:.0} us, p50 {half:.0} us, p99 {max:.0} us, most {last:.0} us")
        }
    }

    pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
        testing::init(&[("spin", spin)]);
        let argument = |at: usize, or: usize| std::env::args().nth(at).and_then(|n| n.parse().ok()).unwrap_or(or);
        let (runs, forkers, threads) = (argument(1, 2_000), argument(2, 1), argument(3, 1));
        let options: Vec<String> = std::env::args().skip(4).collect();
        let has = |option: &str| options.iter().any(|given| given == option);
        let mut builder = Sandbox::builder().forkers(forkers);
        let mut input = Input::new();
        let mut source = "nil";
        if has("calls") {
            builder = builder.engine(Engine::builder().grant(Tool::echo("echo")).build()?);
            source = "(run! (fn [i] (tool/echo {:base i})) (range 200))";
        }
        if has("data") {
            let row = |i: usize| format!(r#"{{"id": {i}, "name": "row {i}", "total": {i}.5, "tags": ["a", "b"]}}"#);
            let rows = (0..90_000).map(row).collect::<Vec<_>>().join(",");
            let set = Engine::default().import("rows", format!("[{rows}]")).map_err(|problem| problem.error)?;
            println!("a data set of {} bytes", set.bytes());
            (builder, input) = (builder.data_set(&set), input.data_set(&set));
        }
        if has("without_namespaces") {
            builder = builder.without_namespaces();
        }
        if has("without_spares") {
            builder = builder.without_spares();
        }
        let begun = Instant::now();
        let sandbox = builder.build()?;
        println!("template ready after {:?}", begun.elapsed());
        for (layer, state) in &sandbox.layers().0 {
            println!("  {layer}: {state:?}");
        }
        let outcome = sandbox.eval("nil", &input);
        println!("{:?} {:?}", outcome.problem(), outcome.usage);
        let domain = if has("domain") { Some(sandbox.domain("latency")?) } else { None };
        let run = || domain.as_ref().map_or_else(|| sandbox.eval(source, &input), |domain| domain.eval(source, &input));
        empty_runs(&run, runs, threads, has("pause"));
        late_kills()
    }

    fn empty_runs(one: &(impl Fn() -> Outcome + Sync), runs: usize, threads: usize, pause: bool) {
        let begun = Instant::now();
        let both: Vec<(f64, f64)> = std::thread::scope(|scope| {
            let work = || {
                let run = |_| {
                    if pause {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    let begun = Instant::now();
                    let outcome = one();
                    assert!(outcome.is_success(), "{:?}", outcome.problem());
                    let took = begun.elapsed().as_secs_f64() * 1e6;
                    (took, outcome.usage.cpu_us.unwrap_or(0) as f64)
                };
                (0..runs / threads).map(run).collect::<Vec<_>>()
            };
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        });
        let second = both.len() as f64 / begun.elapsed().as_secs_f64();
        let (times, cpu): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        println!("{}; {second:.0} runs/s", Sorted::new(times).line());
        println!("processor time of a run's process: {}", Sorted::new(cpu).line());
    }

    /// From the deadline to the signal that kills, as the host measures it itself.
    fn late_kills() -> Result<(), Box<dyn std::error::Error>> {
        let engine = Engine::builder().limits(Limits::default().with_timeout_ms(5)).build()?;
        let sandbox = Sandbox::builder().engine(engine).grace(Duration::ZERO).build()?;
        let late = (0..500).filter_map(|_| sandbox.run_payload("spin", &Input::new(), 0).1);
        let late = Sorted::new(late.map(|late| late.as_secs_f64() * 1e6).collect());
        println!("deadline to SIGKILL, {} runs: {}", late.0.len(), late.line());
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
