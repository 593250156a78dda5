//! Frames between a run's process and the host, over a socket that preserves packet boundaries.
//!
//! A packet is a header and a part of a frame. The header has the kind of the frame, the call it is about, the length
//! of the frame, and the position of the part in it. Anything else than the next part is a violation, and so is a frame
//! that is too long for its kind. A packet whose first byte is below those of the kinds is text on standard error.

use super::spin::Spin;
use super::violation::Violation;
use crate::kernel::sys;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Creates the two ends of a channel.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// To the host: progress figures of the program
    Figures = 0xf5,
    /// To the child: the time; empty if the clock failed
    Time,
    /// To the host: asks for the time of its clock; nothing else is sent before the answer
    Clock,
    /// To the child: when the run started, and the job. Its number is [`AWAKE`] if the child may busy-wait for replies
    Job,
    /// To the child: the reply to a call
    Reply,
    /// To the child: the next program of a session
    Turn,
    /// To the host: lines printed
    Printed,
    /// To the host: a tool to call
    Call,
    /// To the host: the report
    Report,
    /// To the host: the setup step that failed, before anything ran
    Setup,
}

/// No UTF-8 text starts with this byte or a higher one.
const FIRST: u8 = Kind::Figures as u8;
const HEADER: usize = 13;
/// The number of a [`Kind::Turn`] that asks for the definitions.
pub(crate) const MEMORY: u32 = 1;
/// The number of a [`Kind::Turn`] that asks for everything that the session is saved as.
pub(crate) const SAVE: u32 = 2;
/// The number of a [`Kind::Turn`] that checks what the session was given.
pub(crate) const CHECK: u32 = 4;
/// The number of a [`Kind::Turn`] that runs nothing: it says when the replay of a record ended.
pub(crate) const LIVE: u32 = 3;
/// The number of a [`Kind::Job`] whose process has a processor to itself while it waits.
pub(crate) const AWAKE: u32 = 1;
/// The maximum size of a packet, in bytes.
pub(crate) const PACKET: usize = 60 << 10;

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        const KINDS: [Kind; 10] = [
            Kind::Figures,
            Kind::Time,
            Kind::Clock,
            Kind::Job,
            Kind::Reply,
            Kind::Turn,
            Kind::Printed,
            Kind::Call,
            Kind::Report,
            Kind::Setup,
        ];
        KINDS.into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// A complete frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// The call it is about, if there can be several.
    pub(crate) id: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Splits a frame into packets.
pub(crate) fn packets(kind: Kind, id: u32, bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let total = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let room = PACKET - HEADER;
    (0..bytes.len().div_ceil(room).max(1)).map(move |index| {
        let start = index * room;
        let part = &bytes[start..bytes.len().min(start + room)];
        let mut packet = Vec::with_capacity(HEADER + part.len());
        packet.push(kind as u8);
        for word in [id, total, u32::try_from(start).unwrap_or(u32::MAX)] {
            packet.extend_from_slice(&word.to_le_bytes());
        }
        packet.extend_from_slice(part);
        packet
    })
}

/// Encodes a value as the bytes of a frame.
pub(crate) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    postcard::to_allocvec(value).map_err(io::Error::other)
}

/// Decodes a value written by [`encode`]; it must take all of the bytes.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> io::Result<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(io::ErrorKind::InvalidData.into()),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Converts a moment of this process to the clock that all processes share, in nanoseconds.
pub(crate) fn moment(at: Instant) -> u64 {
    let ago = u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX);
    sys::monotonic_ns().saturating_sub(ago)
}

/// Converts a moment returned by [`moment`] back, in the other process.
pub(crate) fn moment_of(ns: u64) -> Instant {
    let (now, ago) = (Instant::now(), sys::monotonic_ns().saturating_sub(ns));
    now.checked_sub(Duration::from_nanos(ago)).unwrap_or(now)
}

/// Encodes a time as the bytes of a frame.
pub(crate) fn time_bytes(time: Option<i64>) -> Vec<u8> {
    time.map(|time| time.to_le_bytes().to_vec()).unwrap_or_default()
}

/// Decodes a time written by [`time_bytes`].
pub(crate) fn time_of(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_le_bytes)
}

/// The result of taking a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A frame is complete.
    Frame(Frame),
    /// More parts follow.
    Part,
    /// The packet is text.
    Text,
}

