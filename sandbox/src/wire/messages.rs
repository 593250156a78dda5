//! Messages between the host and a template: orders for children one way, notices about them the other.

use crate::kernel::unix::Death;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::{self, IoSlice};
use std::os::fd::{BorrowedFd, OwnedFd};

/// What the host wants of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Address space above the template's, in bytes; 0 is no limit.
    pub(crate) memory: u64,
    /// Processor time in seconds; 0 is no limit.
    pub(crate) cpu_s: u64,
    /// When the monotonic clock says this many nanoseconds it is to be dead; 0 is never.
    pub(crate) kill_at: u64,
    /// What it runs: 0 is a job, others are the payloads of tests.
    pub(crate) entry: u64,
    /// For tests: the step of the set-up that fails, counted from 1.
    pub(crate) fail_step: u64,
    /// Whose two sockets it gets. No pair has the name 0.
    pub(crate) pair: u64,
}

/// What the host tells a template: of a child that has got its job meanwhile, of one that it wants, and of one whose process
/// it wants to have a descriptor of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// With the first order for a pair come its two descriptors: the child's end of the channel to the host, and the
    /// socket for notices.
    pub(crate) order: Option<Order>,
    pub(crate) deadline: Option<Deadline>,
    /// The pair of the process.
    pub(crate) show: Option<u64>,
}

/// The child in this pair got its job, and is to be dead by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline {
    pub(crate) pair: u64,
    pub(crate) kill_at: u64,
}

/// The numbers of a message.
const WORDS: usize = 9;

impl Message {
    pub(crate) const BYTES: usize = 8 * WORDS;

    /// A pair of the name 0 stands for nothing.
    pub(crate) fn to_bytes(self) -> [u8; Message::BYTES] {
        let mut numbers = [0; WORDS];
        if let Some(Order { memory, cpu_s, kill_at, entry, fail_step, pair }) = self.order {
            numbers[..6].copy_from_slice(&[memory, cpu_s, kill_at, entry, fail_step, pair]);
        }
        if let Some(Deadline { pair, kill_at }) = self.deadline {
            numbers[6..8].copy_from_slice(&[pair, kill_at]);
        }
        numbers[8] = self.show.unwrap_or(0);
        let mut bytes = [0; Message::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Message> {
        let [memory, cpu_s, kill_at, entry, fail_step, pair, other, until, third] = words(bytes)?;
        let order = (pair > 0).then_some(Order { memory, cpu_s, kill_at, entry, fail_step, pair });
        let deadline = (other > 0).then_some(Deadline { pair: other, kill_at: until });
        Some(Message { order, deadline, show: (third > 0).then_some(third) })
    }
}

impl Order {
    /// Is a child made for this order as good for the other?
    pub(crate) fn serves(&self, other: &Order) -> bool {
        let order = |order: &Order| Order { kill_at: 0, pair: 0, ..*order };
        self.entry == 0 && order(self) == order(other)
    }
}

/// So many numbers and nothing else.
fn words<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (at, word) in words.iter_mut().enumerate() {
        *word = u64::from_le_bytes(bytes.get(8 * at..8 * at + 8)?.try_into().ok()?);
    }
    (bytes.len() == 8 * N).then_some(words)
}

/// What the template says about a child, over a socket that only the two of them and the host have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It lives, or is not reaped yet. A descriptor of it comes with this, if there is room for one.
    Shown,
    /// It could not be made: an error number.
    Refused(i32),
    /// It is reaped; `late` when the template had to kill it.
    Ended { death: Death, late: bool },
}

impl Notice {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn to_bytes(self) -> [u8; Notice::BYTES] {
        let words = match self {
            Notice::Shown => [1, 0, 0, 0],
            Notice::Refused(errno) => [2, errno.unsigned_abs().into(), 0, 0],
            Notice::Ended { death, late } => {
                let status = u64::from(death.status.cast_unsigned());
                [3 + u64::from(late), status, death.cpu_us, death.rss_peak_bytes]
            }
        };
        let mut bytes = [0; Notice::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn of(bytes: &[u8]) -> Option<Notice> {
        let [kind, status, cpu_us, rss_peak_bytes] = words(bytes)?;
        let low = i32::from_le_bytes((status as u32).to_le_bytes());
        let death = Death { status: low, cpu_us, rss_peak_bytes };
        match kind {
            1 => Some(Notice::Shown),
            2 => Some(Notice::Refused(low)),
            3 | 4 => Some(Notice::Ended { death, late: kind == 4 }),
            _ => None,
        }
    }
}

/// Tells a template something, over the host's end of its channel.
pub(crate) fn send(control: &OwnedFd, message: Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let bytes = message.to_bytes();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        // A template that is stopped fills its channel, and then has to go.
        match rustix::net::sendmsg(control, &[IoSlice::new(&bytes)], &mut ancillary, flags) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_notices_survive_the_way() {
        let order = Order { memory: 1, cpu_s: u64::MAX, kill_at: 3, entry: 4, fail_step: 5, pair: 6 };
        for order in [None, Some(order)] {
            for deadline in [None, Some(Deadline { pair: 7, kill_at: 8 })] {
                for show in [None, Some(9)] {
                    let message = Message { order, deadline, show };
                    assert_eq!(Message::of(&message.to_bytes()), Some(message));
                    assert_eq!(Message::of(&message.to_bytes()[..71]), None);
                }
            }
        }
        let death = Death { status: -1, cpu_us: 7, rss_peak_bytes: u64::MAX };
        for notice in [
            Notice::Shown,
            Notice::Refused(11),
            Notice::Ended { death, late: false },
            Notice::Ended { death: Death { status: 139, ..death }, late: true },
        ] {
            assert_eq!(Notice::of(&notice.to_bytes()), Some(notice));
        }
        assert_eq!(Notice::of(&[9; 32]), None);
    }
}
