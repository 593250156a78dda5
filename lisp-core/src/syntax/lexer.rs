//! From text to tokens.
//!
//! Whitespace and comments are tokens too, and long tokens are scanned by loops of our own: the generated automaton
//! chains skipped tokens and multi-state repetitions by tail calls, which an unoptimised build really makes.

use crate::error::Span;
use logos::{Lexer, Logos};

/// Some editors write this character in front of UTF-8 text. It is skipped there, and refused anywhere else.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The literals such as `\newline`. A name is enough to begin with: `\tabs` is `\tab` and the symbol `s`.
pub const CHARACTER_NAMES: [(&str, &str); 6] =
    [("newline", "\n"), ("space", " "), ("tab", "\t"), ("return", "\r"), ("backspace", "\u{8}"), ("formfeed", "\u{c}")];

/// What a collection of forms stands in.
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
    /// What opens it.
    pub const fn opener(self) -> &'static str {
        match self {
            Delimiter::List => "(",
            Delimiter::Vector => "[",
            Delimiter::Map => "{",
            Delimiter::Set => "#{",
            Delimiter::ShortFn => "#(",
        }
    }

    /// What closes it.
    pub const fn closer(self) -> Closer {
        match self {
            Delimiter::List | Delimiter::ShortFn => Closer::Paren,
            Delimiter::Vector => Closer::Bracket,
            Delimiter::Map | Delimiter::Set => Closer::Brace,
        }
    }

    /// What it is called in a message.
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
    /// The character itself.
    pub const fn character(self) -> char {
        match self {
            Closer::Paren => ')',
            Closer::Bracket => ']',
            Closer::Brace => '}',
        }
    }
}

/// Why no token starts where it should, or why one does not end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LexError {
    /// No token starts with this text.
    #[default]
    Unexpected,
    /// The text ends inside a string or a regex.
    UnclosedString,
    /// A backslash stands before a line break in a string or a regex; this many bytes after the token's start.
    EscapedLineBreak(u32),
    /// The text ends after the backslash of a character literal.
    EmptyCharacter,
}

/// The tokens. Their text is what their span covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
#[logos(error = LexError)]
#[logos(subpattern first = r"[a-zA-Z+\-*/<>=?!_%.&$]")]
#[logos(subpattern rest = r"[a-zA-Z0-9+\-*/<>=?!_%.&'$]")]
#[logos(subpattern key = r"[a-zA-Z0-9+\-*<>=?!_%.&'$]")]
#[logos(subpattern exponent = r"[eE][+\-]?[0-9]+")]
pub enum Token {
    /// Whitespace, commas among it.
    #[regex(r"[ \t\r\n,]+")]
    Space,
    /// `; ...` up to, not including, the line's end; `#! ...`, with which a script names its interpreter, as well.
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
    /// `nil`
    #[token("nil")]
    Nil,
    /// `true`
    #[token("true")]
    True,
    /// `false`
    #[token("false")]
    False,
    /// `-42`, `42N`, `0x2A`, and the numbers of Clojure that the reader refuses: `4.2M`, `1/2`. Anything else that follows begins
    /// the next token: `1a` is `1` and the symbol `a`.
    #[regex(r"-?[0-9]+", number)]
    Integer,
    /// `-1.5e3`
    #[regex(r"-?[0-9]+(\.[0-9]+(?&exponent)?|(?&exponent))", number)]
    Float,
    /// `##Inf`, `##-Inf`, `##NaN`, or any other name after `##`, which the reader refuses.
    #[regex(r"##(?&rest)*")]
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
    /// `:name`, `:space/name`
    #[regex(r":(?&key)+(/(?&key)+)?")]
    Keyword,
    /// `name`; what begins with a minus and a digit is a number instead.
    #[regex(r"[a-zA-Z+*/<>=?!_%.&$](?&rest)*|-([a-zA-Z+\-*/<>=?!_%.&'$](?&rest)*)?")]
    Symbol,
    /// `'name`
    #[regex(r"'(?&first)(?&rest)*")]
    Quote,
    /// `'` before what is no name
    #[token("'")]
    QuoteNext,
    /// `#_`: the next form is left out.
    #[token("#_")]
    Discard,
    /// `^`: the next form says something of the one behind it, and is left out.
    #[token("^")]
    Meta,
    /// `#'name`
    #[regex(r"#'(?&first)(?&rest)*")]
    Var,
}

