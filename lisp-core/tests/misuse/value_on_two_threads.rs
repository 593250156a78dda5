//! A vector on two threads: its end would be written by both.

use lisp_core::vm::{Grant, Machine, Settings};

fn main() {
    let mut machine = Machine::new(Vec::<std::sync::Arc<Grant>>::new(), Settings::default());
    machine.with_result(|_, value| {
        std::thread::scope(|scope| {
            scope.spawn(move || println!("{}", value.type_name()));
        });
    });
}
