//! What the service as a whole may take.

use super::document::Document;
use super::error::ConfigError;
use serde::Deserialize;

/// How safe an answered request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// It survives the death of the process, not that of the machine: SQLite's `synchronous = NORMAL`.
    #[default]
    Process,
    /// It survives a power failure: SQLite's `synchronous = FULL`.
    Machine,
}

macro_rules! service {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr, $range:expr;)*) => {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table")]
        pub(super) struct ServiceFile {
            durability: Option<Durability>,
            $($name: Option<u64>,)*
        }

        /// What the service as a whole may take: the table `[service]`.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Service {
            /// How safe an answered request is.
            pub durability: Durability,
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Service {
            fn default() -> Self {
                Service { durability: Durability::default(), $($name: $default,)* }
            }
        }

        impl Service {
            /// Each number with what it may be.
            #[cfg(test)]
            pub(super) const RANGES: &[(&str, std::ops::RangeInclusive<u64>)] = &[$((stringify!($name), $range),)*];

            pub(super) fn read(file: &ServiceFile, document: &Document<'_>) -> Result<Self, ConfigError> {
                let usual = Service::default();
                Ok(Service {
                    durability: file.durability.unwrap_or_default(),
                    $($name: match file.$name {
                        None => usual.$name,
                        Some(given) => {
                            let path = ["service", stringify!($name)];
                            let known = document.within(&path, given, $range)?;
                            <$type>::try_from(known).unwrap_or(<$type>::MAX)
                        }
                    },)*
                })
            }
        }
    };
}

/// Four runs for each core: most of a run is waiting for tools.
fn concurrency() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| cores.get().saturating_mul(4)).min(100_000)
}

service! {
    /// Connections open at once; more are closed.
    max_connections: usize = 2_048, 1..=1_000_000;
    /// Bytes of a request's body.
    max_body_bytes: usize = 16_777_216, 1_024..=1_073_741_824;
    /// Runs under way at once. Four for each core by default.
    concurrency: usize = concurrency(), 1..=100_000;
    /// Runs that wait for a place; more are turned away with 429.
    queue: usize = 1_024, 0..=1_000_000;
    /// How long a run waits for a place.
    queue_seconds: u64 = 10, 0..=3_600;
    /// How long a client may take to send the head of a request.
    header_seconds: u64 = 10, 1..=600;
    /// How long a client may take to send the body of a request.
    body_seconds: u64 = 30, 1..=3_600;
    /// How long runs under way may go on after the service was told to end.
    drain_seconds: u64 = 30, 0..=3_600;
    /// How long a finished run stays in the store.
    keep_finished_hours: u64 = 168, 1..=87_600;
    /// A run that waits for somebody this long gives up its place until there is an answer.
    park_after_ms: u64 = 250, 0..=3_600_000;
    /// Runs of a tenant in the store, finished ones among them.
    max_runs_stored: u64 = 1_000_000, 1..=100_000_000;
    /// Sessions of a tenant in the store.
    max_sessions: usize = 100_000, 1..=10_000_000;
}
