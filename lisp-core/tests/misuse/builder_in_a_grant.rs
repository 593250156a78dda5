//! A builder among frozen values: it could take values of an arena that goes before it.

use lisp_core::heap::Value;
use lisp_core::vm::Grant;

fn main() {
    let _ = Grant::build(1 << 20, |h, grant| {
        grant.data("builder", Value::VecBuilder(h.vec_builder(8)?));
        Ok(())
    });
}
