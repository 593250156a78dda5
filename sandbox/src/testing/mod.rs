//! For this crate's tests: native payloads in the place of programs, and protections taken away one at a time.

mod fuzzed;

use crate::closures::bounds::Bounds;
use crate::guest::child;
use crate::guest::layers::Layer;
use crate::host::running::Running;
use crate::host::sandbox::{Builder, Sandbox};
use crate::kernel::sys;
use crate::wire::frames::{self, Kind};
use crate::wire::messages::{Order, TestOrder};
use lisp_runtime::remote::{GuestCall, HostHalf, Report};
use lisp_runtime::{Input, Outcome};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::Duration;

/// Arbitrary bytes as either side of the wire would read them. Panics when something does not hold that must.
pub use fuzzed::wire as read_wire;

/// A payload: what a program cannot do, done in its place. It has the channel to the host.
/// Its return value is the exit code.
pub type Payload = fn(&OwnedFd) -> i32;

static PAYLOADS: OnceLock<&'static [(&'static str, Payload)]> = OnceLock::new();

/// [`crate::init`] with payloads by name.
pub fn init(payloads: &'static [(&'static str, Payload)]) {
    init_with(payloads, &[]);
}

/// [`crate::init_with`] with payloads by name.
pub fn init_with(payloads: &'static [(&'static str, Payload)], functions: &[crate::Function]) {
    let _ = PAYLOADS.set(payloads);
    let _ = child::PAYLOAD.set(run_payload);
    crate::init_with(functions);
}

fn run_payload(entry: u64, run: OwnedFd) -> i32 {
    let payloads = PAYLOADS.get().copied().unwrap_or_default();
    let Some((_, payload)) = usize::try_from(entry).ok().and_then(|entry| payloads.get(entry - 1)) else { return 99 };
    std::panic::catch_unwind(|| payload(&run)).unwrap_or(101)
}

impl Builder {
    /// Kills later than it must, by this time.
    #[must_use]
    pub fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// Runs whatever is missing.
    #[must_use]
    pub fn requiring_none(self) -> Self {
        self.requiring_nothing()
    }
}

/// Layers are taken away from sandboxes and from calls of closures alike.
macro_rules! impair {
    ($($of:ty),*) => {
        $(impl $of {
            /// Does without a layer. Without the kill at the deadline there is one half a second later: tests must end.
            #[must_use]
            pub fn without(mut self, layer: Layer) -> Self {
                self.off.push(layer);
                if layer == Layer::WallKill {
                    self.late = Duration::from_millis(500);
                }
                self
            }

            /// Makes a layer fail as if the system did not give it.
            #[must_use]
            pub fn failing_at(mut self, layer: Layer) -> Self {
                self.fail_at = Some(layer);
                self
            }
        })*
    };
}

impair!(Builder, Bounds);

/// What the names of payloads begin with that are run in a process which may start threads.
const THREADED: &str = "threaded_";

impl Sandbox {
    /// Runs a payload in the place of a program. Returns the outcome, and how late the signal to kill was.
    pub fn run_payload(&self, name: &str, input: &Input<'_>, fail_step: u64) -> (Outcome, Option<Duration>) {
        match self.start_payload(name, input, fail_step) {
            Ok((mut running, mut host)) => (running.finish(&mut host), running.overshoot()),
            Err(outcome) => (*outcome, None),
        }
    }

    fn start_payload(
        &self,
        name: &str,
        input: &Input<'_>,
        fail_step: u64,
    ) -> Result<(Running, HostHalf), Box<Outcome>> {
        let payload = number_of(name);
        let (_, mut host) = self.split("", input, false)?;
        let test = TestOrder { payload, fail_step };
        let order = Order { test, threads: name.starts_with(THREADED), ..self.child(host.limits(), 0, true) };
        let running = self.order_child(&mut host, order, false)?;
        Ok((running, host))
    }

    pub(crate) fn with_payload(
        &self,
        name: &str,
        input: &Input<'_>,
        finish: impl FnOnce(Running, &mut HostHalf) -> Outcome,
    ) -> Outcome {
        match self.start_payload(name, input, 0) {
            Ok((running, mut host)) => finish(running, &mut host),
            Err(outcome) => *outcome,
        }
    }
}

impl crate::Domain {
    /// Runs a program in the domain, whose next process is a payload that serves it.
    pub fn eval_payload(&self, name: &str, source: &str, input: &Input<'_>) -> Outcome {
        let (job, mut host) = match self.sandbox.split(source, input, false) {
            Ok(halves) => halves,
            Err(outcome) => return *outcome,
        };
        match self.sandbox.prepare(&job, &mut host) {
            Ok(bytes) => {
                let test = TestOrder { payload: number_of(name), fail_step: 0 };
                self.run_as(Order { test, ..self.order(&host, bytes.len()) }, &bytes, host)
            }
            Err(outcome) => *outcome,
        }
    }
}

fn number_of(name: &str) -> u64 {
    let payloads = PAYLOADS.get().copied().unwrap_or_default();
    payloads.iter().position(|row| row.0 == name).map_or(u64::MAX, |at| at as u64 + 1)
}

/// The channel of a closure under [`crate::run_bounded`].
pub fn bounded_channel() -> OwnedFd {
    sys::third()
}

/// Sends one packet as it is.
pub fn send_raw(run: &OwnedFd, packet: &[u8]) -> bool {
    rustix::net::send(run, packet, rustix::net::SendFlags::NOSIGNAL).is_ok()
}

/// Sends a frame of a kind: `b'P'` lines printed, `b'C'` a call, `b'R'` a report, `b'T'` a question for the time, anything
/// else one with no place. What it says is written as JSON here; text that is none goes as it is.
pub fn send_frame(run: &OwnedFd, kind: u8, id: u32, json: &str) -> bool {
    let kind = match kind {
        b'P' => Kind::Printed,
        b'C' => Kind::Call,
        b'R' => Kind::Report,
        b'T' => Kind::Clock,
        _ => Kind::Job,
    };
    let bytes = encoded(kind, json).unwrap_or_else(|| json.as_bytes().to_vec());
    frames::send(run, kind, id, &bytes).is_ok()
}

/// A frame's bytes for what JSON says.
pub(crate) fn encoded(kind: Kind, json: &str) -> Option<Vec<u8>> {
    fn again<'a, T: Serialize + Deserialize<'a>>(json: &'a str) -> Option<Vec<u8>> {
        frames::encode(&serde_json::from_str::<T>(json).ok()?).ok()
    }
    match kind {
        Kind::Printed => again::<Vec<String>>(json),
        Kind::Call => again::<GuestCall<'_>>(json),
        Kind::Report => again::<Report>(json),
        _ => None,
    }
}

/// Waits for a frame of the host's: which call it is about, and its bytes.
pub fn receive(run: &OwnedFd) -> Option<(u32, Vec<u8>)> {
    frames::receive(run).ok().flatten().map(|frame| (frame.id, frame.bytes))
}

/// Makes some system calls fail with an error number, here and in all processes to come.
///
/// # Errors
/// The filter cannot be put on.
pub fn answer(calls: &[(i64, i32)]) -> std::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    sys::install_filter(&crate::guest::filter::refusing(calls), false)
}

/// The directories of the memory cgroups that this host has made and that are there.
pub fn groups() -> Vec<std::path::PathBuf> {
    crate::kernel::cgroup::all()
}

/// Ends the process at once.
pub fn exit(code: i32) -> ! {
    sys::exit(code)
}
