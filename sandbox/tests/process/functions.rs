//! Named functions in processes of their own.

use lisp_sandbox::{BoundedError, Bounds, Function, Sandbox, run_function, run_function_measured};
use std::time::Duration;

pub(crate) fn all() -> Vec<Function> {
    vec![
        Function::new("words", |text: String| text.split(' ').count()),
        Function::new("floats", |given: Vec<f64>| given),
        Function::new("endless", |go_on: bool| while std::hint::black_box(go_on) {}),
        Function::new("fill", |bytes: usize| vec![7_u8; bytes].iter().map(|&byte| usize::from(byte)).sum::<usize>()),
        Function::new("panic", |text: String| assert!(text.is_empty(), "{text}")),
        Function::new("read", |path: String| std::fs::read(path).is_ok()),
    ]
}

fn bounds() -> Bounds {
    Bounds::new(Duration::from_secs(10), 64 << 20)
}

/// From a host with threads, side by side, with arguments and results of every size.
pub(crate) fn are_called(_: &Sandbox) {
    std::thread::scope(|scope| {
        for n in 1..5_usize {
            scope.spawn(move || {
                let text = vec!["word"; n * 100_000].join(" ");
                assert_eq!(run_function(&bounds(), "words", &text), Ok(n * 100_000));
            });
        }
    });
    let given = [f64::NAN, f64::INFINITY, -0.0, 1e300];
    let floats: Vec<f64> = run_function(&bounds(), "floats", &given.to_vec()).unwrap();
    assert_eq!(floats.map_bits(), given.to_vec().map_bits());
    let (_, used) = run_function_measured::<_, usize>(&bounds(), "fill", &(8_usize << 20)).unwrap();
    assert!(used.rss_peak_bytes > 8 << 20, "{used:?}");
}

trait MapBits {
    fn map_bits(&self) -> Vec<u64>;
}

impl MapBits for Vec<f64> {
    fn map_bits(&self) -> Vec<u64> {
        self.iter().map(|float| float.to_bits()).collect()
    }
}

/// Their bounds hold, and what goes wrong has its own words.
pub(crate) fn are_bounded(_: &Sandbox) {
    let endless = run_function::<_, ()>(&Bounds::new(Duration::from_millis(200), 64 << 20), "endless", &true);
    assert_eq!(endless, Err(BoundedError::Timeout(200)));
    let filled = run_function::<_, usize>(&Bounds::default(), "fill", &(256_usize << 20));
    assert_eq!(filled, Err(BoundedError::MemoryExceeded(10_000_000)));
    assert_eq!(run_function(&bounds(), "read", &"/etc/passwd"), Ok(false));
    let error = |result: Result<(), BoundedError>| result.unwrap_err().to_string();
    assert_eq!(error(run_function(&bounds(), "panic", &"at the disco")), "panicked: at the disco");
    assert!(
        error(run_function(&bounds(), "nope", &1))
            .starts_with("no function \"nope\" was registered; there are [\"words\"")
    );
    let long: Result<Vec<f64>, _> = run_function(&bounds().result_bytes(1_000), "floats", &vec![1.5; 10_000]);
    assert!(long.unwrap_err().to_string().contains("more than 1000 bytes"), "a result beyond its limit");
    assert!(error(run_function(&bounds(), "words", &"one two")).starts_with("the result cannot be read"));
}
