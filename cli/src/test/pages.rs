//! The programs in a Markdown page.

/// The names of blocks that are programs.
const PROGRAMS: [&str; 3] = ["clojure", "clj", "lisp"];

/// Returns the fenced clojure, clj or lisp blocks. Each is padded with empty lines, so that its line numbers are those of
/// the page.
pub(super) fn blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<Fence> = None;
    for (number, line) in page.lines().enumerate() {
        match &mut open {
            None => open = Fence::opened_by(line, number),
            Some(fence) if fence.is_closed_by(line) => blocks.extend(open.take().and_then(|fence| fence.program)),
            Some(Fence { program: Some(program), .. }) => {
                program.push_str(line);
                program.push('\n');
            }
            Some(_) => {}
        }
    }
    // A block that is not closed extends to the end of the page.
    blocks.extend(open.and_then(|fence| fence.program));
    blocks
}

/// An open fence.
struct Fence {
    mark: char,
    length: usize,
    /// The text of a program; `None` in other blocks.
    program: Option<String>,
}

impl Fence {
    fn opened_by(line: &str, number: usize) -> Option<Fence> {
        let line = line.trim();
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        if length < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        let language = info.trim().split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
        let is_program = PROGRAMS.iter().any(|name| language.eq_ignore_ascii_case(name));
        Some(Fence { mark, length, program: is_program.then(|| "\n".repeat(number + 1)) })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_of_programs_keep_their_lines() {
        let page = "text\n```clojure\n(a)\n```\n```text\n```clojure\n```\n~~~ lisp\n(b)\n```\n~~~\n  ````Clojure title\n  (c)\n  ```\n  `````\n```clojured\n```\n`` `clojure\n```clj\n(e)\n```\n```lisp\n(d)";
        let found: Vec<_> = blocks(page);
        let numbered: Vec<_> = found.iter().map(|b| (b.matches('\n').count(), b.trim())).collect();
        assert_eq!(numbered, [(3, "(a)"), (10, "(b)\n```"), (14, "(c)\n  ```"), (20, "(e)"), (23, "(d)")]);
    }
}
