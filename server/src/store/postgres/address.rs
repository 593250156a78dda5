//! The address of a database: `postgres://user:password@host:port/database?options`.

use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

/// The number of connections of a process, unless the address says otherwise.
const CONNECTIONS: usize = 16;
const MAX_CONNECTIONS: usize = 1_000;
/// The time for one attempt to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a database may leave a message without acknowledging it.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// The value of the library, which stands for "not given".
const NO_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// The options that an error names.
const OPTIONS: [&str; 6] =
    ["sslmode", "sslrootcert", "connections", "connect_timeout", "application_name", "target_session_attrs"];

/// What the certificate of the database must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Anything.
    Nothing,
    /// Issued by a known authority.
    Issuer,
    /// Issued by a known authority, for this host.
    IssuerAndHost,
}

/// Where a database is, and how to connect to it.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) check: Check,
    /// The file with the certificates of known authorities; the system's if `None`.
    pub(super) root: Option<PathBuf>,
    pub(super) connections: usize,
}

impl Address {
    /// Reads an address. The password is that of the environment, if the address has none.
    ///
    /// # Errors
    /// If the address is malformed. The error does not repeat values of the address, because one of them is the password.
    pub(super) fn parse(address: &str, password: Option<String>) -> Result<Self, String> {
        let (base, options) = address.split_once('?').unwrap_or((address, ""));
        if options.contains('@') || base.matches('@').count() > 1 {
            // What looks like the host or an option may be a part of the password.
            return Err("write ?, /, @ and : in values as %3F, %2F, %40 and %3A".to_owned());
        }
        let (mut mode, mut root, mut connections, mut rest) = ("prefer", None, CONNECTIONS, Vec::new());
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("sslmode", value)) => mode = value,
                Some(("sslrootcert", "system")) => root = None,
                Some(("sslrootcert", value)) => root = Some(PathBuf::from(decoded(value)?)),
                Some(("connections", value)) => connections = connections_of(value)?,
                _ => rest.push(option),
            }
        }
        let (ssl_mode, check) = match (mode, &root) {
            ("disable", _) => (SslMode::Disable, Check::Nothing),
            ("prefer", _) => (SslMode::Prefer, Check::Nothing),
            // As libpq does it.
            ("require", None) => (SslMode::Require, Check::Nothing),
            ("require", Some(_)) | ("verify-ca", _) => (SslMode::Require, Check::Issuer),
            ("verify-full", _) => (SslMode::Require, Check::IssuerAndHost),
            _ => return Err("sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned()),
        };
        let text = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let mut config: Config = text.parse().map_err(|error| malformed(&error))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("it has no host: write postgres://user@host/database".to_owned());
        }
        if let Some(password) = password.filter(|_| config.get_password().is_none()) {
            config.password(password);
        }
        config.ssl_mode(ssl_mode);
        add_defaults(&mut config);
        Ok(Address { config, check, root, connections })
    }
}

fn add_defaults(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("ptcl");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED);
    }
    if config.get_keepalives_idle() == NO_KEEPALIVE_IDLE {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
    if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
        // One of them is the primary.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

fn connections_of(value: &str) -> Result<usize, String> {
    let connections = value.parse().ok().filter(|n| (1..=MAX_CONNECTIONS).contains(n));
    connections.ok_or_else(|| format!("connections must be a number from 1 to {MAX_CONNECTIONS}"))
}

/// Returns a value of the address without its escapes.
fn decoded(value: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit =
            || rest.next().and_then(|digit| char::from(digit).to_digit(16)).and_then(|n| u8::try_from(n).ok());
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err("% must be followed by two hexadecimal digits".to_owned());
        };
        bytes.push(high * 16 + low);
    }
    String::from_utf8(bytes).map_err(|_| "sslrootcert is not UTF-8".to_owned())
}

/// Returns what the library says of an address, without what it may repeat of it.
fn malformed(error: &tokio_postgres::Error) -> String {
    let text = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let name = text.split('`').nth(1).unwrap_or_default();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match text {
        text if is_name && text.starts_with("unknown option") => {
            format!("{text}; the options are {}, and others of tokio-postgres", OPTIONS.join(", "))
        }
        text if is_name && text.starts_with("invalid value") => text,
        _ => {
            "it is malformed: write postgres://user:password@host:port/database, with ?, /, @ and : in the password as \
              %3F, %2F, %40 and %3A"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Result<Address, String> {
        Address::parse(text, None)
    }

    #[test]
    fn options_are_those_of_libpq() {
        for (options, mode, check) in [
            ("", SslMode::Prefer, Check::Nothing),
            ("?sslmode=disable", SslMode::Disable, Check::Nothing),
            ("?sslmode=require", SslMode::Require, Check::Nothing),
            ("?sslmode=require&sslrootcert=/etc/ca.pem", SslMode::Require, Check::Issuer),
            ("?sslmode=require&sslrootcert=system", SslMode::Require, Check::Nothing),
            ("?connect_timeout=3&sslmode=verify-ca", SslMode::Require, Check::Issuer),
            ("?sslmode=verify-full&connections=3", SslMode::Require, Check::IssuerAndHost),
        ] {
            let address = address(&format!("postgres://me@db/runs{options}")).unwrap();
            assert_eq!((address.config.get_ssl_mode(), address.check), (mode, check), "{options}");
        }
        let full = address("postgresql://me:pa%40ss@[::1]:99/runs?sslrootcert=%2Fa%20b&connections=3").unwrap();
        assert_eq!(full.root, Some(PathBuf::from("/a b")));
        assert_eq!(full.connections, 3);
        assert_eq!(full.config.get_password(), Some(&b"pa@ss"[..]));
    }

    #[test]
    fn the_password_of_the_environment_is_the_second_choice() {
        let of = |text| Address::parse(text, Some("env".to_owned())).unwrap().config.get_password().map(<[u8]>::to_vec);
        assert_eq!(of("postgres://me@db/runs"), Some(b"env".to_vec()));
        assert_eq!(of("postgres://me:own@db/runs"), Some(b"own".to_vec()));
    }

    #[test]
    fn an_error_says_what_to_write_and_hides_the_password() {
        for (text, error) in [
            ("postgres://me:secret@db/runs?sslmode=yes", "sslmode must be disable, prefer"),
            ("postgres://me:secret@db/runs?connections=0", "connections must be a number from 1 to 1000"),
            ("postgres://me:secret@db/runs?sslrootcert=%4", "% must be followed by two hexadecimal digits"),
            (
                "postgres://me:secret@db/runs?sslmod=red",
                "unknown option `sslmod`; the options are sslmode, sslrootcert,",
            ),
            ("postgres://me:secret@db:port/runs", "invalid value for option `port`"),
            ("postgres://me:?secret@db/runs", "in values as %3F"),
            ("postgres://me:a@b?secret=1@db/runs", "in values as %3F"),
            ("postgres://me:a@b/secret@db/runs", "in values as %3F"),
            ("postgres:///runs", "it has no host"),
        ] {
            let found = address(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
            assert!(!found.contains("secret") && !found.contains("a@b"), "{text}: {found}");
            assert!(!format!("{:?}", Address::parse("postgres://me:secret@db/runs", None)).contains("secret"));
        }
    }
}
