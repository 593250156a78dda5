//! Where the service listens: an address with a port, or a Unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What the path of a Unix socket follows.
const UNIX: &str = "unix:";

/// Where a service listens.
///
/// ```
/// use lisp_server::config::ListenAddress;
/// let address: ListenAddress = "unix:/run/ptc.sock".parse()?;
/// assert_eq!(address, ListenAddress::Unix("/run/ptc.sock".into()));
/// assert_eq!("[::1]:7117".parse::<ListenAddress>()?.to_string(), "[::1]:7117");
/// # Ok::<(), lisp_server::config::BadAddress>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address and a port; port 0 is any free one.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The text is not an address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not an address; write an address and a port, such as 127.0.0.1:7117 or [::1]:7117, or unix:/run/ptc.sock"
)]
pub struct BadAddress;

impl FromStr for ListenAddress {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        match text.strip_prefix(UNIX) {
            Some("") => Err(BadAddress),
            Some(path) => Ok(ListenAddress::Unix(path.into())),
            None => text.parse().map(ListenAddress::Tcp).map_err(|_| BadAddress),
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        ListenAddress::Tcp(address)
    }
}

impl ListenAddress {
    /// Returns the address with the path of a socket resolved against a folder.
    pub(super) fn within(self, resolve: impl FnOnce(&Path) -> PathBuf) -> Self {
        match self {
            ListenAddress::Unix(path) => ListenAddress::Unix(resolve(&path)),
            address => address,
        }
    }

    /// Returns the address and port; `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) => None,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => address.fmt(f),
            ListenAddress::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}
