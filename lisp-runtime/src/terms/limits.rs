//! The limits of a run. All are on by default. A client may ask for tighter limits, never for looser ones.

use lisp_core::text::near_names;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The meaning of a limit of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zero {
    /// The limit is off.
    Off,
    /// Nothing is allowed.
    Nothing,
}

impl Zero {
    /// Returns the tighter of two limits.
    fn tighter(self, a: u64, b: u64) -> u64 {
        match (self, a, b) {
            (Zero::Off, 0, other) | (Zero::Off, other, 0) => other,
            _ => a.min(b),
        }
    }
}

impl Serialize for LimitsRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LimitsRequest::serialize(self, serializer)
    }
}

/// Reads objects only: serde would take the numbers of an array for limits in the order of the fields.
impl<'de> Deserialize<'de> for LimitsRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = LimitsRequest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of limits")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LimitsRequest, A::Error> {
                LimitsRequest::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Reads a limit. Errors speak of numbers, not of Rust's types.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    struct Whole;
    impl<'de> Visitor<'de> for Whole {
        type Value = Option<u64>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number, 0 or more")
        }
        fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<u64>, E> {
            Ok(Some(number))
        }
        fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<u64>, E> {
            let wrong = |_| E::invalid_value(Unexpected::Signed(number), &self);
            u64::try_from(number).map(Some).map_err(wrong)
        }
        fn visit_none<E: de::Error>(self) -> Result<Option<u64>, E> {
            Ok(None)
        }
        fn visit_unit<E: de::Error>(self) -> Result<Option<u64>, E> {
            Ok(None)
        }
        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<u64>, D::Error> {
            deserializer.deserialize_u64(self)
        }
    }
    deserializer.deserialize_option(Whole)
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident, $with:ident = $default:expr, $zero:expr;)*) => {
        /// The limits of a run.
        ///
        /// [`Limits::default`] has all of them on. [`Limits::unlimited`] is a ceiling for hosts that trust their
        /// clients with the choice.
        ///
        /// ```
        /// use lisp_runtime::Limits;
        /// let limits = Limits::default().with_timeout_ms(50).with_heap_bytes(1_000_000);
        /// assert_eq!(limits.setup_heap_bytes, 4_000_000);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct Limits { $($(#[$doc])* pub $name: u64,)* }

        /// Limits that a client asks for. Absent ones keep the host's value.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, remote = "Self")]
        #[non_exhaustive]
        pub struct LimitsRequest {
            $($(#[$doc])* #[serde(default, deserialize_with = "whole", skip_serializing_if = "Option::is_none")] pub $name: Option<u64>,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)* }
            }
        }

        impl Limits {
            /// The names of all limits.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            $($(#[$doc])*
            #[must_use]
            pub fn $with(self, value: u64) -> Self {
                self.with(&LimitsRequest { $name: Some(value), ..LimitsRequest::default() })
            })*

            /// Sets the given limits, looser or tighter. If `heap_bytes` is given, limits of set-up and worker heaps
            /// that are not given follow it.
            #[must_use]
            pub fn with(mut self, asked: &LimitsRequest) -> Self {
                if let Some(heap) = asked.heap_bytes {
                    self.setup_heap_bytes = heap.saturating_mul(Self::SETUP_FACTOR);
                    self.worker_heap_bytes = heap;
                }
                $(if let Some(value) = asked.$name {
                    self.$name = value;
                })*
                self
            }

            /// Returns the tighter value of each limit.
            #[must_use]
            pub fn min(self, other: &Limits) -> Self {
                Limits { $($name: $zero.tighter(self.$name, other.$name),)* }
            }
        }

        impl LimitsRequest {
            /// Asks for a limit by its name.
            ///
            /// # Errors
            /// The name does not match any limit. The message has the nearest name, or all names.
            pub fn set(&mut self, name: &str, value: u64) -> Result<(), UnknownLimit> {
                match name {
                    $(stringify!($name) => self.$name = Some(value),)*
                    _ => return Err(UnknownLimit(name.to_owned())),
                }
                Ok(())
            }

            $(
                #[doc = concat!("Asks for a limit: [`Limits::", stringify!($name), "`].")]
                #[must_use]
                pub fn $with(mut self, value: u64) -> Self {
                    self.$name = Some(value);
                    self
                }
            )*

            /// Asks for all of these limits.
            pub fn all(limits: &Limits) -> Self {
                LimitsRequest { $($name: Some(limits.$name),)* }
            }

            /// Returns these limits, with absent ones taken from `other`.
            #[must_use]
            pub fn or(self, other: &LimitsRequest) -> Self {
                LimitsRequest { $($name: self.$name.or(other.$name),)* }
            }
        }
    };
}

