//! What a run may print, and its compiled regular expressions: the parts of the account that are not in an arena.

use crate::builtins::args::{grapheme_count, graphemes};
use crate::builtins::pattern::{Translated, translate};
use crate::error::{Error, Reason};
use crate::heap::Res;
use std::collections::HashMap;
use std::sync::Arc;

/// The lines a program printed, within limits.
#[derive(Debug)]
pub struct Prints {
    lines: Vec<String>,
    bytes: usize,
    /// What counts against the total.
    counted: usize,
    dropped: u64,
    /// The most characters of one line; longer lines are cut, with a mark. 0 is no limit.
    pub line_chars: usize,
    /// The most bytes of all lines together, each with [`Prints::LINE_BYTES`] more. 0 is no limit.
    pub total_bytes: usize,
    /// A printed line ends the slice of fuel, so that the driver can send it on at once.
    pub pauses: bool,
}

impl Default for Prints {
    fn default() -> Self {
        Prints {
            lines: Vec::new(),
            bytes: 0,
            counted: 0,
            dropped: 0,
            line_chars: 2_000,
            total_bytes: 1_000_000,
            pauses: false,
        }
    }
}

impl Prints {
    /// What a line counts besides its bytes: empty ones take memory too.
    pub const LINE_BYTES: usize = 24;

    /// Adds a line, cut with a visible mark when it is too long. Lines beyond the total are counted, not kept.
    pub fn push(&mut self, line: &str) {
        let kept = self.cut(line);
        self.keep(kept);
    }

    fn keep(&mut self, kept: String) {
        if self.total_bytes > 0 && self.counted + kept.len() + Self::LINE_BYTES > self.total_bytes {
            self.dropped += 1;
            return;
        }
        self.bytes += kept.len();
        self.counted += kept.len() + Self::LINE_BYTES;
        self.lines.push(kept);
    }

    /// Adds what a worker printed.
    pub fn absorb(&mut self, other: Prints) {
        for line in other.lines {
            self.keep(line);
        }
        self.dropped += other.dropped;
    }

    /// The line as it is kept, in no more memory than it needs.
    fn cut(&self, line: &str) -> String {
        if self.line_chars == 0 || line.len() <= self.line_chars {
            return line.to_owned();
        }
        let end = graphemes(line).take(self.line_chars).map(str::len).sum::<usize>();
        match line.get(..end) {
            Some(start) if end < line.len() => {
                format!("{start}... ({}/{} chars)", self.line_chars, grapheme_count(line))
            }
            _ => line.to_owned(),
        }
    }

    /// The lines so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Takes the lines; the last says how many more there were.
    pub fn take(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        if self.dropped > 0 {
            lines.push(format!("... ({} more lines; the limit is {} bytes)", self.dropped, self.total_bytes));
        }
        (self.bytes, self.counted, self.dropped) = (0, 0, 0);
        lines
    }

    /// How many lines were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub enum Compiled {
    /// In linear time, by the regex crate.
    Linear(Arc<regex::Regex>),
    /// With look-around or back-references: bounded backtracking, by the fancy-regex crate.
    Backtracking(Arc<fancy_regex::Regex>),
}

/// What a compiled regular expression costs.
#[derive(Clone, Copy, Debug)]
pub struct PatternCost {
    /// At how many places of the pattern a search can be at once, at most.
    pub weight: u64,
    /// The bytes that the compiled form takes, at most.
    pub bytes: usize,
}

/// The compiled regular expressions of a run, by pattern.
#[derive(Debug, Default)]
pub struct Regexes {
    by_pattern: HashMap<Box<str>, (Compiled, PatternCost)>,
    bytes: usize,
}

impl Regexes {
    /// The most bytes of patterns kept compiled; beyond it they are forgotten and compiled anew when used again.
    pub const KEPT_BYTES: usize = 16 << 20;
    /// The bytes a compiled pattern may take: as few of these as it needs. A counted repeat of a class such as `\w`
    /// needs the most.
    pub const COMPILED_BYTES: [usize; 3] = [1 << 16, 1 << 20, 8 << 20];
    /// The most bytes that a search may keep of what it learned.
    pub const SEARCH_BYTES: usize = 1 << 18;
    /// The longest pattern, in bytes.
    pub const PATTERN_BYTES: usize = 10_000;
    /// Steps of the backtracking engine before it gives up.
    pub const BACKTRACK_STEPS: usize = 1_000_000;

    /// The compiled form of a pattern.
    pub fn get(&mut self, pattern: &str) -> Res<Compiled> {
        Ok(self.get_with_cost(pattern)?.0)
    }

    /// The compiled form of a pattern and what it costs.
    pub fn get_with_cost(&mut self, pattern: &str) -> Res<(Compiled, PatternCost)> {
        if let Some(compiled) = self.by_pattern.get(pattern) {
            return Ok(compiled.clone());
        }
        let compiled = Self::compile_with_cost(pattern)?;
        // A search learns in two directions.
        let bytes = compiled.1.bytes + 2 * Self::SEARCH_BYTES;
        if self.bytes + bytes > Self::KEPT_BYTES {
            self.by_pattern.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.by_pattern.insert(pattern.into(), compiled.clone());
        Ok(compiled)
    }

    /// Compiles a pattern to see whether it is one; answers the bytes that its compiled form may take.
    pub fn check(pattern: &str) -> Result<usize, Error> {
        Ok(Self::compile_with_cost(pattern)?.1.bytes)
    }

    /// Compiles a pattern: linear if it can be, with backtracking if it must.
    fn compile_with_cost(pattern: &str) -> Result<(Compiled, PatternCost), Error> {
        if pattern.len() > Self::PATTERN_BYTES {
            return Err(Error::new(
                Reason::RuntimeError,
                format!("a regular expression has at most {} bytes, this one {}", Self::PATTERN_BYTES, pattern.len()),
            )
            .hint("use a shorter pattern, or test for several with `or`"));
        }
        let Translated { text, weight } = translate(pattern);
        let mut first = None;
        for bytes in Self::COMPILED_BYTES {
            let linear = regex::RegexBuilder::new(&text).size_limit(bytes).dfa_size_limit(Self::SEARCH_BYTES).build();
            match linear {
                Ok(regex) => return Ok((Compiled::Linear(Arc::new(regex)), PatternCost { weight, bytes })),
                Err(error @ regex::Error::CompiledTooBig(_)) => first = Some(error),
                Err(error) => {
                    first = Some(error);
                    break;
                }
            }
        }
        let [_, backtracking_bytes, most_bytes] = Self::COMPILED_BYTES;
        let wrong = |text: String| {
            Error::new(Reason::RuntimeError, format!("invalid regular expression #\"{pattern}\": {text}"))
        };
        if matches!(first, Some(regex::Error::CompiledTooBig(_))) {
            return Err(wrong(format!("its compiled form takes more than {most_bytes} bytes"))
                .hint("use fewer or smaller counted repeats such as {1,100}"));
        }
        fancy_regex::RegexBuilder::new(&text)
            .delegate_size_limit(backtracking_bytes)
            .delegate_dfa_size_limit(Self::SEARCH_BYTES)
            .backtrack_limit(Self::BACKTRACK_STEPS)
            .build()
            .map(|regex| (Compiled::Backtracking(Arc::new(regex)), PatternCost { weight, bytes: backtracking_bytes }))
            .map_err(|_| {
                let why = first.map(|e| e.to_string()).unwrap_or_default();
                wrong(why.lines().last().unwrap_or_default().trim().to_owned())
                    .hint("escape special characters with a backslash")
            })
    }
}