/// The tokens of a text, whitespace and comments among them. A text of 4 GiB and more must not come here: spans could
/// not say where its tokens are.
pub fn tokens(text: &str) -> impl Iterator<Item = (Result<Token, LexError>, Span)> + '_ {
    let mut lexer = Token::lexer(text);
    if text.starts_with(BYTE_ORDER_MARK) {
        lexer.bump(BYTE_ORDER_MARK.len());
    }
    lexer.spanned().map(|(token, range)| (token, Span::new(offset(range.start), offset(range.end))))
}

/// Can a program write this behind a prefix such as `data/`?
pub fn is_name_part(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-*/<>=?!_%.&'$".contains(c))
}

fn offset(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Takes what else belongs to a number whose digits are taken.
fn number(lexer: &mut Lexer<'_, Token>) {
    let rest = lexer.remainder().as_bytes();
    let digits = |from: usize, is: fn(&u8) -> bool| rest.iter().skip(from).take_while(|b| is(b)).count();
    let more = match rest.first() {
        Some(b'N' | b'M') => 1,
        Some(b'x' | b'X') if matches!(lexer.slice(), "0" | "-0") => match digits(1, u8::is_ascii_hexdigit) {
            0 => 0,
            hex => 1 + hex + usize::from(rest.get(1 + hex) == Some(&b'N')),
        },
        Some(b'/') => match digits(1, u8::is_ascii_digit) {
            0 => 0,
            digits => 1 + digits,
        },
        _ => 0,
    };
    let ends = rest.get(more).is_none_or(|b| !b.is_ascii_alphanumeric() && !b"+-*/<>=?!_%.&'$".contains(b));
    if ends {
        lexer.bump(more);
    }
}

fn comment(lexer: &mut Lexer<'_, Token>) {
    let rest = lexer.remainder();
    lexer.bump(rest.find('\n').unwrap_or(rest.len()));
}

/// Takes the rest of a string or regex whose opening quote is taken.
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

/// Takes the rest of a character literal whose backslash is taken.
fn character(lexer: &mut Lexer<'_, Token>) -> Result<(), LexError> {
    let rest = lexer.remainder();
    let length = match CHARACTER_NAMES.iter().find(|(name, _)| rest.starts_with(name)) {
        Some((name, _)) => name.len(),
        None if super::literals::unicode(rest).is_some() => "uXXXX".len(),
        None => rest.chars().next().ok_or(LexError::EmptyCharacter)?.len_utf8(),
    };
    lexer.bump(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_is_what_a_symbol_may_go_on_with() {
        for c in (0..0x180).filter_map(char::from_u32) {
            for text in [c.to_string(), format!("a{c}"), format!("a{c}b")] {
                let symbol = format!("data/{text}");
                let one = tokens(&symbol).collect::<Vec<_>>().as_slice()
                    == [(Ok(Token::Symbol), Span::new(0, symbol.len() as u32))];
                assert_eq!(is_name_part(&text), one, "{text:?}");
            }
        }
        assert!(!is_name_part(""));
    }

    /// The kinds and texts of all tokens but whitespace.
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
    fn numbers_stop_where_their_grammar_does() {
        let cases: &[(&str, &[&str])] = &[
            ("-42", &["Integer -42"]),
            ("+5", &["Symbol +5"]),
            ("--5", &["Symbol --5"]),
            ("-", &["Symbol -"]),
            ("-'", &["Symbol -'"]),
            ("-x1", &["Symbol -x1"]),
            ("1-2", &["Integer 1", "Integer -2"]),
            ("1.5", &["Float 1.5"]),
            ("-1.5e-3", &["Float -1.5e-3"]),
            ("1e5", &["Float 1e5"]),
            ("1E+5", &["Float 1E+5"]),
            ("1e", &["Integer 1", "Symbol e"]),
            ("1e+", &["Integer 1", "Symbol e+"]),
            ("1e+x", &["Integer 1", "Symbol e+x"]),
            ("1.5e", &["Float 1.5", "Symbol e"]),
            ("1.5e-", &["Float 1.5", "Symbol e-"]),
            ("1.5.2", &["Float 1.5", "Symbol .2"]),
            ("5.", &["Integer 5", "Symbol ."]),
            (".5", &["Symbol .5"]),
            ("1/2", &["Integer 1/2"]),
            ("1/x 1/2a", &["Integer 1", "Symbol /x", "Integer 1", "Symbol /2a"]),
            ("0x1F -0x1fN", &["Integer 0x1F", "Integer -0x1fN"]),
            ("0x 1x1 0x1g", &["Integer 0", "Symbol x", "Integer 1", "Symbol x1", "Integer 0", "Symbol x1g"]),
            ("10N 1.5M 1M", &["Integer 10N", "Float 1.5M", "Integer 1M"]),
            ("10Na", &["Integer 10", "Symbol Na"]),
            ("1_000", &["Integer 1", "Symbol _000"]),
            ("1'a", &["Integer 1", "Quote 'a"]),
        ];
        for (text, expected) in cases {
            assert_eq!(lexed(text), *expected, "{text}");
        }
    }

    #[test]
    fn names() {
        let cases: &[(&str, &[&str])] = &[
            ("nil", &["Nil nil"]),
            ("nil?", &["Symbol nil?"]),
            ("nil'", &["Symbol nil'"]),
            ("truex", &["Symbol truex"]),
            ("true:a", &["True true", "Keyword :a"]),
            ("false\"\"", &["False false", "String \"\""]),
            ("%& %1 & . / a/b/c", &["Symbol %&", "Symbol %1", "Symbol &", "Symbol .", "Symbol /", "Symbol a/b/c"]),
            ("inc'", &["Symbol inc'"]),
            ("a'b", &["Symbol a'b"]),
            ("'nil '-1 '*1 'a/b", &["Quote 'nil", "Quote '-1", "Quote '*1", "Quote 'a/b"]),
            ("#'x #'+'", &["Var #'x", "Var #'+'"]),
            (":a/b :a/ :a/b/c", &["Keyword :a/b", "Keyword :a", "Symbol /", "Keyword :a/b", "Symbol /c"]),
            (":a.b :a'", &["Keyword :a.b", "Keyword :a'"]),
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
            (":a:b", &["Keyword :a", "Keyword :b"]),
            (":1 :->> :a?", &["Keyword :1", "Keyword :->>", "Keyword :a?"]),
            ("a#b", &["Symbol a", "Unexpected", "Symbol b"]),
            ("##Inf ##-Inf ##x ##", &["Symbolic ##Inf", "Symbolic ##-Inf", "Symbolic ##x", "Symbolic ##"]),
            ("##Inf#{", &["Symbolic ##Inf", "Open(Set) #{"]),
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
            (r"\newline \newlines", &[r"Character \newline", r"Character \newline", "Symbol s"]),
            (r"\n \λ \( \\ \;", &[r"Character \n", r"Character \λ", r"Character \(", r"Character \\", r"Character \;"]),
            (r"\u0041 \u00e", &[r"Character \u0041", r"Character \u", "Integer 00", "Symbol e"]),
            (r"\ x", &[r"Character \ ", "Symbol x"]),
            (r"\", &["EmptyCharacter"]),
        ];
        for (text, expected) in cases {
            assert_eq!(lexed(text), *expected, "{text}");
        }
    }
}
