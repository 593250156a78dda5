//! From text to tokens.
//!
//! Whitespace and comments are tokens too, and long tokens are scanned by hand-written loops. The generated automaton
//! uses tail calls for skipped tokens and for repetitions of several states, and an unoptimized build really makes
//! those calls.

pub use super::fence::BYTE_ORDER_MARK;
use super::fence::program_of;
use super::spelling::{begins_name, name_length, number_length};
use crate::error::Span;
use logos::{Lexer, Logos};

/// The named characters.
pub const CHARACTER_NAMES: [(&str, &str); 6] =
    [("newline", "\n"), ("space", " "), ("tab", "\t"), ("return", "\r"), ("backspace", "\u{8}"), ("formfeed", "\u{c}")];

/// The delimiters of collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// `( ... )`
    List,
    /// `[ ... ]`
    Vector,
    /// `{ ... }`
    Map,
    /// `#{ ... }`
    Set,
    /// `#( ... )`
    ShortFn,
}

impl Delimiter {
    /// Returns the opening delimiter.
    pub const fn opener(self) -> &'static str {
        match self {
            Delimiter::List => "(",
            Delimiter::Vector => "[",
            Delimiter::Map => "{",
            Delimiter::Set => "#{",
            Delimiter::ShortFn => "#(",
        }
    }

    /// Returns the closing delimiter.
    pub const fn closer(self) -> Closer {
        match self {
            Delimiter::List | Delimiter::ShortFn => Closer::Paren,
            Delimiter::Vector => Closer::Bracket,
            Delimiter::Map | Delimiter::Set => Closer::Brace,
        }
    }

    /// Returns its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Delimiter::List => "list",
            Delimiter::Vector => "vector",
            Delimiter::Map => "map",
            Delimiter::Set => "set",
            Delimiter::ShortFn => "short function",
        }
    }
}

/// A closing delimiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closer {
    /// `)`
    Paren,
    /// `]`
    Bracket,
    /// `}`
    Brace,
}

impl Closer {
    /// Returns the character itself.
    pub const fn character(self) -> char {
        match self {
            Closer::Paren => ')',
            Closer::Bracket => ']',
            Closer::Brace => '}',
        }
    }
}

/// Why no token starts at a position, or why a token does not end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LexError {
    /// No token starts with this text.
    #[default]
    Unexpected,
    /// A character that does not start a token is this many bytes after the token's start.
    UnexpectedAt(u32),
    /// The text ends inside a string or a regex.
    UnclosedString,
    /// A backslash is before a line break in a string or a regex; this many bytes after the token's start.
    EscapedLineBreak(u32),
    /// The text ends after the backslash of a character literal.
    EmptyCharacter,
}

/// The tokens. The text of a token is what its span covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
#[logos(error = LexError)]
#[logos(subpattern first = r"[a-zA-Z+\-*/<>=?!_%.&$|]|[^\x00-\x7F]")]
pub enum Token {
    /// Whitespace, including commas.
    #[regex(r"[ \t\r\n,]+")]
    Space,
    /// `; ...` up to, but not including, the end of the line; also `#! ...`, with which a script names its interpreter.
    #[token(";", comment)]
    #[token("#!", comment)]
    Comment,
    /// `(`, `[`, `{`, `#{`, `#(`
    #[token("(", |_| Delimiter::List)]
    #[token("[", |_| Delimiter::Vector)]
    #[token("{", |_| Delimiter::Map)]
    #[token("#{", |_| Delimiter::Set)]
    #[token("#(", |_| Delimiter::ShortFn)]
    Open(Delimiter),
    /// `)`, `]`, `}`
    #[token(")", |_| Closer::Paren)]
    #[token("]", |_| Closer::Bracket)]
    #[token("}", |_| Closer::Brace)]
    Close(Closer),
    /// `-42`, `1.5e3`, and everything that starts like a number: `10-3`, `3x`.
    #[regex(r"[+\-]?[0-9]", number)]
    Number,
    /// `##Inf`, `##-Inf`, `##NaN`, or any other name after `##`, which the reader rejects.
    #[token("##", rest_of_name)]
    Symbolic,
    /// `"text"`
    #[token("\"", string)]
    String,
    /// `#"pattern"`
    #[token("#\"", string)]
    Regex,
    /// `\a`, `\newline`
    #[token("\\", character)]
    Character,
    /// `:name`, `:space/name`, and everything that starts with a colon.
    #[token(":", rest_of_name)]
    Keyword,
    /// `name`, `nil`; a sign followed by a digit starts a number instead.
    #[regex(r"(?&first)", name)]
    Symbol,
    /// `'name`
    #[regex(r"'(?&first)", quoted_name)]
    Quote,
    /// `'` before something that is not a name
    #[token("'")]
    QuoteNext,
    /// `#_`: the next form is skipped.
    #[token("#_")]
    Discard,
    /// `^`: the next form is metadata of the one after it, and is skipped.
    #[token("^")]
    Meta,
    /// `#'name`
    #[regex(r"#'(?&first)", var_name)]
    Var,
}

