//! What can be tried with the channel to the host: frames out of place, too long, too many, forged, or none.

use crate::payloads::{denied, for_ever, raw, spin};
use lisp_sandbox::testing::{receive, send_frame, send_raw};
use std::os::fd::OwnedFd;
use std::time::Duration;

pub(crate) const REPORT: &str = r#"{"end":{"Ok":{"kind":"value","json":{"Ok":"1"},"text":"1","text_bytes":1,"memory":{"Ok":"{}"}}},
    "prints":[],"whole":false,"calls":[],"prints_dropped":0,"usage":{"fuel":1,"compute_us":1,"duration_us":1,"heap_peak_bytes":1,
    "heap_live_bytes":1,"allocated_bytes":1,"compactions":0,"tool_calls":0,"workers_peak":0,"output_bytes":1},"names":[],"clock":[],"prints_cut":0,"refused":[],"more_refused":0}"#;

pub(crate) fn report(run: &OwnedFd) -> i32 {
    send_frame(run, b'R', 0, REPORT);
    0
}

pub(crate) fn report_then_spin(run: &OwnedFd) -> i32 {
    send_frame(run, b'R', 0, REPORT);
    spin(run)
}

pub(crate) fn report_then_fail(run: &OwnedFd) -> i32 {
    send_frame(run, b'R', 0, REPORT);
    1
}

pub(crate) fn two_reports(run: &OwnedFd) -> i32 {
    send_frame(run, b'R', 0, REPORT);
    send_frame(run, b'R', 0, REPORT);
    0
}

pub(crate) fn deep_report(run: &OwnedFd) -> i32 {
    send_frame(run, b'R', 0, &format!(r#"{{"end":{}"#, "[".repeat(1_000_000)));
    0
}

pub(crate) fn endless_lines(run: &OwnedFd) -> i32 {
    let lines = format!("[{}]", vec![r#""aaaaaaaaaaaaaaaa""#; 1000].join(","));
    while send_frame(run, b'P', 0, &lines) {}
    0
}

pub(crate) fn endless_frame(run: &OwnedFd) -> i32 {
    let mut packet = vec![0; 50_000];
    packet[0] = 0xfd;
    packet[5..9].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut at = 0_u32;
    loop {
        packet[9..13].copy_from_slice(&at.to_le_bytes());
        if !send_raw(run, &packet) {
            return 0;
        }
        at = at.wrapping_add(50_000 - 13);
    }
}

pub(crate) fn cut_frame(run: &OwnedFd) -> i32 {
    let mut packet = vec![0; 20];
    packet[0] = 0xfd;
    packet[5] = 100;
    send_raw(run, &packet);
    0
}

pub(crate) fn garbage(run: &OwnedFd) -> i32 {
    send_raw(run, &[0xff; 100]);
    for_ever()
}

pub(crate) fn frame_for_a_child(run: &OwnedFd) -> i32 {
    send_frame(run, b'J', 0, "{}");
    for_ever()
}

pub(crate) fn not_json(run: &OwnedFd) -> i32 {
    send_frame(run, b'C', 0, "{{{");
    for_ever()
}

pub(crate) fn ask_for_ever(run: &OwnedFd) -> i32 {
    while send_frame(run, b'T', 0, "1") && receive(run).is_some() {}
    0
}

pub(crate) fn ask_and_read_nothing(run: &OwnedFd) -> i32 {
    while send_frame(run, b'T', 0, "1") {}
    0
}

pub(crate) fn close_the_channel(_: &OwnedFd) -> i32 {
    raw(libc::SYS_close, [3, 0, 0, 0, 0, 0]);
    raw(libc::SYS_close, [2, 0, 0, 0, 0, 0]);
    for_ever()
}

pub(crate) fn change_the_channel(_: &OwnedFd) -> i32 {
    denied(raw(libc::SYS_fcntl, [3, libc::F_SETFL as usize, libc::O_NONBLOCK as usize, 0, 0, 0]))
}

pub(crate) fn slowly(run: &OwnedFd) -> i32 {
    while send_raw(run, b"x") {
        std::thread::sleep(Duration::from_millis(20));
    }
    0
}

const FORGED: &[u8] = b"memory allocation of 9 bytes failed\n";

pub(crate) fn forge_and_spin(run: &OwnedFd) -> i32 {
    send_raw(run, FORGED);
    spin(run)
}

pub(crate) fn forge_and_end(run: &OwnedFd) -> i32 {
    send_raw(run, FORGED);
    0
}

pub(crate) fn forge_and_abort(run: &OwnedFd) -> i32 {
    send_raw(run, FORGED);
    std::process::abort()
}

pub(crate) fn dirty_words(run: &OwnedFd) -> i32 {
    send_raw(run, b"a\0b\x1b[2J\xc3\x28\xe2\x80\xae");
    3
}

pub(crate) fn flood(run: &OwnedFd) -> i32 {
    while send_raw(run, &[b'x'; 10_000]) {}
    for_ever()
}