limits! {
    /// Units of work, counted the same on every machine. 0 is off.
    fuel, with_fuel = 1_000_000_000, Zero::Off;
    /// Wall time of the whole run in milliseconds, including set-up. 0 ends the run at once; it does not turn the limit
    /// off.
    timeout_ms, with_timeout_ms = 1_000, Zero::Nothing;
    /// Bytes that the program may hold above the baseline. 0 is off.
    heap_bytes, with_heap_bytes = 10_000_000, Zero::Off;
    /// Bytes that the host's input may take: data, memory, history and the compiled program. 0 is off.
    setup_heap_bytes, with_setup_heap_bytes = 40_000_000, Zero::Off;
    /// Bytes that each parallel worker may hold. 0 is off.
    worker_heap_bytes, with_worker_heap_bytes = 10_000_000, Zero::Off;
    /// Parallel workers alive at once in the whole run, at every depth of nesting; at most 1,024.
    parallel_workers, with_parallel_workers = 8, Zero::Nothing;
    /// Workers that one `pmap` or `pcalls` runs at once. 0 is off: up to `parallel_workers`.
    parallel_window, with_parallel_window = 4, Zero::Off;
    /// Wall time of one outermost `pmap` or `pcalls`, in milliseconds.
    parallel_timeout_ms, with_parallel_timeout_ms = 5_000, Zero::Nothing;
    /// Iterations of one `loop`. 0 is off.
    loop_iterations, with_loop_iterations = 1_000, Zero::Off;
    /// Tool calls of the whole run, without cached ones. 0 is off.
    tool_calls, with_tool_calls = 10_000, Zero::Off;
    /// Bytes of source text. 0 is off.
    program_bytes, with_program_bytes = 1_000_000, Zero::Off;
    /// Distinct symbols and keywords of the source. 0 is off.
    symbols, with_symbols = 10_000, Zero::Off;
    /// Characters of one printed line; longer lines are cut with a mark. 0 is off.
    print_chars, with_print_chars = 2_000, Zero::Off;
    /// Bytes of all printed lines together; further lines are counted but not kept. 0 is off.
    prints_bytes, with_prints_bytes = 1_000_000, Zero::Off;
    /// Bytes of the result as JSON, of the returned memory, and of the arguments of one tool call. 0 is off.
    result_bytes, with_result_bytes = 4_000_000, Zero::Off;
    /// Number of definitions of a session. 0 is off.
    session_definitions, with_session_definitions = 1_000, Zero::Off;
    /// Number of programs that a session keeps because its definitions have functions from them. 0 is off.
    session_programs, with_session_programs = 1_000, Zero::Off;
    /// Bytes of these programs. 0 is off.
    session_program_bytes, with_session_program_bytes = 10_000_000, Zero::Off;
    /// Bytes of the text of a saved session. 0 is off.
    session_bytes, with_session_bytes = 10_000_000, Zero::Off;
    /// Number of turns of a session that can be undone.
    session_undo, with_session_undo = 10, Zero::Nothing;
}

impl Limits {
    /// The default of `setup_heap_bytes`, as a multiple of `heap_bytes`.
    pub const SETUP_FACTOR: u64 = 4;

