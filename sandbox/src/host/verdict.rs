//! What a run came to, from facts the host owns. What the run's process says of itself chooses between texts, and between
//! one failure and another; it never makes a success of a failure.

use super::open_calls::OpenCalls;
use crate::kernel::unix::{ABORTED, Death, SETUP_FAILED};
use crate::wire::violation::Violation;
#[cfg(target_os = "linux")]
use lisp_runtime::remote::HostHalf;
use lisp_runtime::{Error, Reason};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

/// How often a handle for cancelling is looked at.
#[cfg(target_os = "linux")]
pub(crate) const CANCEL_STEP: Duration = Duration::from_millis(5);

/// Why the host killed a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some are of the process door"))]
pub(crate) enum Kill {
    /// It was past its deadline.
    Deadline,
    /// Somebody cancelled the run.
    Cancelled,
    /// It did not keep to the protocol.
    Violation(Violation),
    /// It had given its report, and did not end.
    Lingering,
}

/// How it ended, as far as the host knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some are of the process door"))]
pub(crate) enum End {
    /// It was reaped; `late` when the template killed it past its time.
    Reaped { death: Death, late: bool },
    /// There was no process: the system would not make one.
    NotStarted(i32),
    /// The template is gone, and with it the process.
    TemplateGone,
}

/// All that counts.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) kill: Option<Kill>,
    pub(crate) end: End,
    /// A report has come, whole and well-formed.
    pub(crate) reported: bool,
    /// Which step of its set-up failed, if one did.
    pub(crate) setup: Option<&'a str>,
    /// The beginning of its standard error.
    pub(crate) said: &'a str,
    pub(crate) limit_ms: u64,
    /// The hard ceiling of memory.
    pub(crate) limit_bytes: u64,
    /// The ceiling of all runs together, when the kernel killed this one for it.
    pub(crate) out_of_group: Option<u64>,
}

/// The error of a run; `None` when its report counts.
pub(crate) fn error(facts: &Facts<'_>) -> Option<Error> {
    match (facts.kill, facts.end) {
        _ if facts.setup.is_some() => Some(host_fault(format!("sandbox set-up: {}", facts.setup.unwrap_or_default()))),
        (Some(Kill::Violation(Violation::GivenUpCalls)), _) => Some(given_up_calls()),
        (Some(Kill::Violation(violation)), _) => Some(host_fault(format!("the run's process sent {violation}"))),
        // A report that was whole before the deadline counts.
        (Some(Kill::Lingering | Kill::Deadline | Kill::Cancelled), _) if facts.reported => None,
        // Whoever sends the signal, the host or the template in its place: the host's reason is the run's.
        (Some(Kill::Cancelled), _) => Some(cancelled().detail("ended_by", "killed")),
        (Some(Kill::Lingering | Kill::Deadline), _) | (None, End::Reaped { late: true, .. }) => {
            Some(timeout(facts.limit_ms, "killed"))
        }
        (None, End::NotStarted(errno)) => {
            Some(host_fault(format!("sandbox set-up: fork: {}", std::io::Error::from_raw_os_error(errno))))
        }
        (None, _) if facts.out_of_group.is_some() => facts.out_of_group.map(group_full),
        (None, End::TemplateGone) => Some(host_fault("the template process ended while the run was under way".into())),
        (None, End::Reaped { death, .. }) => of_status(facts, death.status),
    }
}

fn of_status(facts: &Facts<'_>, status: i32) -> Option<Error> {
    if libc::WIFSIGNALED(status) {
        return Some(of_signal(facts, status));
    }
    match libc::WEXITSTATUS(status) {
        0 if facts.reported => None,
        0 => Some(host_fault("the run's process ended without a result".into())),
        SETUP_FAILED => Some(host_fault("sandbox set-up failed".into())),
        ABORTED => Some(of_signal(facts, libc::SIGABRT)),
        code => Some(host_fault(format!("the run's process ended with code {code}{}", said(facts)))),
    }
}

fn of_signal(facts: &Facts<'_>, status: i32) -> Error {
    match libc::WTERMSIG(status) {
        libc::SIGXCPU => timeout(facts.limit_ms, "processor time"),
        libc::SIGSYS => host_fault("the run's process made a forbidden system call".into()),
        // An overflow is a signal first, and then an abort if there is room to tell.
        libc::SIGABRT | libc::SIGSEGV if facts.said.contains("has overflowed its stack") => {
            host_fault("the native stack of the run's process overflowed".into())
        }
        libc::SIGABRT => match allocation(facts.said) {
            Some(bytes) => out_of_memory(facts.limit_bytes, bytes),
            None => host_fault(format!("the run's process was aborted{}", said(facts))),
        },
        libc::SIGKILL => host_fault("the run's process was killed from outside, possibly for want of memory".into()),
        signal => {
            let core = if libc::WCOREDUMP(status) { ", core dumped" } else { "" };
            host_fault(format!("the run's process was killed by signal {signal}{core}{}", said(facts)))
        }
    }
}

