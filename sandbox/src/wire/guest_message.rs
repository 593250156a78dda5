//! The messages of a run's process, as read by the host: a frame is decoded into a message, or is a violation. Native
//! code in a run can reach only this and the assembling of frames.

use super::frames::{Frame, Kind};
use super::metered::{self, NotDecoded};
use super::violation::Violation;
use lisp_runtime::outcome::Place;
use lisp_runtime::remote::{Figures, GuestCall, HostHalf, PrintedBy, Report};
use serde::Deserialize;

/// The limits on the frames of a run, in bytes, as sent and decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLimits {
    printed: usize,
    call: usize,
    report: usize,
    report_decoded: usize,
}

impl FrameLimits {
    /// The maximum size of a frame about a setup step: a sentence.
    const SETUP: usize = 4_000;
    /// Five numbers.
    const FIGURES: usize = 50;
    /// Two numbers for each worker in a place.
    const CLOCK: usize = 24_000;

    /// Returns the limits for a run within its limits; `max` replaces limits that the run does not set.
    pub(crate) fn of(host: &HostHalf, max: usize, session: bool) -> Self {
        /// Two numbers of 64 bits, at seven bits per byte.
        const READING: u64 = 20;
        const REST: u64 = 1 << 20;
        let limits = host.limits();
        let least = |bytes: u64| usize::try_from(bytes.saturating_add(REST)).unwrap_or(max).min(max);
        let (result, prints) = (limits.result_bytes, limits.prints_bytes);
        let call = if result == 0 { max } else { least(result) };
        // Each worker may print as much as the program.
        let sources = limits.parallel_workers.saturating_add(2);
        let printed = if prints == 0 { max } else { least(prints.saturating_mul(sources)) };
        // What a session is saved as: its definitions and the results of its last turns.
        let kept = if session { limits.session_bytes.saturating_mul(2) } else { 0 };
        if result == 0 || prints == 0 || session && kept == 0 {
            return FrameLimits { printed, call, report: max, report_decoded: max };
        }
        // Three texts of the result's size, the prints, and the readings of the clock.
        let clock = (host.max_readings() as u64).saturating_mul(READING);
        let report = result.saturating_mul(4).saturating_add(prints).saturating_add(clock).saturating_add(kept);
        // A session's names are in the text of its memory too, where each takes five bytes more than its length.
        let names = result.saturating_mul(5);
        FrameLimits { printed, call, report: least(report), report_decoded: least(report.saturating_add(names)) }
    }

    /// Returns the maximum size of a frame of a kind.
    pub(crate) fn frame(&self, kind: Kind) -> usize {
        match kind {
            Kind::Printed => self.printed,
            Kind::Call => self.call,
            Kind::Setup => Self::SETUP,
            Kind::Figures => Self::FIGURES,
            Kind::Clock => Self::CLOCK,
            _ => self.report,
        }
    }
}

/// A message of a run's process.
#[derive(Debug)]
pub(crate) enum GuestMessage<'a> {
    /// Printed lines, of the program or of one of its workers.
    Printed(Vec<String>, PrintedBy),
    /// A tool to call.
    Call(GuestCall<'a>),
    /// The report on the program.
    Report(Box<Report>),
    /// The setup step that failed.
    Setup(String),
    /// Asks for the time, at this place of the run.
    Clock(Place),
    /// Progress figures of the program.
    Figures(Figures),
}

impl<'a> GuestMessage<'a> {
    pub(crate) fn of(frame: &'a Frame, max: &FrameLimits) -> Result<GuestMessage<'a>, Violation> {
        let bytes = &frame.bytes[..];
        match frame.kind {
            Kind::Printed => Ok(GuestMessage::Printed(read(bytes, max.printed)?, PrintedBy::of_number(frame.id))),
            Kind::Call => {
                let call: GuestCall<'_> = read(bytes, max.call)?;
                match call.number == u64::from(frame.id) {
                    true => Ok(GuestMessage::Call(call)),
                    false => Err(Violation::OutOfPlace),
                }
            }
            Kind::Report => read(bytes, max.report_decoded).map(GuestMessage::Report),
            Kind::Setup => Ok(GuestMessage::Setup(String::from_utf8_lossy(bytes).into_owned())),
            Kind::Figures => read(bytes, FrameLimits::FIGURES).map(GuestMessage::Figures),
            Kind::Clock => {
                let place = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
                place.map(GuestMessage::Clock).ok_or(Violation::Unreadable)
            }
            Kind::Job | Kind::Reply | Kind::Turn | Kind::Time => Err(Violation::Unexpected),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], max: usize) -> Result<T, Violation> {
    metered::decode(bytes, max).map_err(|error| match error {
        NotDecoded::TooLarge => Violation::TooLong,
        NotDecoded::Unreadable => Violation::Unreadable,
    })
}

#[cfg(test)]
mod tests {
    use super::super::frames;
    use super::*;
    use lisp_runtime::{Engine, Input};

    fn of(kind: Kind, bytes: Vec<u8>) -> Result<(), Violation> {
        let (_, host) = Engine::default().split("", &Input::new(), &[], false).unwrap();
        let max = FrameLimits::of(&host, 256 << 20, false);
        assert!(bytes.len() <= max.frame(kind), "it would be refused for its length");
        let frame = Frame { kind, id: 1, bytes };
        GuestMessage::of(&frame, &max).map(drop)
    }

    /// Tests that a frame that is small as sent and large when decoded is rejected for its size.
    #[test]
    fn a_frame_is_charged_by_what_it_decodes_to() {
        let many = |front: &[u8], count: usize, each: &[u8]| {
            let mut bytes = front.to_vec();
            bytes.extend(frames::encode(&(count as u64)).unwrap());
            bytes.extend(each.repeat(count));
            bytes
        };
        assert_eq!(of(Kind::Printed, many(&[], 400_000, &[0])), Ok(()));
        assert_eq!(of(Kind::Printed, many(&[], 500_000, &[0])), Err(Violation::TooLong));
        // The place of a worker, followed by a name and arguments.
        let call = |count| [many(&[1], count, &[0, 0]), vec![1, 1, b'a', 2, b'{', b'}', 0, 0, 0]].concat();
        assert_eq!(of(Kind::Call, call(1_000)), Ok(()));
        assert_eq!(of(Kind::Call, call(1_500_000)), Err(Violation::TooLong));
        // The details of an error; everything after them is zero or absent.
        let failure = |count, rest| [many(&[1, 0, 0, 0, 0], count, &[0, 1, 0]), vec![0; rest]].concat();
        let rest = (0..64).find(|&rest| of(Kind::Report, failure(10, rest)) == Ok(())).unwrap();
        assert_eq!(of(Kind::Report, failure(1_000_000, rest)), Err(Violation::TooLong));
    }
}
