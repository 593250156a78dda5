//! The table: what is tried, how it may end, and in how many milliseconds.

use crate::{Tally, builder, by_template, payloads, short};
use lisp_sandbox::Layer;
use std::time::Duration;

pub(crate) struct Row {
    /// The line of the list of hostile inputs.
    pub(crate) line: &'static str,
    pub(crate) payload: &'static str,
    /// See [`crate::Short`].
    pub(crate) expected: &'static [&'static str],
    pub(crate) max_ms: u64,
    /// It makes sense in a bounded closure too.
    pub(crate) closure: bool,
}

const fn both(line: &'static str, payload: &'static str, expected: &'static [&'static str], max_ms: u64) -> Row {
    Row { line, payload, expected, max_ms, closure: true }
}

const fn template(line: &'static str, payload: &'static str, expected: &'static [&'static str], max_ms: u64) -> Row {
    Row { line, payload, expected, max_ms, closure: false }
}

/// Deadline, grace, and what a busy machine needs; less than the template's own patience.
const KILLED: u64 = 290;
/// Nothing that ends by itself takes this long.
const SOON: u64 = 150;

pub(crate) const NAMESPACES: &[Layer] =
    &[Layer::UserNamespace, Layer::PidNamespace, Layer::NetNamespace, Layer::MountNamespace, Layer::IpcNamespace];

