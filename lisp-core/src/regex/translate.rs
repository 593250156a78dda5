//! Regular expressions as Java and Perl write them, in the notation of the engines, and what they may cost.

/// A pattern in the notation of the engines.
pub(super) struct Translated {
    /// The pattern. Its `\Z` is the end of the text, or what stands before the line's end there.
    pub(super) text: String,
    /// The bytes at which the `Z` of these stand.
    ends: Vec<usize>,
    /// An upper bound to the places of the pattern at which a search can be at once, counted repeats written out.
    pub(super) weight: u64,
}

impl Translated {
    /// The pattern for a text that does not end in a line's end, in which `\Z` is the end; `None` when it has none.
    pub(super) fn without_line_end(&self) -> Option<String> {
        if self.ends.is_empty() {
            return None;
        }
        let mut from = 0;
        let mut text = String::with_capacity(self.text.len());
        for &end in &self.ends {
            text.push_str(self.text.get(from..end).unwrap_or_default());
            text.push('z');
            from = end + 1;
        }
        text.push_str(self.text.get(from..).unwrap_or_default());
        Some(text)
    }
}

/// What the letters for classes stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// As in Java, ASCII.
    Ascii,
    /// All of Unicode, as an estimate of the effort wants it, which does not change with this.
    Unicode,
}

/// The classes of POSIX by Java's names, and by those in brackets.
const POSIX: [(&str, &str); 13] = [
    ("Lower", "lower"),
    ("Upper", "upper"),
    ("ASCII", "ascii"),
    ("Alpha", "alpha"),
    ("Digit", "digit"),
    ("Alnum", "alnum"),
    ("Punct", "punct"),
    ("Graph", "graph"),
    ("Print", "print"),
    ("Blank", "blank"),
    ("Cntrl", "cntrl"),
    ("XDigit", "xdigit"),
    ("Space", "space"),
];

/// Horizontal white space, as members of a class.
const HORIZONTAL: &str = r"\t\p{Zs}";
/// Any end of a line.
const NEWLINE: &str = r"(?:\r\n|[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}])";

/// Weight of what stands around a pattern that must match the whole of a text.
const AROUND: u64 = 4;

/// The flags that change what a character means here.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// `x`: a `#` begins a comment.
    comments: bool,
    /// `m`: a `$` is the end of every line.
    lines: bool,
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
    letters: Letters,
    ends: Vec<usize>,
    /// Weight of the open groups' parents, and the flags that hold behind the group.
    parents: Vec<(u64, Flags)>,
    flags: Flags,
    /// Weight of what stands since the last group was opened.
    total: u64,
    /// Weight of the atom a repeat would apply to.
    last: u64,
}

/// Translates a pattern. What the engines would read otherwise is rewritten, such as `\<` (not a word's beginning but a
/// character), a `{` that begins no repeat, a `[` inside a class; all else is left to their judgement. What follows the
/// text of a valid pattern is not part of it: a quotation and a comment end with the pattern.
pub(super) fn translate(pattern: &str) -> Translated {
    translate_with(pattern, Letters::Ascii)
}

/// The pattern as an estimate of the effort takes it.
pub(super) fn translate_for_effort(pattern: &str) -> String {
    translate_with(pattern, Letters::Unicode).text
}

fn translate_with(pattern: &str, letters: Letters) -> Translated {
    let mut t = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        letters,
        ends: Vec::new(),
        parents: Vec::new(),
        flags: Flags::default(),
        total: 0,
        last: 0,
    };
    while let Some(c) = t.next() {
        match c {
            '\\' => t.escape(),
            '[' => {
                t.class();
                t.atom(1);
            }
            '{' => t.brace(),
            '(' => t.open_group(),
            ')' => {
                let group = t.total.saturating_add(1);
                (t.total, t.flags) = t.parents.pop().unwrap_or((0, t.flags));
                t.atom(group);
                t.out.push(')');
            }
            '*' | '+' | '?' | '|' => t.out.push(c),
            '#' if t.flags.comments => t.comment(),
            '$' if !t.flags.lines => {
                t.end();
                t.atom(1);
            }
            c => {
                t.out.push(c);
                t.atom(1);
            }
        }
    }
    let weight = t.parents.iter().fold(t.total, |sum, &(w, _)| sum.saturating_add(w)).max(1);
    Translated { text: t.out, ends: t.ends, weight }
}

