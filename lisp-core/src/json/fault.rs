//! What is wrong with a text that is not JSON: the `jiter` crate goes through it again, and says where it ends to be one.

use crate::error::{Error, Reason};
use crate::heap::{Fault, Heap};
use jiter::{Jiter, JiterError, JiterErrorType, Peek};

/// Why a text could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The text is not JSON, or beyond a limit.
    Syntax {
        /// The byte at which it was noticed.
        offset: usize,
        /// What is wrong there.
        message: String,
    },
    /// There is no room or no fuel.
    Fault(Fault),
}

impl ReadError {
    /// The error of a built-in or a host.
    pub fn into_fault(self, reason: Reason) -> Fault {
        match self {
            ReadError::Syntax { offset, message } => {
                Error::new(reason, format!("invalid JSON at byte {offset}: {message}")).detail("offset", offset).into()
            }
            ReadError::Fault(fault) => fault,
        }
    }

    pub(super) fn syntax(offset: usize, message: impl Into<String>) -> Self {
        ReadError::Syntax { offset, message: message.into() }
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        ReadError::Fault(fault)
    }
}

/// Why the text is gone through no further.
enum Stop {
    Syntax(JiterError),
    /// The run is to end.
    Fault(Fault),
}

impl From<JiterError> for Stop {
    fn from(error: JiterError) -> Self {
        Stop::Syntax(error)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Stop::Fault(fault)
    }
}

/// The fault of a text. It was paid for when the text was read. It is called for what a [`Reader`](super::Reader) does not take; it nests no deeper than readers go.
pub(super) fn fault_of(h: &Heap, text: &str) -> ReadError {
    match walk(h, text) {
        Err(Stop::Fault(fault)) => ReadError::Fault(fault),
        Err(Stop::Syntax(error)) => {
            let message = match error.error_type {
                JiterErrorType::JsonError(kind) => kind.to_string(),
                JiterErrorType::WrongType { .. } => "expected a value".to_owned(),
            };
            ReadError::Syntax { offset: error.index, message }
        }
        Ok(()) => ReadError::Syntax { offset: 0, message: "expected a value".to_owned() },
    }
}

fn walk(h: &Heap, text: &str) -> Result<(), Stop> {
    let mut parser = Jiter::new(text.as_bytes());
    // For each array or object that is open, whether it is an object.
    let mut open: Vec<bool> = Vec::new();
    let mut peek = parser.peek()?;
    'value: loop {
        h.meter.poll_every(1)?;
        match peek {
            Peek::String => drop(parser.known_str()?),
            Peek::Null => parser.known_null()?,
            Peek::True | Peek::False => drop(parser.known_bool(peek)?),
            Peek::Array => {
                if let Some(first) = parser.known_array()? {
                    open.push(false);
                    peek = first;
                    continue;
                }
            }
            Peek::Object => {
                if parser.known_object()?.is_some() {
                    open.push(true);
                    peek = parser.peek()?;
                    continue;
                }
            }
            _ => drop(parser.known_number_bytes(peek)?),
        }
        loop {
            let next = match open.last() {
                None => return Ok(parser.finish()?),
                Some(true) => match parser.next_key()? {
                    Some(_) => Some(parser.peek()?),
                    None => None,
                },
                Some(false) => parser.array_step()?,
            };
            if let Some(next) = next {
                peek = next;
                continue 'value;
            }
            open.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// Pieces that texts of JSON are made of, and some that break them.
    fn piece() -> impl Strategy<Value = String> {
        let fixed = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            " ",
            "\n",
            "\"",
            "\\",
            "null",
            "true",
            "false",
            "tru",
            "0",
            "01",
            "-",
            "-0",
            "1.",
            "2.50",
            "1e9",
            "1E+",
            "-7.25e-3",
            "123456789012345678",
            "9223372036854775808",
            "1e400",
            "\"a\"",
            "\"b\"",
            "\"a\":",
            "\"\\u0061\":",
            "\"b c\":",
            "\"\\n\"",
            "\"\\ud83d\\ude00\"",
            "\"\\ud83d\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "\"λ\"",
            "\u{feff}",
            "{\"a\":1,\"b\":[]}",
            "{\"a\":2,\"b\":{}}",
            "[1,2]",
            "\"a\\\"\":",
            "\"long enough for more than a word\"",
        ];
        select(fixed.to_vec()).prop_map(str::to_owned)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        /// The reader takes just what the library takes, and what it does not take has the library's fault.
        #[test]
        fn texts_are_taken_by_both_or_by_neither(pieces in proptest::collection::vec(piece(), 0..9), open in 0usize..4) {
            let ways = ["", "[", "{\"a\":", "[{\"a\":1,\"b\":2},{\"a\":"];
            let closes = ["", "]", "}", "}]"];
            for text in [pieces.concat(), format!("{}{}{}", ways[open], pieces.join(","), closes[open])] {
                // The reader skips a mark in front, the library does not.
                let text = text.trim_start_matches('\u{feff}').to_owned();
                let heap = Heap::new(1, 1 << 24);
                let walked = walk(&heap, &text);
                match read(&heap, &text) {
                    Ok(_) => prop_assert!(walked.is_ok(), "{:?}", text),
                    // A number that no float is near to is the reader's own fault to find, in front of what follows.
                    Err(ReadError::Syntax { message, .. }) if message == "number out of range" => {}
                    Err(ReadError::Syntax { offset, message }) => {
                        prop_assert!(walked.is_err(), "{:?} {}", text, message);
                        let ReadError::Syntax { offset: at, message: why } = fault_of(&heap, &text) else { unreachable!() };
                        prop_assert_eq!((offset, message), (at, why));
                    }
                    Err(ReadError::Fault(fault)) => prop_assert!(false, "{:?} {:?}", text, fault),
                }
            }
        }
    }
}
