//! Any text reads or fails with a place in it; what a prompt asks about it agrees.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lisp_core::syntax::{Completeness, ReadLimits, completeness, read};

fuzz_target!(|text: &str| {
    let limits = ReadLimits { source_bytes: 1 << 16, names: 100, ..ReadLimits::default() };
    match read(text, &limits) {
        Ok(source) => {
            for form in &source.forms {
                assert!(text.get(form.span.start as usize..form.span.end as usize).is_some());
            }
        }
        Err(error) => {
            let span = error.span.expect("an error of the reader has a place");
            assert!(text.get(span.start as usize..(span.end as usize).min(text.len())).is_some());
        }
    }
    if let (Completeness::Complete, Err(error)) = (completeness(text), read(text, &ReadLimits::default())) {
        panic!("complete, but {error}");
    }
});
