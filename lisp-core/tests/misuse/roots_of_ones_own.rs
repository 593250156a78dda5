//! Roots that hide values from the collector: the arena would be freed beneath them.

use lisp_core::heap::{Collector, Heap, Store, Trace, Value};

struct Hidden;

impl Trace for Hidden {
    type In<'h> = Vec<Value<'h>>;

    fn trace(_: &mut Vec<Value<'static>>, _: &mut Collector, _: usize, _: usize) -> Option<usize> {
        None
    }
}

fn main() {
    let mut store = Store::<Hidden>::new(Heap::new(1, usize::MAX), vec![]);
    store.collect();
}
