//! A value that outlives the use of the machine in which it was seen.

use lisp_core::vm::{Grant, Machine, Settings};

fn main() {
    let mut machine = Machine::new(Vec::<std::sync::Arc<Grant>>::new(), Settings::default());
    let mut kept = None;
    machine.with_result(|_, value| kept = Some(value));
    drop(machine);
    println!("{:?}", kept.and_then(|value| value.as_str()));
}
