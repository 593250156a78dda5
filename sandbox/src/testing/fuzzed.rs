//! Entry points for fuzzing the parsers of this crate with arbitrary bytes. They assert what must hold for any input.

use crate::guest::child;
use crate::guest::template::Config;
use crate::host::conversation::Conversation;
use crate::host::socket_pair::SocketPair;
use crate::host::verdict;
use crate::wire::frames::{Assembler, Frame, Kind, PACKET, Taken, decode, encode, packets, time_bytes, time_of};
use crate::wire::guest_message::FrameLimits;
use crate::wire::messages::{Message, Notice};
use crate::wire::violation::Violation;
use lisp_runtime::remote::{CallReply, Job};
use lisp_runtime::{Engine, Input};
use rustix::net::RecvFlags;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The maximum size of a frame for the fuzzed host.
const MAX: usize = 1 << 16;

/// Reads bytes as one of the two sides would; the first byte selects which, and how.
pub fn wire(engine: &Engine, bytes: &[u8]) {
    let Some((&way, rest)) = bytes.split_first() else { return };
    match way % 8 {
        0 => drop(host(engine, split(rest))),
        // Well-formed frames with arbitrary contents.
        1 => drop(host(engine, framed(rest).into_iter().flat_map(|(kind, id, part)| packets(kind, id, part)))),
        2 => order(rest),
        3 => notice(rest),
        4 => job(rest),
        5 => drop(serde_json::from_slice::<Config>(rest)),
        6 => reply(rest),
        _ => drop(verdict::clean(&String::from_utf8_lossy(rest), 300)),
    }
}

/// Splits into packets: two bytes of length, then that number of bytes.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (packet, rest) = rest.split_at(length);
        bytes = rest;
        Some(packet.to_vec())
    })
}

/// Splits into frames: a byte for the kind, one for the number, and text up to a byte that is not valid in UTF-8.
fn framed(bytes: &[u8]) -> Vec<(Kind, u32, &[u8])> {
    let kinds =
        [Kind::Printed, Kind::Call, Kind::Report, Kind::Setup, Kind::Job, Kind::Clock, Kind::Time, Kind::Figures];
    let frames = bytes.split(|&byte| byte == 0xff).filter_map(|part| match part {
        [kind, id, rest @ ..] => Some((kinds[usize::from(*kind) % kinds.len()], u32::from(*id), rest)),
        _ => None,
    });
    frames.collect()
}

/// Runs the host's side, with a process that reads nothing.
fn host(engine: &Engine, packets: impl Iterator<Item = Vec<u8>>) -> Result<(), Violation> {
    let Ok((_, mut host)) = engine.split("", &Input::new(), &[], false) else { return Ok(()) };
    let Ok((pair, [process, _status])) = SocketPair::new(1) else { return Ok(()) };
    let limits = FrameLimits::of(&host, MAX, true);
    let (mut talk, mut again) = (Conversation::new(Arc::new(pair), limits, false), Assembler::default());
    for packet in packets {
        if let Ok(Taken::Frame(frame)) = again.take(&packet, |kind| limits.frame(kind)) {
            read_again(&frame);
        }
        talk.take(&mut host, &packet, false)?;
        talk.take_ended(&mut host);
        sent(&process);
    }
    let text = talk.errors.text();
    let _ = verdict::allocation(&text);
    let clean = verdict::clean(&text, 300);
    assert!(clean.len() <= 303 && !clean.chars().any(char::is_control));
    if let Some(setup) = &talk.setup {
        assert!(verdict::clean(setup, 300).len() <= 303);
    }
    if let Some(report) = talk.report.take() {
        let outcome = host.finish(report);
        let answer = lisp_runtime::Answer::new(None, &outcome).to_json();
        let read: Result<serde_json::Value, _> = serde_json::from_str(&answer);
        assert!(read.is_ok() && !answer.contains('\n'), "{answer}");
    }
    Ok(())
}

/// Checks the packets that the process was sent: complete replies and times.
fn sent(process: &OwnedFd) {
    let (mut buffer, mut assembler) = (vec![0; PACKET], Assembler::default());
    while let Ok((read, _)) = rustix::net::recv(process, &mut buffer[..], RecvFlags::DONTWAIT) {
        match assembler.take(&buffer[..read], |_| usize::MAX) {
            Ok(Taken::Part) => {}
            Ok(Taken::Frame(Frame { kind: Kind::Reply, bytes, .. })) => assert!(decode::<CallReply>(&bytes).is_ok()),
            Ok(Taken::Frame(Frame { kind: Kind::Time, bytes, .. })) => {
                assert!(bytes.is_empty() || time_of(&bytes).is_some());
            }
            other => panic!("the host sent {other:?}"),
        }
    }
}

/// Checks that what was read can be sent again and reads back the same.
fn read_again(frame: &Frame) {
    assert!(frame.bytes.len() <= MAX);
    let mut assembler = Assembler::default();
    let mut last = Taken::Part;
    for packet in packets(frame.kind, frame.id, &frame.bytes) {
        assert_eq!(last, Taken::Part);
        last = assembler.take(&packet, |_| MAX).unwrap_or(Taken::Text);
    }
    let Taken::Frame(read) = last else { panic!("a frame that was read is not read again") };
    assert_eq!(read, *frame);
}

