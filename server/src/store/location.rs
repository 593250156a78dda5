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
pub(super) fn without_password(address: &str) -> String {
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
            assert_eq!(matches!(location, StoreLocation::Postgres(_)), text.starts_with("postgres"));
        }
    }
}
