//! Ids of runs, and the headers of the traces that runs are part of.

use lisp_core::{Error, Reason};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Returns a new unique id: a random number per process and a counter.
pub(crate) fn run_id() -> Arc<str> {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let process = *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Formatting would take a tenth of the time of a small run.
    const DIGITS: usize = 16;
    let mut text = [b'-'; 2 * DIGITS + 1];
    let of_count = DIGITS - (count | 1).leading_zeros() as usize / 4;
    let end = DIGITS + 1 + of_count;
    hexadecimal(process, &mut text[..DIGITS]);
    hexadecimal(count, &mut text[DIGITS + 1..end]);
    std::str::from_utf8(&text[..end]).unwrap_or_default().into()
}

/// Fills `places` with the last hexadecimal digits of a number.
fn hexadecimal(number: u64, places: &mut [u8]) {
    let mut rest = number;
    for place in places.iter_mut().rev() {
        *place = b"0123456789abcdef"[(rest % 16) as usize];
        rest /= 16;
    }
}

/// The maximum length of an id from the host, in bytes.
pub(crate) const MAX_BYTES: usize = 128;

/// Checks an id from the host: it appears in records, keys of tool calls and logs.
pub(crate) fn check(name: &str) -> Result<(), Error> {
    if (1..=MAX_BYTES).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let message = match name.chars().find(|c| !c.is_ascii_graphic()) {
        Some(wrong) => format!("a run cannot have a name with {wrong:?} in it"),
        None => format!("a run cannot have a name of {} bytes", name.len()),
    };
    Err(Error::new(Reason::RuntimeError, message)
        .hint("give Input::run_id 1 to 128 visible characters of ASCII, without spaces")
        .detail("limit_bytes", MAX_BYTES))
}

/// Returns whether a text is a `traceparent` of W3C Trace Context. A later version may be longer, within reason.
pub(crate) fn is_traceparent(text: &str) -> bool {
    /// Version, trace, parent and flags, separated by hyphens.
    const BYTES: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;
    const MAX: usize = 512;
    let bytes = text.as_bytes();
    let hex = |from: usize, to: usize| {
        bytes.get(from..to).is_some_and(|part| part.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
    };
    let named = |from: usize, to: usize| hex(from, to) && bytes[from..to].iter().any(|&b| b != b'0');
    let hyphens = [2, 35, 52].iter().all(|&at| bytes.get(at) == Some(&b'-'));
    let fits = match bytes.len() {
        BYTES => true,
        longer if longer > BYTES && longer <= MAX => {
            !text.starts_with("00") && bytes[BYTES] == b'-' && bytes.iter().all(u8::is_ascii_graphic)
        }
        _ => false,
    };
    fits && hyphens && hex(0, 2) && !text.starts_with("ff") && named(3, 35) && named(36, 52) && hex(53, 55)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_differ_and_can_be_given_again() {
        assert_ne!(run_id(), run_id());
        assert!(check(&run_id()).is_ok());
        let written = |number: u64| {
            let mut places = [0; 16];
            hexadecimal(number, &mut places);
            String::from_utf8(places.into()).expect("ASCII")
        };
        assert_eq!([written(0), written(0x1f2e)], ["0000000000000000", "0000000000001f2e"]);
        assert_eq!(written(u64::MAX), "ffffffffffffffff");
        for bad in ["", " ", "a b", "é", "a\n", &"x".repeat(129)] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        let error = check("a b").expect_err("a space");
        assert_eq!(error.message, "a run cannot have a name with ' ' in it");
        assert!(error.hint.is_some_and(|hint| hint.contains("1 to 128 visible characters of ASCII")));
    }

    #[test]
    fn a_traceparent_is_what_the_standard_says() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(is_traceparent(good) && is_traceparent(&good.replacen("00", "cc", 1)));
        assert!(is_traceparent(&format!("{}-what-comes-later", good.replacen("00", "cc", 1))));
        let bad = [
            String::new(),
            good.to_uppercase(),
            good.replacen("00", "ff", 1),
            format!("{good}-more"),
            good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            good.replace("00f067aa0ba902b7", &"0".repeat(16)),
            good.replace('-', "_"),
            format!("cc{}-{}", &good[2..], "x".repeat(600)),
            "é".repeat(30),
        ];
        for bad in bad {
            assert!(!is_traceparent(&bad), "{bad}");
        }
    }
}
