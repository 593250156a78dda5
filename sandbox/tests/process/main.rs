//! Programs behind the process mode: the same answers, from any number of threads, through sessions, pipes and slates.
//!
//! It has a `main` of its own, which templates need.

#[cfg(target_os = "linux")]
mod domains;
#[cfg(target_os = "linux")]
#[path = "../../../lisp-runtime/tests/failing/mod.rs"]
mod failing;
#[cfg(target_os = "linux")]
mod failures;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod killed;
#[cfg(target_os = "linux")]
mod lost;
#[cfg(target_os = "linux")]
mod pipes;
#[cfg(target_os = "linux")]
mod records;
mod seeing;
#[cfg(target_os = "linux")]
mod sessions;
#[cfg(target_os = "linux")]
mod suite;

#[cfg(target_os = "linux")]
fn main() {
    suite::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the process layer is for Linux");
}
