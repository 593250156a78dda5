//! Limits of bounded closures, their errors and their resource usage.

use crate::guest::layers::{Layer, LayerSet};
use crate::host::verdict::{self, Facts, Kill};
use crate::wire::violation::Violation;
use lisp_runtime::Reason;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Limits of a closure that runs in a process of its own ([`run_bounded`](crate::run_bounded)).
#[derive(Clone, Debug)]
pub struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) memory_bytes: u64,
    pub(crate) result_bytes: usize,
    pub(crate) threads: bool,
    pub(crate) required: Vec<Layer>,
    /// For tests: layers turned off.
    #[cfg(feature = "testing")]
    pub(crate) wanted: LayerSet,
    /// For tests: delays the kill.
    #[cfg(feature = "testing")]
    pub(crate) late: Duration,
}

impl Bounds {
    /// The minimum memory limit, in bytes: the process needs some memory to report its result.
    pub const MIN_BYTES: u64 = 1 << 20;

    /// The layers that are required by default.
    pub const REQUIRED: &'static [Layer] =
        &[Layer::WallKill, Layer::FdsClosed, Layer::RlimitAs, Layer::RlimitCpu, Layer::NoNewPrivs, Layer::Seccomp];

    /// Creates limits: wall time, and address space in bytes beyond what the process has when it is forked.
    pub fn new(timeout: Duration, memory_bytes: u64) -> Self {
        Bounds {
            timeout,
            memory_bytes,
            result_bytes: 16 << 20,
            threads: false,
            required: Self::REQUIRED.to_vec(),
            #[cfg(feature = "testing")]
            wanted: LayerSet::all(),
            #[cfg(feature = "testing")]
            late: Duration::ZERO,
        }
    }

    /// Sets the maximum size of the encoded result, in bytes; the default is 16 MiB. A decoded result can take about 24
    /// times as much memory, for example a list of empty lists.
    #[must_use]
    pub fn result_bytes(mut self, bytes: usize) -> Self {
        self.result_bytes = bytes;
        self
    }

    /// Replaces [`Bounds::REQUIRED`], the layers without which the closure is not called. Use it on systems that have
    /// fewer layers.
    #[must_use]
    pub fn requiring(mut self, layers: &[Layer]) -> Self {
        self.required = layers.to_vec();
        self
    }

    /// Returns the error of a call that can be rejected before a process is forked.
    pub(crate) fn refused(&self) -> Option<BoundedError> {
        if INSIDE.load(Ordering::Relaxed) {
            Some(nested())
        } else if self.timeout.is_zero() {
            Some(BoundedError::Timeout(0))
        } else if self.memory_bytes < Bounds::MIN_BYTES {
            Some(failed(format!("refused: memory_bytes must be at least {}", Bounds::MIN_BYTES)))
        } else {
            None
        }
    }

    /// Returns the layers to install.
    #[cfg_attr(not(feature = "testing"), expect(clippy::unused_self, reason = "tests turn layers off"))]
    pub(crate) fn wanted(&self) -> LayerSet {
        #[cfg(feature = "testing")]
        return self.wanted.clone();
        #[cfg(not(feature = "testing"))]
        LayerSet::all()
    }

    /// Returns when a closure that is called now is killed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadline = Instant::now().checked_add(self.timeout);
        #[cfg(feature = "testing")]
        let deadline = deadline.and_then(|at| at.checked_add(self.late));
        deadline
    }

    pub(crate) fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// Allows the closure to start threads. Their stacks count as memory.
    #[must_use]
    pub fn with_threads(mut self) -> Self {
        self.threads = true;
        self
    }
}

impl Default for Bounds {
    /// Returns limits of 1,000 milliseconds and 10,000,000 bytes.
    fn default() -> Self {
        Bounds::new(Duration::from_secs(1), 10_000_000)
    }
}

/// The error of a closure that runs in a process of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum BoundedError {
    /// The closure took longer than this many milliseconds.
    #[error("took longer than {0} ms")]
    Timeout(u64),
    /// The closure asked for more than this many bytes.
    #[error("asked for more than {0} bytes")]
    MemoryExceeded(u64),
    /// The closure or its setup failed.
    #[error("{0}")]
    ExecutionError(String),
}

/// The resources that the process of a closure used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Used {
    /// Processor time of all its threads, in microseconds.
    pub cpu_us: u64,
    /// The maximum resident memory in bytes, including pages shared with the process it was forked from.
    pub rss_peak_bytes: u64,
    /// Wall time from the fork until the process ended.
    pub wall: Duration,
}

pub(crate) fn failed(text: impl ToString) -> BoundedError {
    BoundedError::ExecutionError(text.to_string())
}

/// The error of a result that takes more bytes than the bounds allow.
pub(crate) fn too_long(max: usize) -> BoundedError {
    failed(format!("the result takes more than {max} bytes: return less, or raise Bounds::result_bytes"))
}

/// True in a process that runs a bounded closure.
pub(crate) static INSIDE: AtomicBool = AtomicBool::new(false);

pub(crate) fn nested() -> BoundedError {
    failed("refused: a bounded closure cannot start another")
}

/// Encodes the result of a closure: a mark, which is 0 for a value, and the value or the message of a panic.
pub(crate) fn encoded<T: Serialize>(result: &Result<T, Box<dyn Any + Send>>) -> (u32, Vec<u8>) {
    match result {
        Ok(value) => match postcard::to_allocvec(value) {
            Ok(bytes) => (0, bytes),
            Err(error) => (1, error.to_string().into_bytes()),
        },
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            (1, text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default().into_bytes())
        }
    }
}

/// Decodes a value, which must take all of the bytes.
pub(crate) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BoundedError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(failed("the result cannot be read: it is of another type")),
        Err(error) => Err(failed(format!("the result cannot be read: {error}"))),
    }
}

/// Returns the result of a closure from the facts and from its report, a value or the message of a panic.
pub(crate) fn concluded<T: DeserializeOwned>(
    bounds: &Bounds,
    facts: &Facts<'_>,
    report: Option<Result<Vec<u8>, String>>,
) -> Result<T, BoundedError> {
    if matches!(facts.kill, Some(Kill::Violation(Violation::TooLong))) {
        return Err(too_long(bounds.result_bytes));
    }
    match (verdict::error(facts), report) {
        (None, Some(Ok(bytes))) => decoded(&bytes),
        (None, Some(Err(panic))) => Err(failed(format!("panicked: {}", verdict::clean(&panic, 300)))),
        (None, None) => Err(failed("ended without a result")),
        (Some(error), _) => Err(match error.reason {
            Reason::Timeout => BoundedError::Timeout(facts.limit_ms),
            Reason::MemoryExceeded => BoundedError::MemoryExceeded(facts.limit_bytes),
            _ => failed(error.message),
        }),
    }
}