pub(crate) const ROWS: &[Row] = &[
    both("1", "spin", &["T"], KILLED),
    both("2", "sleep", &["T"], KILLED),
    both("2", "wait_for_the_host", &["T"], KILLED),
    both("3", "native_arithmetic", &["T"], KILLED),
    both("3", "native_sort", &["T"], KILLED),
    both("3", "native_backtracking", &["T"], KILLED),
    both("4", "hold_signals", &["T"], KILLED),
    // A closure may send itself signals, a run may not.
    both("4", "stop_itself", &["T", "S"], KILLED),
    both("11", "hold_memory", &["M"], 1_000),
    both("12", "one_huge_vector", &["M"], SOON),
    both("15", "overflow", &["O"], 1_000),
    template("16", "deep_report", &["V"], 400),
    both("17", "map_private", &["C10"], SOON),
    both("17", "map_shared", &["S"], SOON),
    both("17", "map_huge", &["S"], SOON),
    both("17", "map_locked", &["S"], SOON),
    both("17", "map_growing", &["S"], SOON),
    both("17", "advise", &["C10"], SOON),
    both("17", "move_page", &["S"], SOON),
    both("17, 48", "memory_file", &["S"], SOON),
    both("18, 47", "flood", &["V"], KILLED),
    both("18", "make_pipes", &["S"], SOON),
    both("18", "make_sockets", &["S"], SOON),
    // The tool that holds the host up takes a second.
    template("18", "call_and_fill", &["T"], 1_400),
    both("22", "fork", &["S"], SOON),
    both("22", "vfork", &["S"], SOON),
    both("22", "clone3", &["C10"], SOON),
    both("23", "daemon", &["S"], SOON),
    both("24", "thread", &["S"], SOON),
    // A process for a program with workers may start threads, and nothing else.
    template("24", "threaded_thread", &["C42"], SOON),
    template("24", "threaded_fork", &["S"], SOON),
    template("24", "threaded_vfork", &["S"], SOON),
    template("24", "threaded_new_user", &["S"], SOON),
    template("24", "threaded_process", &["S"], SOON),
    template("24", "threaded_daemon", &["S"], SOON),
    template("24", "threaded_ptrace", &["S"], SOON),
    template("24", "threaded_untraced", &["S"], SOON),
    template("24", "threaded_io", &["S"], SOON),
    both("25", "kill_all", &["S"], SOON),
    both("25", "kill_parent", &["S"], SOON),
    both("25", "signal_another", &["S"], SOON),
    both("25", "open_a_process", &["S"], SOON),
    both("26", "trace", &["S"], SOON),
    both("26", "read_another", &["S"], SOON),
    both("26, 31", "open_many", &["C10"], SOON),
    both("31", "open_passwd", &["C10"], SOON),
    both("31", "open_old", &["C10"], SOON),
    both("31", "openat2", &["S"], SOON),
    both("31", "io_uring", &["S"], SOON),
    both("31", "handle", &["S"], SOON),
    both("32", "socket_inet", &["S"], SOON),
    both("32", "socket_unix", &["S"], SOON),
    both("32", "socket_netlink", &["S"], SOON),
    both("32", "socket_vsock", &["S"], SOON),
    both("32", "socket_packet", &["S"], SOON),
    both("32", "connect_loopback", &["S"], SOON),
    both("33", "other_descriptors", &["C10"], SOON),
    both("34", "exec", &["S"], SOON),
    both("34", "exec_at", &["S"], SOON),
    both("34", "map_code", &["S"], SOON),
    both("34", "make_code", &["S"], SOON),
    both("34", "personality", &["S"], SOON),
    both("34", "futex_lock_pi", &["S"], SOON),
    both("34", "futex_unlock_pi", &["S"], SOON),
    both("34", "futex_requeue_pi", &["S"], SOON),
    both("34", "futex_wake_op", &["S"], SOON),
    #[cfg(target_arch = "x86_64")]
    both("35", "int_80", &["S", "G11"], SOON),
    #[cfg(target_arch = "x86_64")]
    both("35", "x32", &["S"], SOON),
    both("36", "unshare", &["S"], SOON),
    both("37", "loosen_filter", &["S"], SOON),
    both("37", "loosen_limit", &["S", "C10"], SOON),
    both("37", "loosen_death", &["S"], SOON),
    both("37", "loosen_dumpable", &["S"], SOON),
    both("38", "become_another", &["S"], SOON),
    both("39", "type_at_the_terminal", &["C10"], SOON),
    both("40", "clone3_new_user", &["C10"], SOON),
    both("40", "clone_new_user", &["S"], SOON),
    template("-", "report", &["K"], SOON),
    template("7", "report_then_spin", &["K"], KILLED),
    template("42", "report_then_fail", &["C1"], SOON),
    template("42", "two_reports", &["V"], SOON),
    // Lines beyond the limit are counted and not kept: it has its time like any other.
    template("42", "endless_lines", &["T"], KILLED),
    template("42", "endless_frame", &["V"], KILLED),
    template("42", "cut_frame", &["C0"], SOON),
    template("42", "garbage", &["V"], SOON),
    template("42", "frame_for_a_child", &["V"], SOON),
    template("42", "not_json", &["V"], SOON),
    template("42", "ask_for_ever", &["T"], KILLED),
    template("42", "ask_and_read_nothing", &["V"], KILLED),
    both("43", "close_the_channel", &["T"], KILLED),
    both("43", "change_the_channel", &["S"], SOON),
    both("43", "slowly", &["T"], KILLED),
    both("44", "forge_and_spin", &["T"], KILLED),
    template("44", "forge_and_end", &["C0"], SOON),
    both("44", "forge_and_abort", &["M"], SOON),
    template("46", "dirty_words", &["C3"], SOON),
    both("49", "panics", &["C101", "P"], SOON),
    both("49", "panics_in_drop", &["A"], SOON),
    both("49", "aborts", &["A"], SOON),
    both("49", "illegal", &["G4"], SOON),
    #[cfg(target_arch = "x86_64")]
    both("49", "divides", &["G8"], SOON),
    both("49, 50", "bad_address", &["G11"], SOON),
    both("49", "ends_early", &["C0"], SOON),
    template("42", "calls_without_end", &["V"], KILLED),
    template("42", "replies_without_end", &["V"], KILLED),
    template("42", "empty_lines", &["V"], KILLED),
    template("42", "empty_details", &["V"], 1_500),
    // Its last call may have begun just before the deadline.
    template("6", "calls_at_once", &["T"], KILLED + 40),
    template("-", "several_calls", &["K"], KILLED),
    template("-", "call_and_spin", &["T"], KILLED),
];

/// A layer that stands behind others: what it stops when those are taken away, and what it takes to see it.
struct Behind {
    layer: Layer,
    payload: &'static str,
    without: &'static [Layer],
    /// As root only.
    root: bool,
    max_ms: u64,
    expected: &'static [&'static str],
}

