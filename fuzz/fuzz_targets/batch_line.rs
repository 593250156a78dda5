//! Any line of a batch gets an answer, and the answer can be read back. A line that serde takes for a request is that request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lisp_runtime::request::answer_bytes;
use lisp_runtime::{Answer, Engine, Limits, Request, Verdict};
use std::sync::LazyLock;

/// A ceiling, so that no line can ask for more time than the fuzzer has.
static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let limits = Limits::default().with_timeout_ms(500).with_heap_bytes(1 << 20).with_fuel(200_000);
    Engine::builder().limits(limits).build().expect("an engine")
});

fuzz_target!(|line: &[u8]| {
    let answer = answer_bytes(&ENGINE, line);
    assert_ne!(answer.verdict, Verdict::HostFault);
    let json = answer.to_json();
    assert!(!json.contains('\n'));
    let read: Answer = serde_json::from_str(&json).expect("an answer can be read");
    assert_eq!(read.verdict, answer.verdict);
    let Ok(text) = std::str::from_utf8(line) else { return };
    // An array of the fields' values is one for serde.
    if let (Ok(strict), false) = (serde_json::from_str::<Request<'_>>(text), text.trim_start().starts_with('[')) {
        let parsed = Request::parse(text).expect("a request");
        assert_eq!(format!("{strict:?}"), format!("{parsed:?}"));
    }
});
