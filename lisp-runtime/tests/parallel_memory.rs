//! Workers read what their parent holds where it is: measured by the kernel, in a process of its own.

use lisp_runtime::threads::Pool;
use lisp_runtime::{Engine, Input, Limits};

/// The most memory this process had resident since the count was begun anew, in bytes.
fn resident_peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()? << 10)
}

const PARENT: u64 = 50_000_000;
const WORKER: u64 = 2_000_000;
const WORKERS: u64 = 8;

/// The parent builds a structure of 50 MB; then eight workers at once walk all of it, and each fills its own budget.
#[test]
fn workers_over_a_large_structure_take_their_own_budgets_and_no_more() {
    if resident_peak().is_none() || std::fs::write("/proc/self/clear_refs", "5").is_err() {
        println!("skipped: the kernel does not say how much memory a process has resident");
        return;
    }
    let limits = Limits::default()
        .with_timeout_ms(60_000)
        .with_heap_bytes(PARENT + 2_000_000)
        .with_worker_heap_bytes(WORKER)
        .with_parallel_workers(WORKERS)
        .with_parallel_window(WORKERS)
        .with_parallel_timeout_ms(50_000);
    let engine = Engine::builder().limits(limits).pool(Pool::new(WORKERS as usize).unwrap()).build().unwrap();
    let build = "let [big (map (fn [i] [i (+ i 1) (* i 2)]) (vec (range 400000)))]";
    let before = resident_peak().unwrap();
    let alone = engine.eval(&format!("({build} (reduce (fn [n v] (+ n (count v))) 0 big))"), Input::new());
    assert_eq!(alone.value::<i64>().unwrap(), 1_200_000);
    let parent = resident_peak().unwrap() - before;
    assert!(alone.usage.heap_peak_bytes > PARENT * 8 / 10, "{:?}", alone.usage);
    let source = format!(
        "({build}
          (pmap (fn [w] (let [n (reduce (fn [n v] (+ n (count v))) 0 big)
                             own (vec (range 80000))]
                         (+ n (count own))))
               (range 8)))"
    );
    let together = engine.eval(&source, Input::new());
    assert_eq!(together.value::<Vec<i64>>().unwrap(), [1_280_000; 8], "{:?}", together.problem());
    assert_eq!(together.usage.workers_peak, WORKERS);
    let more = resident_peak().unwrap() - before;
    let allowed = parent + (WORKERS * WORKER) as usize + (8 << 20);
    assert!(more <= allowed, "{more} bytes, {allowed} are allowed, of which the parent took {parent}");
}
