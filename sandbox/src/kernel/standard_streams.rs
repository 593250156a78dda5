//! Which standard streams were open when the process started. Before `main`, Rust's runtime opens `/dev/null` in place
//! of those that were closed. These cannot be told from a `/dev/null` passed on purpose, such as Python's
//! `subprocess.DEVNULL`.

use std::sync::atomic::{AtomicBool, Ordering};

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: reads the flags of a descriptor, whether or not it is open; touches no memory.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    OUTPUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the loader calls the functions of this section before `main`, on the only thread. `look` does not use the
// runtime, which is not set up yet, and does not unwind.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look;

/// Returns whether standard output was closed when the process started. What is written to it now is lost.
pub fn output_was_closed() -> bool {
    OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}
