//! The lines that a program printed, with limits of their own.

use super::Ctx;
use crate::heap::Res;
use crate::text::characters;

/// The lines that a program printed, within limits.
#[derive(Debug)]
pub struct Prints {
    lines: Vec<String>,
    bytes: usize,
    /// What counts towards the total.
    counted: usize,
    dropped: u64,
    cut: u64,
    /// Maximum characters of one line; longer lines are cut, with a mark. 0 means unlimited.
    pub line_chars: usize,
    /// Maximum bytes of all lines together, each counted with [`Prints::LINE_BYTES`] more. 0 means unlimited.
    pub total_bytes: usize,
    /// A printed line ends the slice of fuel, so that the driver can send it at once.
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
    /// What a line counts besides its bytes: empty lines take memory too.
    pub const LINE_BYTES: usize = 24;

    /// Adds a line that is within the limit. Lines beyond the total are counted, but dropped.
    pub fn push(&mut self, line: String) {
        // After a dropped line no other is kept; otherwise the kept lines would appear consecutive.
        let full = self.total_bytes > 0 && self.counted + line.len() + Self::LINE_BYTES > self.total_bytes;
        if full || self.dropped > 0 {
            self.dropped += 1;
            return;
        }
        self.bytes += line.len();
        self.counted += line.len() + Self::LINE_BYTES;
        self.lines.push(line);
    }

    /// Adds the beginning of a line that exceeds the limit.
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

    /// Returns the lines so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Takes the lines; the last one says how many more there were.
    pub fn take(&mut self) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        if self.dropped > 0 {
            lines.push(Self::mark(self.dropped, self.total_bytes as u64));
        }
        (self.bytes, self.counted, self.dropped, self.cut) = (0, 0, 0, 0);
        lines
    }

    /// Takes the lines, and continues counting.
    pub fn drain(&mut self) -> Vec<String> {
        self.bytes = 0;
        std::mem::take(&mut self.lines)
    }

    /// Returns the line that stands for dropped ones.
    pub fn mark(dropped: u64, total_bytes: u64) -> String {
        let lines = if dropped == 1 { "line" } else { "lines" };
        let bytes = if total_bytes == 1 { "byte" } else { "bytes" };
        format!("... ({dropped} more {lines}; the limit is {total_bytes} {bytes})")
    }

    /// Returns the number of dropped lines.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the number of cut lines.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Returns the bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Ctx {
    /// Adds a printed line. If the driver wants to be informed of each line, the slice ends here: the run pauses before
    /// its next piece of work.
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

    /// Returns a line as it is kept (empty if it is dropped, cut with a visible mark if it is too long), and whether it
    /// is cut.
    fn kept_line(&self, line: &str) -> Res<(String, bool)> {
        let (max, dropped) = {
            let prints = self.prints.borrow();
            (prints.line_chars, prints.dropped())
        };
        if dropped > 0 {
            return Ok((String::new(), false));
        }
        if max > 0 && line.len() > max {
            let start = characters::first(self, line, max)?;
            if start.len() < line.len() {
                return Ok((format!("{start}... ({max}/{} chars)", characters::count(self, line)?), true));
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