    /// Returns limits that are all off where that is possible, as a ceiling for hosts that trust their clients.
    pub fn unlimited() -> Self {
        Limits {
            fuel: 0,
            timeout_ms: u64::MAX,
            heap_bytes: 0,
            setup_heap_bytes: 0,
            worker_heap_bytes: 0,
            parallel_workers: u64::MAX,
            parallel_window: 0,
            parallel_timeout_ms: u64::MAX,
            loop_iterations: 0,
            tool_calls: 0,
            program_bytes: 0,
            symbols: 0,
            print_chars: 0,
            prints_bytes: 0,
            result_bytes: 0,
            session_definitions: 0,
            session_programs: 0,
            session_program_bytes: 0,
            session_bytes: 0,
            session_undo: u64::MAX,
        }
    }

    /// Returns the limits for a client that asks for `asked`: each as asked, but never looser than here.
    ///
    /// ```
    /// use lisp_runtime::{Limits, LimitsRequest};
    /// let operator = Limits::default();
    /// let asked = LimitsRequest::default().with_timeout_ms(5_000).with_fuel(10_000);
    /// let granted = operator.tighten(&asked);
    /// assert_eq!((granted.timeout_ms, granted.fuel), (1_000, 10_000));
    /// ```
    #[must_use]
    pub fn tighten(self, asked: &LimitsRequest) -> Self {
        self.with(asked).min(&self)
    }
}

/// The name does not match any limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown limit {0}; {near}", near = limit_meant(.0))]
pub struct UnknownLimit(pub String);

fn limit_meant(name: &str) -> String {
    match near_names(name, Limits::NAMES.iter().copied(), 1).first() {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the limits are {}", Limits::NAMES.join(", ")),
    }
}

/// Returns a byte limit as the core counts it, where 0 is no limit.
pub(crate) fn bytes(limit: u64) -> usize {
    match limit {
        0 => usize::MAX,
        n => usize::try_from(n).unwrap_or(usize::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_the_loosest_where_it_means_off() {
        assert_eq!(Zero::Off.tighter(0, 5), 5);
        assert_eq!(Zero::Off.tighter(7, 0), 7);
        assert_eq!(Zero::Off.tighter(7, 5), 5);
        assert_eq!(Zero::Nothing.tighter(0, 5), 0);
    }

    #[test]
    fn a_client_gets_tighter_limits_never_looser_ones() {
        let operator = Limits::default();
        let asked: LimitsRequest =
            serde_json::from_str(r#"{"heap_bytes": 0, "loop_iterations": 10, "tool_calls": 3}"#).unwrap();
        let granted = operator.tighten(&asked);
        assert_eq!(granted.heap_bytes, operator.heap_bytes);
        assert_eq!(granted.setup_heap_bytes, operator.setup_heap_bytes);
        assert_eq!(granted.loop_iterations, 10);
        assert_eq!(granted.tool_calls, 3);
        assert_eq!(Limits::unlimited().tighten(&LimitsRequest::default()), Limits::unlimited());
    }

    #[test]
    fn every_limit_is_on_by_default() {
        let limits = serde_json::to_value(Limits::default()).unwrap();
        for (name, value) in limits.as_object().unwrap() {
            assert_ne!(value, 0, "{name}");
        }
        let page = include_str!("../../../docs/limits.md");
        assert!(page.contains("1,000,000,000") && page.contains("10,000"));
        for name in Limits::NAMES {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn an_unknown_limit_is_named() {
        let error = serde_json::from_str::<LimitsRequest>(r#"{"heap": 1}"#).unwrap_err();
        assert!(error.to_string().contains("`heap`"), "{error}");
        let message = |name: &str| LimitsRequest::default().set(name, 1).unwrap_err().to_string();
        assert_eq!(message("feul"), "unknown limit feul; did you mean fuel?");
        assert!(message("zzz").contains("the limits are fuel, timeout_ms, heap_bytes"), "{}", message("zzz"));
    }
}