/// Has an allocation failed, by what a process said at last? And of how many bytes: several threads may say it at once, one
/// into the other's words, and then there is no telling.
pub(crate) fn allocation(said: &str) -> Option<Option<u64>> {
    let (_, rest) = said.split_once("memory allocation of ")?;
    let (number, after) = rest.split_once(" bytes failed")?;
    Some(number.parse().ok().filter(|_| !after.contains(" bytes failed")))
}

/// The error of a run past its deadline that had to be killed. `why` says what killed it.
pub(crate) fn timeout(limit_ms: u64, why: &'static str) -> Error {
    Error::new(Reason::Timeout, format!("the run takes longer than {limit_ms} ms"))
        .hint("do less work, for example on fewer rows, or raise the limit timeout_ms")
        .detail("limit_ms", limit_ms)
        .detail("ended_by", why)
}

/// The error of a run that is cancelled.
pub(crate) fn cancelled() -> Error {
    Error::new(Reason::Cancelled, "the run was cancelled from outside")
}

/// How long a run that has no process may go on to wait for one; at most a second, as others may have ended by then. `why` says what
/// there was too little of.
///
/// # Errors
/// Its time is over, or it was cancelled.
#[cfg(target_os = "linux")]
pub(crate) fn time_to_wait(host: &HostHalf, why: impl FnOnce() -> String) -> Result<Duration, Error> {
    if host.cancel().is_cancelled() {
        return Err(cancelled());
    }
    let longest = if host.is_cancellable() { CANCEL_STEP } else { Duration::from_secs(1) };
    let left = host.deadline().map_or(longest, |until| until.saturating_duration_since(Instant::now()));
    match left.is_zero() {
        true => Err(timeout(host.limits().timeout_ms, "no process").hint(why())),
        false => Ok(left.min(longest)),
    }
}

fn out_of_memory(limit: u64, requested: Option<u64>) -> Error {
    let error =
        Error::new(Reason::MemoryExceeded, format!("the run's process may take {limit} bytes and asked for more"))
            .hint("hold less at once, or raise the limit heap_bytes")
            .detail("limit_bytes", limit)
            .detail("ended_by", "address space");
    match requested {
        Some(bytes) => error.detail("requested_bytes", bytes),
        None => error,
    }
}

fn group_full(limit: u64) -> Error {
    Error::new(Reason::MemoryExceeded, format!("all runs together may take {limit} bytes, and asked for more"))
        .hint("hold less at once, or raise the ceiling of all runs")
        .detail("limit_bytes", limit)
        .detail("ended_by", "memory cgroup")
}

fn given_up_calls() -> Error {
    let most = OpenCalls::GIVEN_UP;
    Error::new(
        Reason::ToolCallLimitExceeded,
        format!("more than {most} tool calls that were given up are still at work"),
    )
    .hint("call slow tools less often in a parallel call that fails, or let the tools take less time")
    .detail("limit", most)
}

fn host_fault(message: String) -> Error {
    Error::new(Reason::HostFault, message)
}

/// What it said at last, made fit to be shown.
fn said(facts: &Facts<'_>) -> String {
    match clean(facts.said, 300) {
        said if said.is_empty() => String::new(),
        said => format!(": {said}"),
    }
}

