//! How a run ended, decided from facts that the host owns. What the run's process reports about itself only chooses
//! between messages, and between failures. It never turns a failure into a success.

use super::open_calls::OpenCalls;
use crate::kernel::unix::{ABORTED, Death, SETUP_FAILED};
use crate::wire::violation::Violation;
#[cfg(target_os = "linux")]
use lisp_runtime::remote::HostHalf;
use lisp_runtime::{Error, Reason};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

/// The interval at which cancel handles are checked.
#[cfg(target_os = "linux")]
pub(crate) const CANCEL_STEP: Duration = Duration::from_millis(5);

/// Why the host killed a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some are for process isolation"))]
pub(crate) enum Kill {
    /// It was past its deadline.
    Deadline,
    /// The run was cancelled.
    Cancelled,
    /// It violated the protocol.
    Violation(Violation),
    /// It had sent its report and did not exit.
    Lingering,
}

/// How a process ended, as far as the host knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "some are for process isolation"))]
pub(crate) enum End {
    /// It was reaped; `late` if the template killed it after its deadline.
    Reaped { death: Death, late: bool },
    /// The system could not create a process.
    NotStarted(i32),
    /// The template is gone, and the process with it.
    TemplateGone,
}

/// The facts that decide how a run ended.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) kill: Option<Kill>,
    pub(crate) end: End,
    /// A complete and well-formed report was received.
    pub(crate) reported: bool,
    /// The setup step that failed, if any.
    pub(crate) setup: Option<&'a str>,
    /// The beginning of its standard error.
    pub(crate) stderr: &'a str,
    pub(crate) limit_ms: u64,
    /// The memory limit of the process.
    pub(crate) limit_bytes: u64,
    /// The memory limit of all runs together, if the kernel killed this one for it.
    pub(crate) out_of_group: Option<u64>,
}

/// Returns the error of a run; `None` if its report counts.
pub(crate) fn error(facts: &Facts<'_>) -> Option<Error> {
    match (facts.kill, facts.end) {
        _ if facts.setup.is_some() => Some(host_fault(format!("sandbox set-up: {}", facts.setup.unwrap_or_default()))),
        (Some(Kill::Violation(Violation::GivenUpCalls)), _) => Some(given_up_calls()),
        (Some(Kill::Violation(violation)), _) => Some(host_fault(format!("the run's process sent {violation}"))),
        // A report that was complete before the deadline counts.
        (Some(Kill::Lingering | Kill::Deadline | Kill::Cancelled), _) if facts.reported => None,
        // The host's reason counts, whether the host or the template sent the signal.
        (Some(Kill::Cancelled), _) => Some(cancelled().detail("ended_by", "killed")),
        (Some(Kill::Lingering | Kill::Deadline), _) | (None, End::Reaped { late: true, .. }) => {
            Some(timeout(facts.limit_ms, "killed"))
        }
        (None, End::NotStarted(errno)) => {
            Some(host_fault(format!("sandbox set-up: fork: {}", std::io::Error::from_raw_os_error(errno))))
        }
        (None, _) if facts.out_of_group.is_some() => facts.out_of_group.map(group_full),
        (None, End::TemplateGone) => Some(host_fault("the template process ended during the run".into())),
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
        code => Some(host_fault(format!("the run's process ended with code {code}{}", stderr_of(facts)))),
    }
}

fn of_signal(facts: &Facts<'_>, status: i32) -> Error {
    match libc::WTERMSIG(status) {
        libc::SIGXCPU => timeout(facts.limit_ms, "processor time"),
        libc::SIGSYS => host_fault("the run's process made a forbidden system call".into()),
        // A stack overflow is a SIGSEGV, followed by an abort if there is room for the message.
        libc::SIGABRT | libc::SIGSEGV if facts.stderr.contains("has overflowed its stack") => {
            host_fault("the native stack of the run's process overflowed".into())
        }
        libc::SIGABRT => match allocation(facts.stderr) {
            Some(bytes) => out_of_memory(facts.limit_bytes, bytes),
            None => host_fault(format!("the run's process was aborted{}", stderr_of(facts))),
        },
        libc::SIGKILL => {
            host_fault("the run's process was killed from outside, possibly because memory ran out".into())
        }
        signal => {
            let core = if libc::WCOREDUMP(status) { ", core dumped" } else { "" };
            host_fault(format!("the run's process was killed by signal {signal}{core}{}", stderr_of(facts)))
        }
    }
}

