//! A value of one heap in the grant of another.

use lisp_core::vm::Grant;

fn main() {
    let _ = Grant::build(1 << 20, |other, _| {
        let text = other.str("x")?;
        let _ = Grant::build(1 << 20, |_, grant| {
            grant.data("x", text);
            Ok(())
        });
        Ok(())
    });
}
