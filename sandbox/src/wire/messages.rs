//! Messages between the host and a template: orders for children in one direction, notices about them in the other.

use crate::kernel::unix::Death;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A child that the host orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Address space beyond the template's, in bytes; 0 means unlimited.
    pub(crate) memory: u64,
    /// Processor time in seconds; 0 means unlimited.
    pub(crate) cpu_s: u64,
    /// When the child must be dead, in nanoseconds of the monotonic clock; 0 means never.
    pub(crate) kill_at: u64,
    /// The number of the socket pair whose ends the child gets.
    pub(crate) pair: u64,
    /// It serves the runs of a domain, one after the other.
    pub(crate) stays: bool,
    /// It may start threads.
    pub(crate) threads: bool,
    #[cfg(feature = "testing")]
    pub(crate) test: TestOrder,
}

/// For tests: makes a child do something else than take a job.
#[cfg(feature = "testing")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestOrder {
    /// The number of the payload to run in place of a job; 0 for a job.
    pub(crate) payload: u64,
    /// The setup step that fails, counted from 1; 0 for none.
    pub(crate) fail_step: u64,
}

/// A message of the host to a template. Every part is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// A child to be forked. The first order for a pair comes with the template's ends of its two sockets: the channel
    /// to the host, which the child gets, and the socket for notices.
    pub(crate) order: Option<Order>,
    /// The deadline of a child that now has its job.
    pub(crate) deadline: Option<Deadline>,
    /// The number of the pair for whose process the host wants a descriptor.
    pub(crate) show: Option<u64>,
}

/// The deadline of the child that uses a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Deadline {
    pub(crate) pair: u64,
    /// In nanoseconds of the monotonic clock.
    pub(crate) kill_at: u64,
}

impl Message {
    /// An upper bound for the size of a message.
    pub(crate) const BYTES: usize = 128;

    /// Writes the message into a buffer, without allocating.
    pub(crate) fn write(self, buffer: &mut [u8; Message::BYTES]) -> &[u8] {
        written(&self, buffer)
    }

    /// Reads a message, which must take all of the bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Message> {
        read(bytes)
    }
}

impl Order {
    /// Creates an order for a job with these limits.
    pub(crate) fn new(memory: u64, cpu_s: u64) -> Order {
        Order {
            memory,
            cpu_s,
            kill_at: 0,
            pair: 0,
            stays: false,
            threads: false,
            #[cfg(feature = "testing")]
            test: TestOrder::default(),
        }
    }

    /// Returns true if a child made for this order can serve the other one.
    pub(crate) fn serves(&self, other: &Order) -> bool {
        let limits = |order: &Order| Order { kill_at: 0, pair: 0, ..*order };
        #[cfg(feature = "testing")]
        if self.test.payload != 0 {
            return false;
        }
        limits(self) == limits(other)
    }
}

fn written<'a>(value: &impl Serialize, buffer: &'a mut [u8]) -> &'a [u8] {
    postcard::to_slice(value, buffer).map_or(&[], |bytes| bytes)
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// A notice of a template about a child, over a socket shared only by the two of them and the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Notice {
    /// The child is alive, or not reaped yet. A descriptor of it is attached, if there is room for one.
    Shown,
    /// The child could not be created; with the error number.
    Refused(i32),
    /// The child is reaped; `late` if the template had to kill it.
    Ended { death: Death, late: bool },
}

impl Notice {
    /// An upper bound for the size of a notice.
    pub(crate) const BYTES: usize = 64;

    /// Writes the notice into a buffer, without allocating.
    pub(crate) fn write(self, buffer: &mut [u8; Notice::BYTES]) -> &[u8] {
        written(&self, buffer)
    }

    /// Reads a notice, which must take all of the bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Notice> {
        read(bytes)
    }
}

/// Sends a message to a template, over the host's end of its channel.
pub(crate) fn send(control: &OwnedFd, message: Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    // A stopped template fills its channel and is replaced then.
    send_bytes(control, message.write(&mut [0; Message::BYTES]), fds)
}

/// Sends the host a notice about a child, optionally with a descriptor of it. Allocates nothing.
pub(crate) fn notify(status: &OwnedFd, notice: Notice, process: Option<BorrowedFd<'_>>) -> io::Result<()> {
    send_bytes(status, notice.write(&mut [0; Notice::BYTES]), process.as_slice())
}

fn send_bytes(socket: &OwnedFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for a message of the host, and the two descriptors of a new pair if attached. An error if the host is gone.
/// Bytes that are not a message are read as an empty one.
pub(crate) fn receive(control: &OwnedFd) -> io::Result<(Message, Option<(OwnedFd, OwnedFd)>)> {
    let mut bytes = [0; Message::BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut part = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(control, &mut part, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let (run, status) = fds.next().map_or((None, None), |mut fds| (fds.next(), fds.next()));
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let is_whole = !received.flags.contains(ReturnFlags::TRUNC);
    let message = bytes.get(..received.bytes).filter(|_| is_whole).and_then(Message::read);
    Ok((message.unwrap_or_default(), run.zip(status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_notices_survive_the_way() {
        let max = u64::MAX;
        let order = Order { kill_at: max, pair: max, ..Order::new(max, max) };
        for order in [None, Some(order)] {
            for deadline in [None, Some(Deadline { pair: max, kill_at: max })] {
                for show in [None, Some(max)] {
                    let message = Message { order, deadline, show };
                    let mut buffer = [0; Message::BYTES];
                    let bytes = message.write(&mut buffer);
                    assert_eq!(Message::read(bytes), Some(message));
                    assert_eq!(Message::read(&bytes[..bytes.len() - 1]), None);
                    assert_eq!(Message::read(&[bytes, &[0]].concat()), None);
                }
            }
        }
        let death = Death { status: i32::MIN, cpu_us: max, rss_peak_bytes: max };
        for notice in [Notice::Shown, Notice::Refused(i32::MIN), Notice::Ended { death, late: true }] {
            let mut buffer = [0; Notice::BYTES];
            assert_eq!(Notice::read(notice.write(&mut buffer)), Some(notice));
        }
        assert_eq!(Notice::read(&[9; 32]), None);
        assert_eq!(Notice::read(&[]), None);
    }
}