/// Assembles frames from packets.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    in_progress: Option<(Frame, usize)>,
}

impl Assembler {
    /// Takes a packet. `max` returns the maximum length of a frame of a kind.
    pub(crate) fn take(&mut self, packet: &[u8], max: impl Fn(Kind) -> usize) -> Result<Taken, Violation> {
        match packet.first() {
            None => return Err(Violation::Garbage),
            Some(&byte) if byte < FIRST => return Ok(Taken::Text),
            Some(_) => {}
        }
        if packet.len() < HEADER {
            return Err(Violation::Garbage);
        }
        let (header, part) = packet.split_at(HEADER);
        let kind = Kind::of(header[0]).ok_or(Violation::Garbage)?;
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (id, total, start) = (word(1), word(5) as usize, word(9) as usize);
        if total > max(kind) {
            return Err(Violation::TooLong);
        }
        let (mut frame, expected) = match self.in_progress.take() {
            None => (Frame { kind, id, bytes: Vec::new() }, total),
            Some(in_progress) => in_progress,
        };
        let fits = (frame.kind, frame.id, expected) == (kind, id, total) && start == frame.bytes.len();
        if !fits || part.len() > total - start || (part.is_empty() && total > 0) {
            return Err(Violation::OutOfPlace);
        }
        frame.bytes.extend_from_slice(part);
        if frame.bytes.len() == total {
            return Ok(Taken::Frame(frame));
        }
        self.in_progress = Some((frame, total));
        Ok(Taken::Part)
    }
}

