//! Moments of a run, by the monotonic clock.

use lisp_runtime::remote::HostHalf;
use std::time::{Duration, Instant};


