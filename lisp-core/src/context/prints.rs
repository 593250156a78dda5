//! The lines a program printed, within limits of their own.

use super::Ctx;
use crate::heap::Res;
use crate::text::characters;

/// The lines a program printed, within limits.
#[derive(Debug)]
pub struct Prints {
    lines: Vec<String>,
    bytes: usize,
    /// What counts against the total.
    counted: usize,
    dropped: u64,
    cut: u64,
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
            cut: 0,
            line_chars: 2_000,
            total_bytes: 1_000_000,
            pauses: false,
        }
    }
}

impl Prints {
    /// What a line counts besides its bytes: empty ones take memory too.
    pub const LINE_BYTES: usize = 24;

    /// Adds a line that is no longer than it may be. Lines beyond the total are counted, not kept.
    pub fn push(&mut self, line: String) {
        // After one that has no room no other is kept, or the lines would seem to follow each other.
        let full = self.total_bytes > 0 && self.counted + line.len() + Self::LINE_BYTES > self.total_bytes;
        if full || self.dropped > 0 {
            self.dropped += 1;
            return;
        }
        self.bytes += line.len();
        self.counted += line.len() + Self::LINE_BYTES;
        self.lines.push(line);
    }

    /// Adds a line that is the beginning of one which is longer than it may be.
    pub fn push_cut(&mut self, line: String) {
        let dropped = self.dropped;
        self.push(line);
        self.cut += u64::from(self.dropped == dropped);
    }

    /// Adds what a worker printed.
    pub fn absorb(&mut self, other: Prints) {
        self.cut += other.cut;
        for line in other.lines {
            self.push(line);
        }
        self.dropped += other.dropped;
    }

    /// The lines so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Takes the lines; the last says how many more there were.
    pub fn take(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        if self.dropped > 0 {
            lines.push(Self::mark(self.dropped, self.total_bytes as u64));
        }
        (self.bytes, self.counted, self.dropped, self.cut) = (0, 0, 0, 0);
        lines
    }

    /// Takes the lines, and goes on counting.
    pub fn drain(&mut self) -> Vec<String> {
        self.bytes = 0;
        std::mem::take(&mut self.lines)
    }

    /// The line that stands for those that were not kept.
    pub fn mark(dropped: u64, total_bytes: u64) -> String {
        let lines = if dropped == 1 { "line" } else { "lines" };
        let bytes = if total_bytes == 1 { "byte" } else { "bytes" };
        format!("... ({dropped} more {lines}; the limit is {total_bytes} {bytes})")
    }

    /// How many lines were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many of the lines are cut.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Ctx {
    /// Adds a printed line. When the driver wants to know of each, the slice ends here: the run pauses before its next
    /// piece of work.
    pub(crate) fn print(&self, line: &str) -> Res<()> {
        let (line, cut) = self.kept_line(line)?;
        let mut prints = self.prints.borrow_mut();
        if cut {
            prints.push_cut(line)
        } else {
            prints.push(line)
        }
        if prints.pauses {
            self.meter.pause_for_print();
        }
        Ok(())
    }

    /// A line as it is kept (empty when no more are, cut with a visible mark when it is too long), and whether it is cut.
    fn kept_line(&self, line: &str) -> Res<(String, bool)> {
        let (most, dropped) = {
            let prints = self.prints.borrow();
            (prints.line_chars, prints.dropped())
        };
        if dropped > 0 {
            return Ok((String::new(), false));
        }
        if most > 0 && line.len() > most {
            let start = characters::first(self, line, most)?;
            if start.len() < line.len() {
                return Ok((format!("{start}... ({most}/{} chars)", characters::count(self, line)?), true));
            }
        }
        Ok((line.to_owned(), false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_line_without_room_none_is_kept() {
        let long = "x".repeat(100);
        let mut prints = Prints { total_bytes: 60, ..Prints::default() };
        prints.push("a".to_owned());
        prints.push(long.clone());
        assert_eq!(prints.take(), ["a", "... (1 more line; the limit is 60 bytes)"]);
        for line in ["a", &long, "b", "c"] {
            prints.push(line.to_owned());
        }
        assert_eq!(prints.take(), ["a", "... (3 more lines; the limit is 60 bytes)"]);
        prints.total_bytes = 1;
        prints.push("a".to_owned());
        assert_eq!(prints.take(), ["... (1 more line; the limit is 1 byte)"]);
    }
}