/// Sends a frame, and waits for room without limit. For the child.
pub(crate) fn send(socket: &OwnedFd, kind: Kind, id: u32, bytes: &[u8]) -> io::Result<()> {
    for packet in packets(kind, id, bytes) {
        loop {
            match rustix::net::send(socket, &packet, SendFlags::NOSIGNAL) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Waits for a frame; `None` if the host is gone. For the child, which trusts the host.
pub(crate) fn receive(socket: &OwnedFd) -> io::Result<Option<Frame>> {
    assembled(&mut Vec::new(), |buffer| next_packet(socket, buffer))
}

fn assembled(
    buffer: &mut Vec<u8>,
    mut next: impl FnMut(&mut Vec<u8>) -> Result<usize, Errno>,
) -> io::Result<Option<Frame>> {
    let mut assembler = Assembler::default();
    loop {
        let read = match next(buffer) {
            Ok(read) => read,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if read == 0 {
            return Ok(None);
        }
        match assembler.take(&buffer[..read], |_| u32::MAX as usize) {
            Ok(Taken::Frame(frame)) => return Ok(Some(frame)),
            Ok(Taken::Part) => {}
            Ok(Taken::Text) => return Err(io::ErrorKind::InvalidData.into()),
            Err(violation) => return Err(io::Error::other(violation)),
        }
    }
}

/// Receives the replies to the calls of one run. For the child.
#[derive(Debug)]
pub(crate) struct Replies {
    /// It has room for any packet. The kernel allocates only the pages written to.
    buffer: Vec<u8>,
    /// Set if replies may be waited for with a busy wait.
    spin: Option<Spin>,
}

impl Replies {
    pub(crate) fn new(awake: bool) -> Replies {
        Replies { buffer: Vec::new(), spin: awake.then(Spin::default) }
    }

    /// Waits for a frame; `None` if the host is gone.
    pub(crate) fn receive(&mut self, socket: &OwnedFd) -> io::Result<Option<Frame>> {
        let Replies { buffer, spin } = self;
        assembled(buffer, |buffer| {
            let mut take = |flags| {
                buffer.clear();
                buffer.reserve_exact(PACKET);
                rustix::net::recv(socket, rustix::buffer::spare_capacity(buffer), flags).map(|(read, _)| read)
            };
            let now = || match take(RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => None,
                taken => Some(taken),
            };
            let taken = spin.as_mut().and_then(|spin| spin.wait(now));
            taken.unwrap_or_else(|| take(RecvFlags::empty()))
        })
    }
}

/// Waits for a packet, and writes no more of the buffer than it needs: each page written to must be allocated or
/// copied.
fn next_packet(socket: &OwnedFd, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    let (_, length) = rustix::net::recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::TRUNC)?;
    buffer.clear();
    buffer.reserve_exact(length.max(1));
    Ok(rustix::net::recv(socket, rustix::buffer::spare_capacity(buffer), RecvFlags::empty())?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: fn(Kind) -> usize = |_| usize::MAX;

    fn assembled(packets: impl Iterator<Item = Vec<u8>>) -> Result<Vec<Taken>, Violation> {
        let mut assembler = Assembler::default();
        packets.map(|packet| assembler.take(&packet, ANY)).collect()
    }

    #[test]
    fn what_is_sent_arrives() {
        for length in [0, 1, PACKET - HEADER, PACKET - HEADER + 1, 3 * PACKET] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let taken = assembled(packets(Kind::Call, 7, &bytes)).unwrap();
            let (last, parts) = taken.split_last().unwrap();
            assert!(parts.iter().all(|part| *part == Taken::Part));
            assert_eq!(*last, Taken::Frame(Frame { kind: Kind::Call, id: 7, bytes }));
        }
    }

    #[test]
    fn replies_arrive_awake_and_asleep() {
        let late = Duration::from_millis(2);
        for (awake, wait) in [(false, Duration::ZERO), (false, late), (true, Duration::ZERO), (true, late)] {
            let (host, guest) = pair().unwrap();
            let sender = std::thread::spawn(move || {
                for length in [1, 3 * PACKET, 0] {
                    std::thread::sleep(wait);
                    send(&host, Kind::Reply, 7, &vec![5; length]).unwrap();
                }
            });
            let mut replies = Replies::new(awake);
            for length in [1, 3 * PACKET, 0] {
                let frame = replies.receive(&guest).unwrap();
                assert_eq!(frame, Some(Frame { kind: Kind::Reply, id: 7, bytes: vec![5; length] }));
            }
            sender.join().unwrap();
            assert_eq!(replies.receive(&guest).unwrap(), None);
        }
    }

    #[test]
    fn whatever_comes_is_taken_or_refused() {
        // Packets that are almost right: headers of real ones with some bytes changed, and parts of any length.
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let max = |_| 5_000;
        let (mut frames, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut assembler = Assembler::default();
            for part in 0..next(4) {
                let length = next(3_000) as usize;
                let mut packet = packets(Kind::Call, 1, &vec![7; length]).next().unwrap_or_default();
                if part > 0 {
                    packet[9..13].copy_from_slice(&(next(3_000) as u32).to_le_bytes());
                }
                if next(3) == 0 {
                    let at = next(packet.len() as u64) as usize;
                    packet[at] = next(256) as u8;
                }
                packet.truncate(next(packet.len() as u64 * 2) as usize);
                match assembler.take(&packet, max) {
                    Ok(Taken::Frame(frame)) => {
                        assert!(frame.bytes.len() <= 5_000);
                        frames += 1;
                    }
                    Ok(_) => {}
                    Err(_) => {
                        refused += 1;
                        break;
                    }
                }
            }
        }
        assert!(frames > 1_000 && refused > 1_000, "{frames} {refused}");
    }

    #[test]
    fn violations() {
        let whole: Vec<Vec<u8>> = packets(Kind::Report, 1, &vec![0; 2 * PACKET]).collect();
        let refused = |packets: &[Vec<u8>]| assembled(packets.iter().cloned()).unwrap_err();
        assert_eq!(refused(&[vec![]]), Violation::Garbage);
        assert_eq!(refused(&[vec![0xff; 40]]), Violation::Garbage);
        assert_eq!(refused(&[whole[0][..5].to_vec()]), Violation::Garbage);
        assert_eq!(refused(&[whole[1].clone()]), Violation::OutOfPlace);
        assert_eq!(refused(&[whole[0].clone(), whole[0].clone()]), Violation::OutOfPlace);
        assert_eq!(refused(&[whole[0].clone(), whole[2].clone()]), Violation::OutOfPlace);
        let mut long = whole[0].clone();
        long[5..9].copy_from_slice(&20_u32.to_le_bytes());
        assert_eq!(refused(&[long]), Violation::OutOfPlace);
        let max = |_| 100;
        assert_eq!(Assembler::default().take(&whole[0], max), Err(Violation::TooLong));
        let mut huge = packets(Kind::Report, 1, b"x").next().unwrap();
        huge[5..9].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Assembler::default().take(&huge, max), Err(Violation::TooLong));
        assert_eq!(Assembler::default().take(b"memory", max), Ok(Taken::Text));
    }
}
