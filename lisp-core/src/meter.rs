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
    dropped: u64,
    /// The most characters of one line; longer lines are cut, with a mark. 0 is no limit.
    pub line_chars: usize,
    /// The most bytes of all lines together. 0 is no limit.
    pub total_bytes: usize,
}

impl Default for Prints {
    fn default() -> Self {
        Prints { lines: Vec::new(), bytes: 0, dropped: 0, line_chars: 2_000, total_bytes: 1_000_000 }
    }
}

impl Prints {
    /// Adds a line, cut with a visible mark when it is too long. Lines beyond the total are counted, not kept.
    pub fn push(&mut self, line: &str) {
        let mut kept = line.to_owned();
        if self.line_chars > 0 && line.len() > self.line_chars {
            let end = graphemes(line).take(self.line_chars).map(str::len).sum();
            if end < line.len() {
                kept.truncate(end);
                kept.push_str(&format!("... ({}/{} chars)", self.line_chars, grapheme_count(line)));
            }
        }
        if self.total_bytes > 0 && self.bytes + kept.len() > self.total_bytes {
            self.dropped += 1;
            return;
        }
        self.bytes += kept.len();
        self.lines.push(kept);
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
        (self.bytes, self.dropped) = (0, 0);
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

/// The compiled regular expressions of a run, by pattern.
#[derive(Debug, Default)]
pub struct Regexes {
    by_pattern: HashMap<Box<str>, (Compiled, u64)>,
}

impl Regexes {
    /// The most patterns kept compiled; beyond it they are forgotten and compiled anew when used again.
    pub const KEPT: usize = 64;
    /// The most bytes one compiled pattern may take.
    pub const COMPILED_BYTES: usize = 1 << 20;
    /// The longest pattern, in bytes.
    pub const PATTERN_BYTES: usize = 10_000;
    /// Steps of the backtracking engine before it gives up.
    pub const BACKTRACK_STEPS: usize = 1_000_000;

    /// The compiled form of a pattern.
    pub fn get(&mut self, pattern: &str) -> Res<Compiled> {
        Ok(self.get_weighed(pattern)?.0)
    }

    /// The compiled form of a pattern, and at how many of its places a search can be at once at most.
    pub fn get_weighed(&mut self, pattern: &str) -> Res<(Compiled, u64)> {
        if let Some(compiled) = self.by_pattern.get(pattern) {
            return Ok(compiled.clone());
        }
        let compiled = Self::compile_weighed(pattern)?;
        if self.by_pattern.len() >= Self::KEPT {
            self.by_pattern.clear();
        }
        self.by_pattern.insert(pattern.into(), compiled.clone());
        Ok(compiled)
    }

    /// Compiles a pattern: linear if it can be, with backtracking if it must.
    pub fn compile(pattern: &str) -> Result<Compiled, Error> {
        Ok(Self::compile_weighed(pattern)?.0)
    }

    fn compile_weighed(pattern: &str) -> Result<(Compiled, u64), Error> {
        if pattern.len() > Self::PATTERN_BYTES {
            return Err(Error::new(
                Reason::RuntimeError,
                format!("a regular expression has at most {} bytes, this one {}", Self::PATTERN_BYTES, pattern.len()),
            )
            .hint("use a shorter pattern, or test for several with `or`"));
        }
        let Translated { text, weight } = translate(pattern);
        let linear = regex::RegexBuilder::new(&text).size_limit(Self::COMPILED_BYTES).dfa_size_limit(1 << 20).build();
        let first = match linear {
            Ok(regex) => return Ok((Compiled::Linear(Arc::new(regex)), weight)),
            Err(error) => error,
        };
        let wrong = |text: String| {
            Error::new(Reason::RuntimeError, format!("invalid regular expression #\"{pattern}\": {text}"))
                .hint("escape special characters with a backslash")
        };
        if matches!(first, regex::Error::CompiledTooBig(_)) {
            return Err(wrong(format!("its compiled form takes more than {} bytes", Self::COMPILED_BYTES)));
        }
        fancy_regex::RegexBuilder::new(&text)
            .delegate_size_limit(Self::COMPILED_BYTES)
            .backtrack_limit(Self::BACKTRACK_STEPS)
            .build()
            .map(|regex| (Compiled::Backtracking(Arc::new(regex)), weight))
            .map_err(|_| wrong(first.to_string().lines().last().unwrap_or_default().trim().to_owned()))
    }
}