/// Returns whether an allocation failed, from the last output of a process, and its size in bytes. If several threads
/// reported at once, their messages may be interleaved and the size is unknown.
pub(crate) fn allocation(stderr: &str) -> Option<Option<u64>> {
    let (_, rest) = stderr.split_once("memory allocation of ")?;
    let (number, after) = rest.split_once(" bytes failed")?;
    Some(number.parse().ok().filter(|_| !after.contains(" bytes failed")))
}

/// Returns the error of a run that was killed after its deadline. `why` says by whom or what.
pub(crate) fn timeout(limit_ms: u64, why: &'static str) -> Error {
    Error::new(Reason::Timeout, format!("the run takes longer than {limit_ms} ms"))
        .hint("do less work, for example on fewer rows, or raise the limit timeout_ms")
        .detail("limit_ms", limit_ms)
        .detail("ended_by", why)
}

/// Returns the error of a cancelled run.
pub(crate) fn cancelled() -> Error {
    Error::new(Reason::Cancelled, "the run was cancelled from outside")
}

/// Returns how long a run without a process may continue to wait for one, at most a second, because others may have
/// ended by then. `why` says what there was too little of.
///
/// # Errors
/// Returns an error if its time is over or it was cancelled.
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
    let max = OpenCalls::GIVEN_UP;
    Error::new(
        Reason::ToolCallLimitExceeded,
        format!("more than {max} tool calls that were given up are still in progress"),
    )
    .hint("call slow tools less often in a parallel call that fails, or let the tools take less time")
    .detail("limit", max)
}

fn host_fault(message: String) -> Error {
    Error::new(Reason::HostFault, message)
}

/// Returns the last output of the process, fit to be shown.
fn stderr_of(facts: &Facts<'_>) -> String {
    match clean(facts.stderr, 300) {
        stderr if stderr.is_empty() => String::new(),
        stderr => format!(": {stderr}"),
    }
}

/// Returns text of an untrusted process without control characters, cut at `bytes` bytes.
pub(crate) fn clean(text: &str, bytes: usize) -> String {
    let mut clean = String::new();
    for c in text.trim().chars() {
        let c = if c == '\n' || c == '\t' { ' ' } else { c };
        // Bidirectional controls hide the text beside them.
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
            stderr: "",
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
            let stderr = "memory allocation of 9 bytes failed";
            reason(&Facts { kill: Some(kill), reported, stderr, ..facts(reaped(libc::SIGABRT)) })
        };
        assert_eq!(killed(Kill::Deadline, false), Some(Reason::Timeout));
        assert_eq!(killed(Kill::Cancelled, false), Some(Reason::Cancelled));
        assert_eq!(killed(Kill::Violation(Violation::Garbage), true), Some(Reason::HostFault));
        assert_eq!(killed(Kill::Violation(Violation::GivenUpCalls), true), Some(Reason::ToolCallLimitExceeded));
        assert_eq!(killed(Kill::Deadline, true), None);
        assert_eq!(killed(Kill::Lingering, true), None);
    }

    /// Tests every reason to kill with every end, with and without a report: what the host did decides, not who sent
    /// the signal.
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
        // If the host did not kill, the end decides, with and without a report.
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
            // If the host killed, its reason counts for every end, unless a complete report came before.
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
        let aborted = |stderr| reason(&Facts { stderr, reported: false, ..facts(reaped(libc::SIGABRT)) });
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
        // The replacement of a control character is longer than the character.
        assert_eq!(clean("ab\u{1}\u{1}", 4), "ab...");
    }
}