/// Returns the tokens of a text, including whitespace and comments, without the lines of a Markdown fence around it.
/// The text must be shorter than 4 GiB, so that spans can describe it.
pub fn tokens(text: &str) -> impl Iterator<Item = (Result<Token, LexError>, Span)> + '_ {
    let program = program_of(text);
    let mut lexer = Token::lexer(text.get(..program.end).unwrap_or(text));
    lexer.bump(program.start);
    lexer.spanned().map(|(token, range)| (token, Span::new(offset(range.start), offset(range.end))))
}

fn offset(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn number(lexer: &mut Lexer<'_, Token>) {
    lexer.bump(number_length(lexer.remainder()));
}

fn rest_of_name(lexer: &mut Lexer<'_, Token>) {
    lexer.bump(name_length(lexer.remainder()));
}

fn name(lexer: &mut Lexer<'_, Token>) -> Result<(), LexError> {
    begun_name(lexer, 0)
}

fn quoted_name(lexer: &mut Lexer<'_, Token>) -> Result<(), LexError> {
    begun_name(lexer, "'".len())
}

fn var_name(lexer: &mut Lexer<'_, Token>) -> Result<(), LexError> {
    begun_name(lexer, "#'".len())
}

/// Scans the rest of a name whose first character is scanned, after a prefix.
fn begun_name(lexer: &mut Lexer<'_, Token>, prefix: usize) -> Result<(), LexError> {
    if let Some(first) = lexer.slice().get(prefix..).and_then(|name| name.chars().next())
        && !first.is_ascii()
        && !begins_name(first)
    {
        return Err(LexError::UnexpectedAt(offset(prefix)));
    }
    rest_of_name(lexer);
    Ok(())
}

fn comment(lexer: &mut Lexer<'_, Token>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
}

/// Scans the rest of a string or regex whose opening quote is scanned.
fn string(lexer: &mut Lexer<'_, Token>) -> Result<(), LexError> {
    let opener = lexer.slice().len();
    let rest = lexer.remainder();
    let bytes = rest.as_bytes();
    let mut at = 0;
    let end = loop {
        match bytes.get(at) {
            Some(b'"') => break Ok(at + 1),
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'\n' | b'\r') => break Err(LexError::EscapedLineBreak(offset(opener + at))),
                // The second byte of `\λ` is the first of several, none of which looks like a quote or a backslash.
                Some(_) => at += 2,
                None => break Err(LexError::UnclosedString),
            },
            Some(_) => at += 1,
            None => break Err(LexError::UnclosedString),
        }
    };
    lexer.bump(*end.as_ref().unwrap_or(&rest.len()));
    end.map(|_| ())
}

