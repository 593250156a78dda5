//! Limits of the service as a whole.

use super::document::Document;
use super::error::ConfigError;
use serde::Deserialize;

/// What an acknowledged request survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The death of the process, but not a power failure: SQLite's `synchronous = NORMAL`.
    Process,
    /// A power failure: SQLite's `synchronous = FULL`.
    #[default]
    Machine,
}

macro_rules! service {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr, $range:expr;)*) => {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table")]
        pub(super) struct ServiceFile {
            durability: Option<Durability>,
            socket_mode: Option<String>,
            $($name: Option<u64>,)*
        }

        /// Limits of the service as a whole: the table `[service]`.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Service {
            /// What an acknowledged request survives.
            pub durability: Durability,
            /// The file mode of a Unix socket that the service listens on.
            pub socket_mode: u32,
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Default for Service {
            fn default() -> Self {
                Service { durability: Durability::default(), socket_mode: SOCKET_MODE, $($name: $default,)* }
            }
        }

        impl Service {
            /// The range of each number.
            #[cfg(test)]
            pub(super) const RANGES: &[(&str, std::ops::RangeInclusive<u64>)] = &[$((stringify!($name), $range),)*];

            pub(super) fn read(file: &ServiceFile, document: &Document<'_>) -> Result<Self, ConfigError> {
                let usual = Service::default();
                Ok(Service {
                    durability: file.durability.unwrap_or_default(),
                    socket_mode: socket_mode(file.socket_mode.as_deref(), document)?,
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

/// Only the user of the service may connect.
const SOCKET_MODE: u32 = 0o600;

/// Reads a file mode.
fn socket_mode(given: Option<&str>, document: &Document<'_>) -> Result<u32, ConfigError> {
    let Some(given) = given else { return Ok(SOCKET_MODE) };
    let digits = given.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(given);
    let is_octal = digits.len() == 3 && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    u32::from_str_radix(digits, 8).ok().filter(|_| is_octal).ok_or_else(|| {
        let message = format!("{given:?} is not a file mode");
        document.error(&["service", "socket_mode"], message, "write three octal digits, such as \"660\"")
    })
}

/// Four runs per core: a run spends most of its time waiting for tools.
fn concurrency() -> usize {
    std::thread::available_parallelism().map_or(4, |cores| cores.get().saturating_mul(4)).min(100_000)
}

service! {
    /// The maximum number of open connections. At the limit, a new one closes the one that has been idle longest, or is
    /// closed.
    max_connections: usize = 2_048, 1..=1_000_000;
    /// The maximum bytes of a request body.
    max_body_bytes: usize = 16_777_216, 1_024..=1_073_741_824;
    /// The maximum bytes of the request bodies of each tenant that are being read at once.
    max_bodies_bytes: usize = 134_217_728, 1_048_576..=1_099_511_627_776;
    /// Slots: runs in progress at once. Four per core by default.
    concurrency: usize = concurrency(), 1..=100_000;
    /// The maximum number of runs, other than durable ones, that wait for a slot; more get 429.
    queue: usize = 1_024, 0..=1_000_000;
    /// How long a run that is not durable waits for a slot.
    queue_seconds: u64 = 10, 0..=3_600;
    /// How long a connection may be idle, from when it is accepted and between requests.
    header_seconds: u64 = 10, 1..=600;
    /// How long sending the body of a request may take.
    body_seconds: u64 = 30, 1..=3_600;
    /// How long runs continue after shutdown starts.
    drain_seconds: u64 = 30, 0..=3_600;
    /// How long a finished run stays in the store.
    keep_finished_hours: u64 = 168, 1..=87_600;
    /// How long a session stays in the store after its last change.
    keep_sessions_hours: u64 = 168, 1..=87_600;
    /// The maximum age of a run that is not done: older ones are cancelled. 0 is no limit.
    max_run_hours: u64 = 0, 0..=87_600;
    /// How long a worker has a run without renewing its lease, before another one takes the run over.
    lease_seconds: u64 = 15, 1..=3_600;
    /// How long a run waits for outside answers before it is suspended and frees its slot.
    suspend_after_ms: u64 = 250, 0..=3_600_000;
    /// The maximum number of runs of each tenant in the store, including finished ones.
    max_runs_stored: u64 = 1_000_000, 1..=100_000_000;
    /// The maximum bytes of each tenant's runs in the store: their requests, journals and answers.
    max_bytes_stored: u64 = 10_737_418_240, 1_048_576..=1_125_899_906_842_624;
    /// The maximum number of sessions of each tenant in the store.
    max_sessions: usize = 100_000, 1..=10_000_000;
    /// The maximum bytes of each tenant's sessions in the store, with the states that can be undone.
    max_sessions_bytes: u64 = 10_737_418_240, 1_048_576..=1_125_899_906_842_624;
}
