//! What the crate promises of memory: programs that would break it do not compile.

use lisp_core::heap::{Heap, Value};

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

/// Does not compile when the type can be sent to, or shared with, another thread: then two implementations fit.
macro_rules! stays_on_its_thread {
    ($type:ty) => {
        const _: fn() = || {
            trait Ambiguous<Marker> {
                fn stays() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Sent;
            impl<T: ?Sized + Send> Ambiguous<Sent> for T {}
            struct Shared;
            impl<T: ?Sized + Sync> Ambiguous<Shared> for T {}
            <$type as Ambiguous<_>>::stays();
        };
    };
}
stays_on_its_thread!(Value<'static>);
stays_on_its_thread!(&'static Heap);
