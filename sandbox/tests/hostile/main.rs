//! What hostile native code can try, in the place of a program; one table of what must come of it.
//!
//! ```sh
//! cargo test -p ptc-lisp-sandbox --test hostile              # as this user, and as nobody if this is root
//! cargo test -p ptc-lisp-sandbox --test hostile -- --table   # and each row with its verdict and its time
//! cargo test -p ptc-lisp-sandbox --test hostile -- --long    # and the long counts: 10,000 bounded closures, for example
//! cargo test -p ptc-lisp-sandbox --test hostile -- --mutate  # which rows turn red without each protection
//! ```
//!
//! It has a `main` of its own because the harness's threads would disturb: a process may be forked only while it has one.

#[cfg(target_os = "linux")]
mod arguments;
#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod deadline;
#[cfg(target_os = "linux")]
mod domains;
#[cfg(target_os = "linux")]
mod forced;
#[cfg(target_os = "linux")]
mod harness;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod payloads;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod scenes;

#[cfg(target_os = "linux")]
pub(crate) use harness::*;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    harness::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the process layer is for Linux; `--test portable` has what there is here");
}
