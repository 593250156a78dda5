//! Runs behind the process mode. It has a `main` of its own, because the program is also the template.

#[cfg(target_os = "linux")]
mod mode {
    use criterion::{Criterion, Throughput};
    use lisp_runtime::{Engine, Input};
    use lisp_sandbox::Sandbox;

    fn process(c: &mut Criterion) {
        let mut group = c.benchmark_group("process");
        let engine = Engine::builder().tool("one", |_| Ok(1)).build().expect("an engine");
        let sandbox = Sandbox::builder().engine(engine).forkers(2).build().expect("a sandbox");
        let run = |source: &str| {
            let outcome = sandbox.eval(source, &Input::new());
            assert!(outcome.is_success(), "{:?}", outcome.problem());
        };
        group.bench_function("an empty program", |b| b.iter(|| run("nil")));
        group.bench_function("a tool call", |b| b.iter(|| run("(tool/one {})")));
        let mut session = sandbox.session(Input::new());
        group.bench_function("a turn of a session", |b| b.iter(|| session.eval("nil")));
        const AT_ONCE: u64 = 64;
        group.throughput(Throughput::Elements(AT_ONCE));
        group.bench_function("64 empty programs from 4 threads, 2 forkers", |b| {
            b.iter(|| {
                std::thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| (0..AT_ONCE / 4).for_each(|_| run("nil")));
                    }
                });
            });
        });
        group.finish();
    }

    pub(crate) fn main() {
        lisp_sandbox::init();
        let mut criterion = Criterion::default().configure_from_args();
        process(&mut criterion);
        criterion.final_summary();
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    mode::main();
    #[cfg(not(target_os = "linux"))]
    println!("the process layer is for Linux");
}
