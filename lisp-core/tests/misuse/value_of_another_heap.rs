//! A value of one heap in the grant of another.

use lisp_core::heap::Heap;
use lisp_core::vm::Grant;

fn main() {
    let other = Heap::new(1, 1 << 20);
    let text = other.str("x").unwrap();
    let _ = Grant::build(1 << 20, |_, grant| {
        grant.data("x", text);
        Ok(())
    });
}