/// Translates a pattern so that it matches the whole of a text or nothing.
pub(super) fn translate_whole(pattern: &str) -> Translated {
    const BEFORE: &str = r"\A(?:";
    let Translated { text, mut ends, weight } = translate(pattern);
    ends.iter_mut().for_each(|end| *end += BEFORE.len());
    Translated { text: format!(r"{BEFORE}{text})\z"), ends, weight: weight.saturating_add(AROUND) }
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        Some(c)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn atom(&mut self, weight: u64) {
        self.total = self.total.saturating_add(weight);
        self.last = weight;
    }

    /// After a `(` outside a class. The flags of `(?x)` hold up to the end of the group around it, those of `(?x:...)` in
    /// the group.
    fn open_group(&mut self) {
        let outside = self.flags;
        let after = match self.rest.strip_prefix('?').and_then(|rest| rest.split_once([':', ')'])) {
            Some((flags, _)) if flags.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-') => {
                let (on, off) = flags.split_once('-').unwrap_or((flags, ""));
                let now = |flag: char, before: bool| (before || on.contains(flag)) && !off.contains(flag);
                self.flags = Flags { comments: now('x', outside.comments), lines: now('m', outside.lines) };
                if self.rest.as_bytes().get(flags.len() + 1) == Some(&b')') { self.flags } else { outside }
            }
            _ => outside,
        };
        self.parents.push((self.total, after));
        (self.total, self.last) = (0, 0);
        self.out.push('(');
    }

    /// After the `#` of a comment, which goes up to the end of its line.
    fn comment(&mut self) {
        self.out.push('#');
        self.atom(1);
        while let Some(c) = self.next() {
            self.out.push(c);
            self.total = self.total.saturating_add(1);
            if c == '\n' {
                return;
            }
        }
        self.out.push('\n');
    }

    /// The end of the text, or what stands before the line's end there.
    fn end(&mut self) {
        self.out.push_str(r"\Z");
        self.ends.push(self.out.len() - 1);
    }

    /// The class of POSIX that a letter after a backslash, or the name behind it, stands for: `[:^word:]`.
    fn posix(&mut self, letter: char) -> Option<String> {
        if self.letters == Letters::Unicode {
            return None;
        }
        let name = match letter {
            'w' | 'W' => "word",
            'd' | 'D' => "digit",
            's' | 'S' => "space",
            'p' | 'P' => {
                let (name, _) = self.rest.strip_prefix('{')?.split_once('}')?;
                let found = POSIX.iter().find(|(java, _)| *java == name)?;
                self.skip(name.len() + 2);
                found.1
            }
            _ => return None,
        };
        let not = if letter.is_ascii_uppercase() { "^" } else { "" };
        Some(format!("[:{not}{name}:]"))
    }

    /// After a backslash outside a class.
    fn escape(&mut self) {
        self.atom(1);
        match self.next() {
            Some(c @ ('<' | '>')) => self.out.push(c),
            Some('h') => self.push_all(&["[", HORIZONTAL, "]"]),
            Some('H') => self.push_all(&["[^", HORIZONTAL, "]"]),
            Some('R') => self.out.push_str(NEWLINE),
            Some('e') => self.out.push_str(r"\x1B"),
            Some('Z') => self.end(),
            Some('Q') => {
                let (quoted, after) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex_syntax::escape(quoted));
                self.total = self.total.saturating_add(quoted.len() as u64);
                self.rest = after;
            }
            Some(c) => match self.posix(c) {
                Some(class) => self.push_all(&["[", &class, "]"]),
                None => {
                    self.push_all(&["\\"]);
                    self.out.push(c);
                    self.argument(c);
                }
            },
            None => self.out.push('\\'),
        }
    }

    /// Copies the `{...}` that belongs to an escape such as `\p`.
    fn argument(&mut self, letter: char) {
        if matches!(letter, 'p' | 'P' | 'x' | 'u' | 'k' | 'g')
            && self.rest.starts_with('{')
            && let Some(end) = self.rest.find('}')
        {
            self.out.push_str(self.rest.get(..=end).unwrap_or_default());
            self.skip(end + 1);
        }
    }

    fn push_all(&mut self, parts: &[&str]) {
        self.out.extend(parts.iter().copied());
    }

    /// After a `{` outside a class: a repeat, or the character.
    fn brace(&mut self) {
        let Some((inside, _)) = self.rest.split_once('}') else {
            self.out.push_str(r"\{");
            return self.atom(1);
        };
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if least.is_empty() || !digits(least) || !digits(most) {
            self.out.push_str(r"\{");
            return self.atom(1);
        }
        let count = |s: &str| if s.is_empty() { 0 } else { s.parse::<u64>().unwrap_or(u64::MAX) };
        let times = count(least).max(count(most)).max(1);
        let once = self.last;
        self.last = once.saturating_mul(times);
        self.total = self.total.saturating_add(self.last.saturating_sub(once));
        self.push_all(&["{", inside, "}"]);
        self.skip(inside.len() + 1);
    }

    /// After the `[` that begins a class.
    fn class(&mut self) {
        self.out.push('[');
        self.class_start();
        let mut depth = 1u32;
        // May a hyphen that follows be the middle of a range?
        let mut range = false;
        while let Some(c) = self.next() {
            match c {
                ']' => {
                    self.out.push(']');
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                    range = false;
                }
                '[' if self.out.ends_with("&&") => {
                    self.out.push('[');
                    self.class_start();
                    depth = depth.saturating_add(1);
                    range = false;
                }
                '[' => range = self.bracket(),
                '\\' => range = self.class_escape(),
                '-' => range = self.hyphen(range),
                '~' => {
                    self.out.push_str(r"\~");
                    range = true;
                }
                c => {
                    self.out.push(c);
                    range = true;
                }
            }
        }
    }

    /// The `^` and `]` at the beginning of a class.
    fn class_start(&mut self) {
        if self.rest.starts_with('^') {
            self.out.push('^');
            self.skip(1);
        }
        if self.rest.starts_with(']') {
            self.out.push_str(r"\]");
            self.skip(1);
        }
    }

    /// After a `[` inside a class: a named class such as `[:alpha:]`, or the character. Can a range begin with it?
    fn bracket(&mut self) -> bool {
        if self.rest.starts_with(':')
            && let Some(end) = self.rest.find(":]")
        {
            self.out.push('[');
            self.out.push_str(self.rest.get(..end + 2).unwrap_or_default());
            self.skip(end + 2);
            return false;
        }
        self.out.push_str(r"\[");
        true
    }

    /// After a hyphen inside a class: it means a range when a character stands on both sides, else itself. Can a range
    /// begin with it?
    fn hyphen(&mut self, range: bool) -> bool {
        let mut after = self.rest.chars();
        let alone = match (after.next(), after.next()) {
            (None | Some(']'), _) | (Some('['), Some(':')) => true,
            (Some('\\'), letter) => letter.is_some_and(is_class_letter),
            _ => false,
        };
        if !range || alone {
            self.out.push_str(r"\-");
            return true;
        }
        self.out.push('-');
        match self.next() {
            Some('\\') => {
                self.class_escape();
            }
            Some(c @ ('[' | '-' | '~' | '&')) => {
                self.out.push('\\');
                self.out.push(c);
            }
            Some(c) => self.out.push(c),
            None => {}
        }
        false
    }

    /// After a backslash inside a class. Can a range begin with what it means?
    fn class_escape(&mut self) -> bool {
        match self.next() {
            Some('b') => self.out.push_str(r"\x08"),
            Some('e') => self.out.push_str(r"\x1B"),
            Some(c @ ('<' | '>')) => self.out.push(c),
            Some('h') => {
                self.out.push_str(HORIZONTAL);
                return false;
            }
            Some(c) => {
                if let Some(class) = self.posix(c) {
                    self.out.push_str(&class);
                    return false;
                }
                self.out.push('\\');
                self.out.push(c);
                self.argument(c);
                return !is_class_letter(c);
            }
            None => self.out.push('\\'),
        }
        true
    }
}

