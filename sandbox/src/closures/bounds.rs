//! What a closure in a process of its own may use, and why it gave no value.

use crate::guest::layers::Layer;
use crate::host::verdict::{self, Facts};
use lisp_runtime::Reason;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a closure may use.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub(crate) timeout: Duration,
    pub(crate) memory_bytes: u64,
    pub(crate) result_bytes: usize,
    pub(crate) threads: bool,
    pub(crate) required: Vec<Layer>,
    pub(crate) off: Vec<Layer>,
    #[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "tests set it"))]
    pub(crate) fail_at: Option<Layer>,
    /// For tests: how much later than it must it is killed.
    pub(crate) late: Duration,
}

impl Bounds {
    /// The least memory that can be asked for, in bytes: the process needs some to report its result.
    pub const LEAST_BYTES: u64 = 1 << 20;

    /// The layers without which a closure is not called, unless the caller says otherwise.
    pub const REQUIRED: &'static [Layer] =
        &[Layer::WallKill, Layer::FdsClosed, Layer::RlimitAs, Layer::RlimitCpu, Layer::NoNewPrivs, Layer::Seccomp];

    /// Bounds of wall time, and of address space beyond that of the process when it is forked, in bytes.
    pub fn new(timeout: Duration, memory_bytes: u64) -> Self {
        Bounds {
            timeout,
            memory_bytes,
            result_bytes: 16 << 20,
            threads: false,
            required: Self::REQUIRED.to_vec(),
            off: Vec::new(),
            fail_at: None,
            late: Duration::ZERO,
        }
    }

    /// The longest result as it travels, in bytes; 16 MiB is the default. Decoded it may take some 24 times that, when it is
    /// a list of empty ones.
    #[must_use]
    pub fn result_bytes(mut self, bytes: usize) -> Self {
        self.result_bytes = bytes;
        self
    }

    /// The layers without which the closure is not called, in the place of [`Bounds::REQUIRED`]. Where a system has less,
    /// this says with how little the caller is content.
    #[must_use]
    pub fn requiring(mut self, layers: &[Layer]) -> Self {
        self.required = layers.to_vec();
        self
    }

    /// What can be refused before there is a process.
    pub(crate) fn refused(&self) -> Option<BoundedError> {
        if INSIDE.load(Ordering::Relaxed) {
            Some(nested())
        } else if self.timeout.is_zero() {
            Some(BoundedError::Timeout(0))
        } else if self.memory_bytes < Bounds::LEAST_BYTES {
            Some(failed(format!("refused: memory_bytes must be at least {}", Bounds::LEAST_BYTES)))
        } else {
            None
        }
    }

    pub(crate) fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// Lets the closure start threads. Their stacks count as memory.
    #[must_use]
    pub fn with_threads(mut self) -> Self {
        self.threads = true;
        self
    }
}

impl Default for Bounds {
    /// 1,000 milliseconds and 10,000,000 bytes.
    fn default() -> Self {
        Bounds::new(Duration::from_secs(1), 10_000_000)
    }
}

/// Why a closure gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum BoundedError {
    /// The closure took longer than this many milliseconds.
    #[error("took longer than {0} ms")]
    Timeout(u64),
    /// The closure asked for more than this many bytes.
    #[error("asked for more than {0} bytes")]
    MemoryExceeded(u64),
    /// It, or setting it up, failed.
    #[error("{0}")]
    ExecutionError(String),
}

/// What the process of a closure used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Used {
    /// Processor time of all its threads, in microseconds.
    pub cpu_us: u64,
    /// The most that was resident, in bytes, with what it has in common with the process it was forked from.
    pub rss_peak_bytes: u64,
    /// From the fork to its end.
    pub wall: Duration,
}

pub(crate) fn failed(text: impl ToString) -> BoundedError {
    BoundedError::ExecutionError(text.to_string())
}

/// Is this process such a child?
pub(crate) static INSIDE: AtomicBool = AtomicBool::new(false);

pub(crate) fn nested() -> BoundedError {
    failed("refused: a bounded closure cannot start another")
}

/// The end of a closure on the wire: a mark, 0 for a value, and the value or else the text of a panic.
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

/// The value of all of these bytes.
pub(crate) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BoundedError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(failed("the result cannot be read: it is of another type")),
        Err(error) => Err(failed(format!("the result cannot be read: {error}"))),
    }
}

/// The result of a closure, from the facts and from its report: a value, or the text of a panic.
pub(crate) fn concluded<T: DeserializeOwned>(
    facts: &Facts<'_>,
    report: Option<Result<Vec<u8>, String>>,
) -> Result<T, BoundedError> {
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
