//! A heap that lives as long as the process, whose values fit every grant.

use lisp_core::heap::Heap;

fn main() {
    let _: &'static Heap = Box::leak(Box::new(Heap::new(1, 1 << 20)));
}
