//! For this crate's tests: native payloads in place of programs, and layers removed one at a time.

mod fuzzed;

use crate::beside::closures::bounds::Bounds;
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

/// Reads arbitrary bytes as either side of the wire would. Panics if an invariant does not hold.
pub use fuzzed::wire as read_wire;

/// Native code that runs in place of a program, to do what a program cannot. It gets the channel to the host, and
/// returns the exit code.
pub type Payload = fn(&OwnedFd) -> i32;

static PAYLOADS: OnceLock<&'static [(&'static str, Payload)]> = OnceLock::new();

/// Like [`crate::init`], with payloads by name.
pub fn init(payloads: &'static [(&'static str, Payload)]) {
    init_with(payloads, &[]);
}

/// Like [`crate::init_with`], with payloads by name.
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
    /// Delays the kill by this time.
    #[must_use]
    pub fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// Requires no layers.
    #[must_use]
    pub fn requiring_none(self) -> Self {
        self.requiring_nothing()
    }
}

/// The methods are the same for sandboxes and for bounded closures.
macro_rules! impair {
    ($($of:ty),*) => {
        $(impl $of {
            /// Turns a layer off. Without the kill at the deadline, a run is still killed half a second later, so that
            /// tests end.
            #[must_use]
            pub fn without(mut self, layer: Layer) -> Self {
                self.wanted.impaired.off.push(layer);
                if layer == Layer::WallKill {
                    self.late = Duration::from_millis(500);
                }
                self
            }

            /// Makes a layer fail as if the system did not support it.
            #[must_use]
            pub fn failing_at(mut self, layer: Layer) -> Self {
                self.wanted.impaired.fails = Some(layer);
                self
            }
        })*
    };
}

impair!(Builder, Bounds);

/// The prefix in the names of payloads that may start threads.
const THREADED: &str = "threaded_";

impl Sandbox {
    /// Runs a payload in place of a program. Returns the outcome, and how late the kill signal was.
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
    /// Runs a program in the domain; its next process is a payload that serves the program.
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

/// Returns the channel of a closure under [`crate::run_bounded`].
pub fn bounded_channel() -> OwnedFd {
    sys::third()
}

/// Sends one raw packet.
pub fn send_raw(run: &OwnedFd, packet: &[u8]) -> bool {
    rustix::net::send(run, packet, rustix::net::SendFlags::NOSIGNAL).is_ok()
}

/// Sends a frame of a kind: `b'P'` for printed lines, `b'C'` for a call, `b'R'` for a report, `b'T'` for a question for
/// the time, and any other byte for one with no place. The content is given as JSON here; text that is not JSON is sent
/// as it is.
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

/// Returns the bytes of a frame for content given as JSON.
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

/// Waits for a frame of the host. Returns the call it is about, and its bytes.
pub fn receive(run: &OwnedFd) -> Option<(u32, Vec<u8>)> {
    frames::receive(run).ok().flatten().map(|frame| (frame.id, frame.bytes))
}

/// Makes some system calls fail with an error number, in this process and all that it starts.
///
/// # Errors
/// Returns an error if the filter cannot be installed.
pub fn answer(calls: &[(i64, i32)]) -> std::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    sys::install_filter(&crate::guest::filter::refusing(calls), false)
}

/// Returns the directories of the existing memory cgroups created by this host.
pub fn groups() -> Vec<std::path::PathBuf> {
    crate::kernel::cgroup::all()
}

/// Ends the process at once.
pub fn exit(code: i32) -> ! {
    sys::exit(code)
}
