//! How long an empty run takes, and how many there are in a second: `latency [RUNS] [FORKERS] [THREADS]`.

#[cfg(target_os = "linux")]
mod linux {
    use lisp_runtime::Input;
    use lisp_sandbox::Sandbox;
    use std::time::Instant;

    pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
        lisp_sandbox::init();
        let argument = |at: usize, or: usize| std::env::args().nth(at).and_then(|n| n.parse().ok()).unwrap_or(or);
        let (runs, forkers, threads) = (argument(1, 2_000), argument(2, 1), argument(3, 1));
        let mut builder = Sandbox::builder().forkers(forkers);
        if std::env::args().nth(4).is_some() {
            builder = builder.without_namespaces();
        }
        let begun = Instant::now();
        let sandbox = builder.build()?;
        println!("template ready after {:?}", begun.elapsed());
        for (layer, state) in &sandbox.layers().0 {
            println!("  {layer}: {state:?}");
        }
        let outcome = sandbox.eval("nil", &Input::new());
        println!("{:?} {:?}", outcome.problem(), outcome.usage);
        let begun = Instant::now();
        let both: Vec<(f64, f64)> = std::thread::scope(|scope| {
            let work = || {
                let run = |_| {
                    let begun = Instant::now();
                    let outcome = sandbox.eval("nil", &Input::new());
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
        let (mut times, mut cpu): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        times.sort_by(f64::total_cmp);
        cpu.sort_by(f64::total_cmp);
        let at = |part: f64| ((times.len() - 1) as f64 * part) as usize;
        let (half, most, last) = (times[at(0.5)], times[at(0.99)], times[at(1.0)]);
        println!(
            "p10 {:.0} us, p50 {half:.0} us, p99 {most:.0} us, most {last:.0} us; {second:.0} runs/s",
            times[at(0.1)]
        );
        println!("processor time of a run's process: p10 {:.0} us, p50 {:.0} us", cpu[at(0.1)], cpu[at(0.5)]);
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