fn order(bytes: &[u8]) {
    if let Some(message) = Message::read(bytes) {
        assert_eq!(Message::read(message.write(&mut [0; Message::BYTES])), Some(message));
    }
}

fn notice(bytes: &[u8]) {
    if let Some(notice) = Notice::read(bytes) {
        assert_eq!(Notice::read(notice.write(&mut [0; Notice::BYTES])), Some(notice));
        if let Notice::Ended { death, late } = notice {
            // Every status must give a result.
            let _ = verdict::error(&verdict::Facts {
                kill: None,
                end: verdict::End::Reaped { death, late },
                reported: true,
                setup: None,
                stderr: "",
                limit_ms: 1,
                limit_bytes: 1,
                out_of_group: None,
            });
        }
    }
}

/// Checks that what was read can be sent on and stays the same.
macro_rules! same {
    ($type:ty, $bytes:expr) => {
        if let Ok(read) = decode::<$type>($bytes) {
            let first = encode(&read).unwrap_or_default();
            let again: $type = decode(&first).unwrap_or_else(|error| panic!("{error}: {first:?}"));
            assert_eq!(encode(&again).unwrap_or_default(), first);
        }
    };
}

fn job(bytes: &[u8]) {
    let _ = child::split(bytes);
    same!(Job<'_>, bytes);
}

fn reply(bytes: &[u8]) {
    if let Some(time) = time_of(bytes) {
        assert_eq!(time_bytes(Some(time)), bytes);
    }
    same!(CallReply, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encoded;

    const REPORT: &str = r#"{"end":{"Ok":{"kind":"value","json":{"Ok":"JSON"},"text":"1","text_bytes":1,"memory":{"Ok":"{\n}"}}},
        "prints":[],"whole":false,"calls":[],"prints_dropped":0,"usage":{"fuel":1,"compute_us":1,"duration_us":1,
        "heap_peak_bytes":1,"heap_live_bytes":1,"allocated_bytes":1,"compactions":0,"tool_calls":0,"workers_peak":0,
        "output_bytes":1},"names":[],"clock":[],"prints_cut":0,"refused":[],"more_refused":0}"#;

    /// Tests that the seeds reach the code they are meant for.
    #[test]
    fn seeds_are_read() {
        let engine = Engine::builder().clock(|| 5).build().unwrap();
        let seed =
            |name: &str| std::fs::read(format!("{}/../fuzz/seeds/wire/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        for name in
            ["clock", "failure", "frames", "job", "notice", "order", "packets", "reply", "said", "setup", "time"]
        {
            wire(&engine, &seed(name));
        }
        let job = seed("job");
        let job: Job<'_> = decode(&job[1..]).unwrap();
        assert!(!job.is_session());
        assert!(decode::<CallReply>(&seed("reply")[1..]).is_ok());
        assert!(Message::read(&seed("order")[1..]).is_some());
        assert!(Notice::read(&seed("notice")[1..]).is_some());
        assert_eq!(time_of(&seed("time")[1..]), Some(0x0807_0605_0403_0201));
        let frames = seed("clock")[1..].to_vec();
        let packets = |frames: Vec<(Kind, u32, &[u8])>| -> Vec<Vec<u8>> {
            frames.into_iter().flat_map(|(kind, id, part)| packets(kind, id, part)).collect()
        };
        let all = framed(&frames);
        assert_eq!(all.iter().map(|frame| frame.0).collect::<Vec<_>>(), [Kind::Clock, Kind::Clock, Kind::Time]);
        for name in ["frames", "failure"] {
            assert_eq!(host(&engine, packets(framed(&seed(name)[1..])).into_iter()), Ok(()), "{name}");
        }
        assert_eq!(host(&engine, split(&seed("packets")[1..])), Ok(()));
        assert_eq!(host(&engine, packets(all[..2].to_vec()).into_iter()), Ok(()));
        assert_eq!(host(&engine, packets(all).into_iter()), Err(Violation::Unexpected));
    }

    /// A process that reports a value of several lines, or no value, cannot write more than the line of its answer.
    #[test]
    fn an_answer_is_one_line() {
        let engine = Engine::default();
        for json in [r"[1,\n2]", r"1\r\n", r#"1}\n{\"verdict\":\"ok\""#, "", r"\n", r#"1, \"x\": 2"#, "[[[["] {
            let report = encoded(Kind::Report, &REPORT.replace("JSON", json)).unwrap();
            wire(&engine, &[b"\x01\x02\x00", &report[..]].concat());
            let call = format!(r#"{{"number":1,"place":{{"workers":[],"effect":1}},"name":"t","arguments":"{json}"}}"#);
            let call = encoded(Kind::Call, &call).unwrap();
            wire(&engine, &[b"\x01\x01\x01", &call[..], b"\xff\x02\x00", &report[..]].concat());
        }
    }
}
