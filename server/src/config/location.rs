//! Where a store is: a file or a database.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a store is.
///
/// Parsed from text: `postgres://` or `postgresql://` starts the address of a database, anything else is the path of a file.
/// Shown without the password.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// A SQLite file.
    File(PathBuf),
    /// The address of a PostgreSQL database, with its password.
    Postgres(String),
}

impl FromStr for StoreLocation {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match is_address(text) {
            true => StoreLocation::Postgres(text.to_owned()),
            false => StoreLocation::File(text.into()),
        })
    }
}

impl StoreLocation {
    /// Returns whether several processes can use the store at once.
    pub fn is_shared(&self) -> bool {
        matches!(self, StoreLocation::Postgres(_))
    }

    /// Returns the texts of the address that must not be shown: its password, as it is written and as it is meant.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let StoreLocation::Postgres(address) = self else { return Vec::new() };
        let rest = address.split_once("://").map_or("", |(_, rest)| rest);
        let (base, options) = rest.split_once('?').unwrap_or((rest, ""));
        let user = base.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
        let options = options.split('&').filter_map(|option| option.strip_prefix("password="));
        let written: Vec<&str> = user.into_iter().chain(options).filter(|password| !password.is_empty()).collect();
        written.into_iter().flat_map(|password| [password.to_owned(), decoded(password)]).collect()
    }
}

/// Returns a text of an address without its escapes.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.first_chunk::<2>().and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &after[2..]).0,
            None => (bytes.push(*first), rest = after).0,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn is_address(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::File(path) => path.display().fmt(f),
            StoreLocation::Postgres(address) => f.write_str(&without_password(address)),
        }
    }
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreLocation({self})")
    }
}

/// Returns an address without its password and options.
///
/// A password may have characters that should be escaped: in doubt more is left out.
pub(crate) fn without_password(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let (base, options) = rest.split_once('?').unwrap_or((rest, ""));
    match base.rsplit_once('@') {
        _ if options.contains('@') => format!("{scheme}://"),
        Some((user, place)) => format!("{scheme}://{}@{place}", user.split(':').next().unwrap_or_default()),
        None => format!("{scheme}://{base}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_shown_without_its_password() {
        for (text, shown) in [
            ("runs.sqlite", "runs.sqlite"),
            ("/var/lib/a:b@c", "/var/lib/a:b@c"),
            ("postgres://db/runs", "postgres://db/runs"),
            ("postgres://me@db:99/runs?sslmode=require", "postgres://me@db:99/runs"),
            ("postgresql://me:secret@db/runs", "postgresql://me@db/runs"),
            ("postgresql://me:sec:r/e@t@db/runs?password=secret", "postgresql://me@db/runs"),
            ("postgres://me:sec?ret@db/runs", "postgres://"),
            ("postgres://me@db/runs?password=a@b", "postgres://"),
        ] {
            let location: StoreLocation = text.parse().unwrap();
            assert_eq!(location.to_string(), shown);
            assert_eq!(format!("{location:?}"), format!("StoreLocation({shown})"));
            assert_eq!(location.is_shared(), text.starts_with("postgres"));
        }
    }

    #[test]
    fn the_secrets_of_a_location_are_its_passwords() {
        for (text, secrets) in [
            ("/var/lib/a:b@c", &[][..]),
            ("postgres://me@db:99/runs", &[]),
            ("postgres://me:se%3Acr%40t@db/runs", &["se%3Acr%40t", "se:cr@t"]),
            ("postgres://me:50%@db/runs?connections=4&password=a%zb", &["50%", "50%", "a%zb", "a%zb"]),
        ] {
            assert_eq!(text.parse::<StoreLocation>().unwrap().secrets(), secrets, "{text}");
        }
    }
}
