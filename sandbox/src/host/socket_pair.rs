//! The sockets of a run: to its process, and to the template.

use crate::wire::frames;
use crate::wire::messages::Notice;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;

/// Two sockets: one to a run's process, one to the template about that process. The template keeps its ends, so that
/// one run after the other can use them.
#[derive(Debug)]
pub(crate) struct SocketPair {
    pub(crate) id: u64,
    pub(crate) run: OwnedFd,
    status: OwnedFd,
}

/// A message of a template. Without a notice it means that the template has ended.
pub(crate) struct TemplateMessage {
    pub(crate) notice: Option<Notice>,
    pub(crate) process: Option<OwnedFd>,
}

impl SocketPair {
    /// Creates a pair. Also returns the template's ends of its two sockets. No pair has the number 0.
    pub(crate) fn new(id: u64) -> io::Result<(SocketPair, [OwnedFd; 2])> {
        let ((run, their_run), (status, their_status)) = (frames::pair()?, frames::pair()?);
        Ok((SocketPair { id, run, status }, [their_run, their_status]))
    }

    pub(crate) fn status(&self) -> PollFd<'_> {
        PollFd::new(&self.status, PollFlags::IN)
    }

    /// Returns the socket to the template.
    #[cfg(feature = "async")]
    pub(crate) fn status_fd(&self) -> &OwnedFd {
        &self.status
    }

    /// Receives the next message of the template, if there is one.
    pub(crate) fn receive(&self) -> Option<TemplateMessage> {
        let mut bytes = [0; Notice::BYTES];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let read = loop {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            match rustix::net::recvmsg(&self.status, &mut parts, &mut ancillary, flags) {
                Ok(message) => break message.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return None,
                Err(_) => break 0,
            }
        };
        let fds = ancillary.drain().filter_map(|part| match part {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        Some(TemplateMessage { process: fds.flatten().next(), notice: Notice::read(&bytes[..read]) })
    }
}