/// Does this letter after a backslash stand for several characters?
fn is_class_letter(c: char) -> bool {
    matches!(c, 'w' | 'W' | 'd' | 'D' | 's' | 'S' | 'p' | 'P' | 'h' | 'H')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_of_other_engines_is_understood() {
        for (pattern, text, first) in [
            (r"\<b\>", "a <b>", "<b>"),
            (r"{\w+}", "x{ab}", "{ab}"),
            (r"a{,2}", "a{,2}", "a{,2}"),
            (r"a{2}", "aaa", "aa"),
            (r"[^[]+", "ab[c", "ab"),
            (r"[[]x", "[x", "[x"),
            (r"[]a]+", "x]a]", "]a]"),
            (r"[\w-.]+", "!a-b.c", "a-b.c"),
            (r"[\w-]+", "!a-b", "a-b"),
            (r"[a-c-z]+", "xa-zb", "a-zb"),
            (r"[!--]+", "a!,-", "!,-"),
            (r"[-a]+", "x-a", "-a"),
            (r"[[:digit:]-]+", "a1-2", "1-2"),
            (r"[a-z&&[^aeiou]]+", "aebcd", "bcd"),
            (r"[~~a]+", "b~a", "~a"),
            (r"a\hb", "a\u{a0}b", "a\u{a0}b"),
            (r"\Qa.b\E+", "a.bb", "a.bb"),
            (r"\p{Lu}{2}", "aBC", "BC"),
            (r"a\Rb", "a\r\nb", "a\r\nb"),
            (r"\w+", "é9_é", "9_"),
            (r"[^\W\d]+", "12ab_é", "ab_"),
            (r"\D+", "1é٣2", "é٣"),
            (r"a\sb", "a\u{a0}b a b", "a b"),
            (r"\p{Punct}+", "a$+<b", "$+<"),
            (r"[\p{Alpha}\p{Digit}-]+", "é-a1", "-a1"),
            (r"\P{Upper}+", "AbÉC", "bÉ"),
            (r#"\"\ \/\-\#"#, "\" /-#", "\" /-#"),
        ] {
            let translated = translate(pattern);
            let translated = translated.without_line_end().unwrap_or(translated.text);
            let regex = regex::Regex::new(&translated).unwrap_or_else(|e| panic!("{pattern} {translated}: {e}"));
            assert_eq!(regex.find(text).map(|m| m.as_str()), Some(first), "{pattern} {translated}");
        }
    }

    /// What stands behind a pattern is not swallowed by its end.
    #[test]
    fn patterns_end_where_they_end() {
        for (pattern, whole, no_whole) in [
            ("a", "a", "ab"),
            ("a|ab", "ab", "abc"),
            ("(?x)a # b", "a", "ab"),
            ("(?x) a # [b", "a", "ab"),
            ("(?x) a # \\Q\nb", "ab", "a"),
            ("(?x) a # one\n b # two", "ab", "a"),
            ("(?x)a\\#b", "a#b", "a"),
            ("(?x)a[\\#]b", "a#b", "a"),
            ("(?ix)A # b", "a", "b"),
            ("(?x: a # b\n)#c", "a#c", "a"),
            ("(?i-x)a#b", "A#b", "a"),
            ("(?x)(?-x:#) #b", "#", "#b"),
            ("((?x)a #b\n)#c", "a#c", "a"),
            ("a#b", "a#b", "a"),
            (r"\Qa.b", "a.b", "axb"),
            (r"\Qa#\E(?x) #", "a#", "a"),
        ] {
            let translated = translate_whole(pattern).text;
            let regex = regex::Regex::new(&translated).unwrap_or_else(|e| panic!("{pattern} {translated}: {e}"));
            assert!(regex.is_match(whole), "{pattern} {translated} matches {whole}");
            assert!(!regex.is_match(no_whole), "{pattern} {translated} does not match {no_whole}");
        }
    }

    #[test]
    fn weight_counts_repeats() {
        for (pattern, weight) in
            [("", 1), ("abc", 3), ("a{10}", 10), ("(ab){2,10}", 30), ("((a{100}){100}){100}", 1_010_100)]
        {
            assert_eq!(translate(pattern).weight, weight, "{pattern}");
        }
        assert_eq!(translate("a{99999999999999999999}{9}").weight, u64::MAX);
    }
}