/// Scans the rest of a character literal whose backslash is scanned: any character, and the rest of a name after it.
fn character(lexer: &mut Lexer<'_, Token>) -> Result<(), LexError> {
    let rest = lexer.remainder();
    let first = rest.chars().next().ok_or(LexError::EmptyCharacter)?.len_utf8();
    lexer.bump(first + rest.get(first..).map_or(0, name_length));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kinds and texts of all tokens except whitespace.
    fn lexed(text: &str) -> Vec<String> {
        tokens(text)
            .filter(|(token, _)| *token != Ok(Token::Space))
            .map(|(token, span)| match token {
                Ok(token) => format!("{token:?} {}", &text[span.start as usize..span.end as usize]),
                Err(error) => format!("{error:?}"),
            })
            .collect()
    }

    #[test]
    fn names_and_numbers_end_where_clojure_ends_them() {
        let cases: &[(&str, &[&str])] = &[
            ("-42 +5 --5 -", &["Number -42", "Number +5", "Symbol --5", "Symbol -"]),
            ("1-2 10Na 1_000", &["Number 1-2", "Number 10Na", "Number 1_000"]),
            (
                "-1.5e-3 1e+ 5. .5 1/2 0x1F",
                &["Number -1.5e-3", "Number 1e+", "Number 5.", "Symbol .5", "Number 1/2", "Number 0x1F"],
            ),
            (
                "1'a 1#{} 1%",
                &["Number 1", "Quote 'a", "Number 1", "Open(Set) #{", "Close(Brace) }", "Number 1", "Symbol %"],
            ),
            ("1\"a\"(", &["Number 1", "String \"a\"", "Open(List) ("]),
            ("nil nil? nil' true:a", &["Symbol nil", "Symbol nil?", "Symbol nil'", "Symbol true:a"]),
            (
                "%& %1 & . / a/b/c /x",
                &["Symbol %&", "Symbol %1", "Symbol &", "Symbol .", "Symbol /", "Symbol a/b/c", "Symbol /x"],
            ),
            ("inc' a'b a#b a|b größe", &["Symbol inc'", "Symbol a'b", "Symbol a#b", "Symbol a|b", "Symbol größe"]),
            ("'nil '-1 '*1 'a/b 'ä", &["Quote 'nil", "Quote '-1", "Quote '*1", "Quote 'a/b", "Quote 'ä"]),
            ("''a '1", &["QuoteNext '", "Quote 'a", "QuoteNext '", "Number 1"]),
            ("#'x #'+' #'ä", &["Var #'x", "Var #'+'", "Var #'ä"]),
            (
                ":a/b/c :a/ :a:b : ::k :ä :1",
                &[
                    "Keyword :a/b/c",
                    "Keyword :a/",
                    "Keyword :a:b",
                    "Keyword :",
                    "Keyword ::k",
                    "Keyword :ä",
                    "Keyword :1",
                ],
            ),
            (
                "'(a) #_x ^:a $ $1",
                &[
                    "QuoteNext '",
                    "Open(List) (",
                    "Symbol a",
                    "Close(Paren) )",
                    "Discard #_",
                    "Symbol x",
                    "Meta ^",
                    "Keyword :a",
                    "Symbol $",
                    "Symbol $1",
                ],
            ),
            (
                "“a '” a\u{a0}b",
                &["UnexpectedAt(0)", "Symbol a", "UnexpectedAt(1)", "Symbol a", "UnexpectedAt(0)", "Symbol b"],
            ),
            ("##Inf ##-Inf ##x ##", &["Symbolic ##Inf", "Symbolic ##-Inf", "Symbolic ##x", "Symbolic ##"]),
            ("a;b\nc", &["Symbol a", "Comment ;b", "Symbol c"]),
            ("#!/bin/x (\nc", &["Comment #!/bin/x (", "Symbol c"]),
            ("\u{feff}a", &["Symbol a"]),
        ];
        for (text, expected) in cases {
            assert_eq!(lexed(text), *expected, "{text}");
        }
    }

    #[test]
    fn strings_and_characters() {
        let cases: &[(&str, &[&str])] = &[
            (r#""a\"b" c"#, &[r#"String "a\"b""#, "Symbol c"]),
            (r#""\\" c"#, &[r#"String "\\""#, "Symbol c"]),
            (r#""\λ" c"#, &[r#"String "\λ""#, "Symbol c"]),
            (r##"#"\d+" c"##, &[r##"Regex #"\d+""##, "Symbol c"]),
            ("\"a\nb\"", &["String \"a\nb\""]),
            ("\"a", &["UnclosedString"]),
            ("\"a\\", &["UnclosedString"]),
            ("#\"λ\\\nb", &["EscapedLineBreak(4)"]),
            (r"\a\b", &[r"Character \a", r"Character \b"]),
            (r"\newline \newlines", &[r"Character \newline", r"Character \newlines"]),
            (r"\space\newline \ab(", &[r"Character \space", r"Character \newline", r"Character \ab", "Open(List) ("]),
            (r"\n \λ \( \\ \;", &[r"Character \n", r"Character \λ", r"Character \(", r"Character \\", r"Character \;"]),
            (r"\u0041 \u00e", &[r"Character \u0041", r"Character \u00e"]),
            (r"\ x \ ", &[r"Character \ x", r"Character \ "]),
            (r"\", &["EmptyCharacter"]),
        ];
        for (text, expected) in cases {
            assert_eq!(lexed(text), *expected, "{text}");
        }
    }
}
