//! Which standard streams were open when the process began. Rust's runtime opens `/dev/null` in place of those that were not, before
//! `main`; nothing tells such a one from a `/dev/null` that the caller gave on purpose, as Python's `subprocess.DEVNULL`.

use std::sync::atomic::{AtomicBool, Ordering};

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: asks for the flags of a descriptor, whether there is one or not; it touches no memory.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    OUTPUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the loader calls what stands in this section before `main`, on the only thread; `look` calls nothing of the runtime, which is
// not set up then, and does not unwind.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

/// Returns whether standard output was closed when the process began: what is written to it now is lost.
pub fn output_was_closed() -> bool {
    OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}
