//! Processes of a domain that do not serve as they should, between two runs above all.

use crate::channel::REPORT;
use crate::payloads::{for_ever, spin};
use crate::{Tally, builder, paced, short};
use lisp_runtime::{Input, Outcome};
use lisp_sandbox::testing::{receive, send_frame, send_raw};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Every job gets the same report; `more` comes behind each.
fn serve(run: &OwnedFd, more: impl Fn(u32)) -> i32 {
    let mut served = 0;
    while receive(run).is_some() {
        send_frame(run, b'R', 0, REPORT);
        served += 1;
        more(served);
    }
    0
}

pub(crate) fn serves(run: &OwnedFd) -> i32 {
    serve(run, |_| ())
}

pub(crate) fn reports_twice(run: &OwnedFd) -> i32 {
    serve(run, |_| {
        send_frame(run, b'R', 0, REPORT);
    })
}

pub(crate) fn reports_first(run: &OwnedFd) -> i32 {
    send_frame(run, b'R', 0, REPORT);
    serve(run, |_| ())
}

pub(crate) fn talks_on(run: &OwnedFd) -> i32 {
    serve(run, |_| {
        send_frame(run, b'P', 0, r#"["between"]"#);
    })
}

pub(crate) fn calls_on(run: &OwnedFd) -> i32 {
    serve(run, |_| {
        send_frame(run, b'C', 1, r#"{"number":1,"place":"1","name":"quick","arguments":"{}"}"#);
    })
}

pub(crate) fn ends(run: &OwnedFd) -> i32 {
    receive(run);
    send_frame(run, b'R', 0, REPORT);
    0
}

pub(crate) fn ends_at_once(_: &OwnedFd) -> i32 {
    0
}

pub(crate) fn is_silent(run: &OwnedFd) -> i32 {
    receive(run);
    for_ever()
}

pub(crate) fn sends_half(run: &OwnedFd) -> i32 {
    serve(run, |_| {
        let mut packet = vec![0; 20];
        packet[0] = 0xfd;
        packet[5..9].copy_from_slice(&1_000_u32.to_le_bytes());
        send_raw(run, &packet);
    })
}

pub(crate) fn spins_on(run: &OwnedFd) -> i32 {
    receive(run);
    send_frame(run, b'R', 0, REPORT);
    spin(run)
}

pub(crate) fn grows(run: &OwnedFd) -> i32 {
    while receive(run).is_some() {
        // In kilobytes: more than a process of a domain may grow by.
        send_frame(run, b'R', u32::MAX, REPORT);
    }
    0
}

pub(crate) fn waits_to_report(run: &OwnedFd) -> i32 {
    let mut served = 0;
    while receive(run).is_some() {
        served += 1;
        if served > 1 {
            // Behind the deadline.
            std::thread::sleep(Duration::from_millis(400));
        }
        send_frame(run, b'R', 0, REPORT);
    }
    0
}

/// Its job stays with the host.
pub(crate) fn reads_nothing(run: &OwnedFd) -> i32 {
    send_frame(run, b'R', 0, REPORT);
    for_ever()
}

/// It says that it could not be set up, and reports all the same.
pub(crate) fn fails_and_serves(run: &OwnedFd) -> i32 {
    serve(run, |_| {
        let mut packet = vec![0; 13];
        (packet[0], packet[5]) = (0xfe, 3);
        packet.extend_from_slice(b"why");
        send_raw(run, &packet);
        send_frame(run, b'R', 0, REPORT);
    })
}

/// What it says in its first run is to be the reason of the second one's end.
pub(crate) fn speaks_for_the_next(run: &OwnedFd) -> i32 {
    receive(run);
    send_raw(run, b"memory allocation of 5 bytes failed");
    send_frame(run, b'R', 0, REPORT);
    receive(run);
    std::process::abort()
}

/// 60: what comes of three runs by the payload, how many processes are there then, and what comes of an honest run after them.
pub(crate) fn all(tally: &mut Tally) {
    let sandbox = builder().build().expect("a sandbox");
    // A run of a process that was gone or said too much is a fault of the host; the next one has another process.
    let rows: &[(&str, [&[&str]; 3], u64)] = &[
        ("domain_serves", [&["K"]; 3], 200),
        // What comes between two runs ends the process, or comes just behind the second job: then it is what that process says
        // of the second run, or a violation.
        ("domain_reports_twice", [&["K"], &["K", "V"], &["K", "V"]], 200),
        ("domain_reports_first", [&["K"], &["K", "V"], &["K", "V"]], 200),
        ("domain_talks_on", [&["K"], &["K", "V"], &["K", "V"]], 200),
        ("domain_calls_on", [&["K"], &["K", "V"], &["K", "V"]], 200),
        ("domain_ends", [&["K"], &["K", "C0"], &["K", "C0"]], 400),
        ("domain_ends_at_once", [&["C0"]; 3], 200),
        ("domain_is_silent", [&["T"]; 3], 1_200),
        ("domain_sends_half", [&["K"], &["K", "V"], &["K", "V"]], 200),
        ("domain_spins_on", [&["K"], &["T"], &["K"]], 600),
        ("domain_grows", [&["K"]; 3], 200),
        ("domain_waits_to_report", [&["K"], &["T"], &["K"]], 600),
        ("domain_fails_and_serves", [&["K"], &["K", "X"], &["K", "X"]], 200),
        ("domain_speaks_for_the_next", [&["K"], &["A"], &["K"]], 400),
    ];
    for (payload, expected, max) in rows {
        let domain = sandbox.domain(payload).expect("a domain");
        let begun = Instant::now();
        let seen: Vec<Outcome> = (0..3).map(|_| domain.eval_payload(payload, "1", &Input::new())).collect();
        let took = begun.elapsed();
        let good = seen.iter().zip(expected).all(|(seen, expected)| expected.contains(&short(seen).as_str()));
        let shown: Vec<String> = seen.iter().map(short).collect();
        tally.check(&format!("60 {payload}"), good && took < paced(*max), format_args!("{shown:?} after {took:?}"));
        let printed: Vec<&String> = seen.iter().flat_map(|seen| &seen.prints).collect();
        let called: usize = seen.iter().map(|seen| seen.ledger.len()).sum();
        let few = domain.processes() <= 1;
        tally.check(&format!("60 after {payload}"), few, format_args!("{} {printed:?} {called}", domain.processes()));
        let honest = sandbox.domain("honest").expect("a domain").eval("(+ 1 2)", &Input::new());
        tally.check(&format!("60 another beside {payload}"), honest.text() == Some("3"), short(&honest));
    }
    // What a process did not take is not kept for it.
    let large = "x".repeat(8 << 20);
    let domain = sandbox.domain("hoard").expect("a domain");
    let seen = domain.eval_payload("domain_reads_nothing", "1", &Input::new().data("x", &large));
    let gone = domain.processes() == 0;
    tally.check("60 a job that is not taken", short(&seen) == "K" && gone, format_args!("{} {gone}", short(&seen)));
    // The template ends what the host does not.
    let late = builder().late(paced(20_000)).build().expect("a sandbox");
    let domain = late.domain("late").expect("a domain");
    let begun = Instant::now();
    let seen = domain.eval_payload("domain_is_silent", "1", &Input::new());
    let took = begun.elapsed();
    let good = short(&seen) == "T" && took < paced(1_500);
    tally.check("60 a host that is late", good, format_args!("{} after {took:?}", short(&seen)));
}