/// Text of a process that is not trusted: without control characters, cut at `most` bytes.
pub(crate) fn clean(text: &str, bytes: usize) -> String {
    let mut clean = String::new();
    for c in text.trim().chars() {
        let c = if c == '\n' || c == '\t' { ' ' } else { c };
        // Controls of bidirectional text hide what stands beside them.
        let hidden =
            c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let c = if hidden { '\u{fffd}' } else { c };
        if clean.len() + c.len_utf8() > bytes {
            clean.push_str("...");
            break;
        }
        clean.push(c);
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(end: End) -> Facts<'static> {
        Facts {
            kill: None,
            end,
            reported: true,
            setup: None,
            said: "",
            limit_ms: 5,
            limit_bytes: 7,
            out_of_group: None,
        }
    }

    fn reaped(status: i32) -> End {
        End::Reaped { death: Death { status, cpu_us: 0, rss_peak_bytes: 0 }, late: false }
    }

    fn reason(facts: &Facts<'_>) -> Option<Reason> {
        error(facts).map(|error| error.reason)
    }

    #[test]
    fn a_report_counts_with_an_orderly_end_only() {
        assert_eq!(reason(&facts(reaped(0))), None);
        assert_eq!(reason(&Facts { reported: false, ..facts(reaped(0)) }), Some(Reason::HostFault));
        for status in [1 << 8, libc::SIGKILL, libc::SIGSEGV, libc::SIGSYS] {
            assert_eq!(reason(&facts(reaped(status))), Some(Reason::HostFault), "{status}");
        }
        assert_eq!(reason(&facts(End::TemplateGone)), Some(Reason::HostFault));
        assert_eq!(reason(&facts(End::NotStarted(11))), Some(Reason::HostFault));
    }

    #[test]
    fn the_hosts_own_kill_comes_first() {
        let killed = |kill, reported| {
            let said = "memory allocation of 9 bytes failed";
            reason(&Facts { kill: Some(kill), reported, said, ..facts(reaped(libc::SIGABRT)) })
        };
        assert_eq!(killed(Kill::Deadline, false), Some(Reason::Timeout));
        assert_eq!(killed(Kill::Cancelled, false), Some(Reason::Cancelled));
        assert_eq!(killed(Kill::Violation(Violation::Garbage), true), Some(Reason::HostFault));
        assert_eq!(killed(Kill::Violation(Violation::GivenUpCalls), true), Some(Reason::ToolCallLimitExceeded));
        assert_eq!(killed(Kill::Deadline, true), None);
        assert_eq!(killed(Kill::Lingering, true), None);
    }

    /// Every reason to kill with every end, with a report and without: what the host did decides, not who sent the signal.
    #[test]
    fn every_kill_with_every_end() {
        use Reason::{Cancelled, HostFault, Timeout};
        let late = |status| match reaped(status) {
            End::Reaped { death, .. } => End::Reaped { death, late: true },
            other => other,
        };
        let ends = [
            reaped(0),
            late(0),
            reaped(libc::SIGKILL),
            late(libc::SIGKILL),
            reaped(libc::SIGSYS),
            reaped(1 << 8),
            End::NotStarted(libc::EAGAIN),
            End::TemplateGone,
        ];
        // Without a kill of the host's the end decides: with a report, and without.
        let alone = [
            (None, Some(HostFault)),
            (Some(Timeout), Some(Timeout)),
            (Some(HostFault), Some(HostFault)),
            (Some(Timeout), Some(Timeout)),
            (Some(HostFault), Some(HostFault)),
            (Some(HostFault), Some(HostFault)),
            (Some(HostFault), Some(HostFault)),
            (Some(HostFault), Some(HostFault)),
        ];
        let seen = |kill, end, reported| reason(&Facts { kill, reported, ..facts(end) });
        for (end, (with, without)) in ends.into_iter().zip(alone) {
            assert_eq!((seen(None, end, true), seen(None, end, false)), (with, without), "{end:?}");
            // Whatever the end, when the host has killed: its reason, unless a whole report was there before.
            for (kill, reason) in [(Kill::Deadline, Timeout), (Kill::Lingering, Timeout), (Kill::Cancelled, Cancelled)]
            {
                assert_eq!(seen(Some(kill), end, true), None, "{kill:?} {end:?}");
                assert_eq!(seen(Some(kill), end, false), Some(reason), "{kill:?} {end:?}");
            }
            for reported in [true, false] {
                let violation = Some(Kill::Violation(Violation::Garbage));
                assert_eq!(seen(violation, end, reported), Some(HostFault), "{end:?}");
            }
        }
    }

    #[test]
    fn a_failed_allocation_is_told_from_an_abort() {
        let aborted = |said| reason(&Facts { said, reported: false, ..facts(reaped(libc::SIGABRT)) });
        assert_eq!(aborted("memory allocation of 123 bytes failed\n"), Some(Reason::MemoryExceeded));
        assert_eq!(aborted("panicked"), Some(Reason::HostFault));
        assert_eq!(aborted("memory allocation of 123"), Some(Reason::HostFault));
        let two = "memory allocation of memory allocation of 5 bytes failed\n7 bytes failed\n";
        assert_eq!((aborted(two), allocation(two)), (Some(Reason::MemoryExceeded), Some(None)));
        assert_eq!(allocation("memory allocation of 123 bytes failed\n"), Some(Some(123)));
        assert_eq!(reason(&facts(reaped(libc::SIGXCPU))), Some(Reason::Timeout));
    }

    #[test]
    fn a_kill_for_the_ceiling_of_all_runs_is_for_memory() {
        let killed = |end| reason(&Facts { reported: false, out_of_group: Some(9), ..facts(end) });
        assert_eq!(killed(reaped(libc::SIGKILL)), Some(Reason::MemoryExceeded));
        assert_eq!(killed(End::TemplateGone), Some(Reason::MemoryExceeded));
        let late = Facts { kill: Some(Kill::Deadline), reported: false, out_of_group: Some(9), ..facts(reaped(9)) };
        assert_eq!(reason(&late), Some(Reason::Timeout));
    }

    #[test]
    fn text_is_made_fit_to_be_shown() {
        assert_eq!(clean(" a\u{1b}[31m\u{202e}b\n", 100), "a\u{fffd}[31m\u{fffd}b");
        assert_eq!(clean("äääää", 5), "ää...");
        // What stands for a control takes more bytes than the control.
        assert_eq!(clean("ab\u{1}\u{1}", 4), "ab...");
    }
}