const fn behind(layer: Layer, payload: &'static str, without: &'static [Layer]) -> Behind {
    Behind { layer, payload, without, root: false, max_ms: 400, expected: &["C10"] }
}

const BEHIND: &[Behind] = &[
    behind(Layer::Landlock, "open_passwd", &[Layer::Seccomp, Layer::MountNamespace]),
    behind(Layer::MountNamespace, "open_passwd", &[Layer::Seccomp, Layer::Landlock]),
    behind(Layer::NetNamespace, "connect_loopback", &[Layer::Seccomp, Layer::Landlock]),
    behind(Layer::PidNamespace, "name_the_host", &[Layer::Seccomp]),
    behind(Layer::IpcNamespace, "queues", &[Layer::Seccomp]),
    behind(Layer::NoNewPrivs, "no_new_privs", &[Layer::Seccomp]),
    behind(Layer::Undumpable, "undumpable", &[Layer::Seccomp]),
    behind(Layer::RlimitCore, "no_core", &[Layer::Seccomp]),
    behind(Layer::RlimitFsize, "memory_file", &[Layer::Seccomp]),
    behind(Layer::RlimitAs, "map_private", &[Layer::Seccomp]),
    Behind { root: true, ..behind(Layer::UserNamespace, "become_another", &[Layer::Seccomp, Layer::NoCapabilities]) },
    Behind {
        root: true,
        ..behind(
            Layer::NoCapabilities,
            "become_another",
            &[
                Layer::Seccomp,
                Layer::UserNamespace,
                Layer::PidNamespace,
                Layer::NetNamespace,
                Layer::MountNamespace,
                Layer::IpcNamespace,
            ],
        )
    },
    Behind { max_ms: 25_000, expected: &["T"], ..behind(Layer::RlimitCpu, "spin", &[Layer::WallKill]) },
];

/// Every layer holds without those that stand before it.
pub(crate) fn layered(tally: &mut Tally) {
    for row in BEHIND {
        one_behind(tally, row, &[]);
    }
}

/// The same without the layer itself: then it must not hold.
pub(crate) fn layered_without(tally: &mut Tally, layer: Layer) {
    for row in BEHIND.iter().filter(|row| row.layer == layer) {
        one_behind(tally, row, &[layer]);
    }
    if layer == Layer::ParentDeath {
        crate::scenes::children_die_with_the_template(tally, &[layer]);
    }
    if layer == Layer::OomFirst {
        crate::memory::first_to_go(tally, &[layer]);
    }
    if layer == Layer::MemoryCgroup {
        match builder().build().is_ok_and(|sandbox| sandbox.layers().is_active(layer)) {
            true => crate::memory::a_small_group(tally, &[layer]),
            false => tally.skip("memcg", "the system does not give it"),
        }
    }
}

fn one_behind(tally: &mut Tally, row: &Behind, besides: &[Layer]) {
    let root = payloads::raw(libc::SYS_geteuid, [0; 6]) == 0;
    if row.root && !root {
        return tally.skip(row.layer.name(), "only root has rights to lose");
    }
    let off = row.without.iter().chain(besides);
    // Where the kill at the deadline is away, it must not be what ends the run.
    let late = if row.without.contains(&Layer::WallKill) { crate::paced(30_000) } else { Duration::ZERO };
    let sandbox = off.fold(builder(), |builder, &layer| builder.without(layer)).late(late).requiring_none().build();
    let sandbox = match sandbox {
        Ok(sandbox) => sandbox,
        Err(error) => return tally.check(row.layer.name(), false, error),
    };
    if besides.is_empty() && !sandbox.layers().is_active(row.layer) {
        return tally.skip(row.layer.name(), "the system does not give it");
    }
    let (outcome, took) = by_template(&sandbox, row.payload);
    let saw = short(&outcome);
    let good = row.expected.contains(&saw.as_str()) && took <= crate::paced(row.max_ms);
    let what = format!("{} alone against {}", row.layer, row.payload);
    tally.check(&what, good, format_args!("{saw} after {took:?}, expected {:?}", row.expected));
}
