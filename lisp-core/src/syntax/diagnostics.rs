//! The errors of the reader: one constructor for each.

use super::hidden::{is_bidirectional, is_hidden, is_invisible};
use super::lexer::{CHARACTER_NAMES, Closer, Delimiter};
use super::literals::{CharacterFault, DIGITS};
use super::position::LineIndex;
use crate::error::{Error, Reason, Span};

/// The maximum number of characters of the program's own text in a message.
const EXCERPT_CHARACTERS: usize = 60;

/// The source is longer than the limit.
pub(super) fn too_large(reached: usize, limit: usize) -> Error {
    Error::new(Reason::ProgramTooLarge, format!("the program has {reached} bytes; the limit is {limit}"))
        .hint("shorten the program, pass large data as data instead of literals, or raise the limit program_bytes")
        .detail("limit", limit)
        .detail("reached", reached)
}

/// The source is longer than spans can count.
pub(super) fn too_large_for_spans(reached: usize) -> Error {
    let limit = u32::MAX as usize - 1;
    let message = format!("the program has {reached} bytes; no program can have more than {limit}");
    Error::new(Reason::ProgramTooLarge, message)
        .hint("pass large data as data instead of literals")
        .detail("limit", limit)
        .detail("reached", reached)
}

/// There are more names than the limit.
pub(super) fn too_many_names(limit: usize, reached: usize, span: Span) -> Error {
    let message = format!("the program has at least {reached} distinct symbols and keywords; the limit is {limit}");
    Error::new(Reason::SymbolLimitExceeded, message)
        .at(span)
        .hint("use strings for keys that are data, or raise the limit symbols")
        .detail("limit", limit)
        .detail("reached", reached)
}

/// The nesting is deeper than the limit.
pub(super) fn too_deep(limit: usize, ceiling: usize, span: Span) -> Error {
    let reached = limit + 1;
    let hint = match limit < ceiling {
        true => "name inner parts with let, def or defn to make the program flatter",
        false => "name inner parts with let, def or defn to make the program flatter: this limit cannot be raised",
    };
    parse_error(format!("nested too deep: {reached} delimiters are open here; the nesting limit is {limit}"), span)
        .hint(hint)
        .detail("limit", limit)
        .detail("reached", reached)
}

/// A number has more digits than the limit.
pub(super) fn too_many_digits(reached: usize, span: Span) -> Error {
    parse_error(format!("a number literal has {reached} digits; the limit is {DIGITS} before the point"), span)
        .hint("compute the number, such as (* a b), or keep it as a string; this limit cannot be raised")
        .detail("limit", DIGITS)
        .detail("reached", reached)
}

/// A float is beyond the largest one.
pub(super) fn float_out_of_range(text: &str, span: Span) -> Error {
    let message = format!("the float `{}` is out of range; the largest float is 1.7976931348623157e308", excerpt(text));
    parse_error(message, span).hint("write ##Inf or ##-Inf for infinity")
}

/// A token starts like a number and is not one.
pub(super) fn malformed_number(text: &str, span: Span) -> Error {
    let hint = match text.split_once(['*', '/', '<', '>', '=']).or_else(|| split_at_sign(text)) {
        Some((left, right)) if !right.is_empty() => {
            let operator = text.get(left.len()..text.len() - right.len()).unwrap_or("-");
            format!("operators come first: write ({operator} {} {})", excerpt(left), excerpt(right))
        }
        _ if text.contains(['_', '\u{2019}']) => "write the digits without separators, such as 1000000".to_owned(),
        _ => "write a number such as 42, -1.5 or 1e3, and leave a space after it; a name cannot start with a digit"
            .to_owned(),
    };
    parse_error(format!("invalid number `{}`", excerpt(text)), span).hint(hint)
}

/// Returns the parts of `10-3` around its sign, which is neither at the front nor after the letter of an exponent.
fn split_at_sign(text: &str) -> Option<(&str, &str)> {
    let is_operator = |(at, _): &(usize, &str)| *at > 0 && !text[..*at].ends_with(['e', 'E']);
    let (at, sign) = text.match_indices(['+', '-']).find(is_operator)?;
    Some((&text[..at], &text[at + sign.len()..]))
}

/// An integer such as `010`.
pub(super) fn leading_zero(text: &str, span: Span) -> Error {
    let unsigned = text.trim_start_matches(['-', '+']).trim_end_matches('N');
    let sign = if text.starts_with('-') { "-" } else { "" };
    let digits = unsigned.trim_start_matches('0');
    let plain = format!("write {sign}{}", excerpt(digits));
    let (meaning, hint) = match digits.contains(['8', '9']) {
        true => ("digits after a zero are octal, and go up to 7", plain),
        false => {
            ("it may be decimal or, as in Clojure, octal", format!("{plain}, or {sign}8r{} for octal", excerpt(digits)))
        }
    };
    parse_error(format!("the number `{}` starts with a zero: {meaning}", excerpt(text)), span).hint(hint)
}

/// A number such as `37r1` or `2r3`.
pub(super) fn wrong_radix(text: &str, span: Span) -> Error {
    parse_error(
        format!("invalid number `{}`: the radix before `r` is 2 to 36, and its digits are below it", excerpt(text)),
        span,
    )
    .hint("write it like 2r101, 16rFF or 36rZZ")
}

/// A number such as `1/2`.
pub(super) fn ratio(text: &str, span: Span) -> Error {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    Error::new(Reason::UnboundVar, format!("there are no ratios such as `{}`", excerpt(text))).at(span).hint(format!(
        "write (/ {} {}), which is a float",
        excerpt(above),
        excerpt(below)
    ))
}

/// A number such as `1.5M`.
pub(super) fn exact_decimal(text: &str, span: Span) -> Error {
    Error::new(Reason::UnboundVar, format!("there are no exact decimals such as `{}`", excerpt(text)))
        .at(span)
        .hint(format!("write {}", excerpt(text.trim_end_matches('M'))))
}

/// A mark such as `#_` with no form after it.
pub(super) fn mark_of_nothing(text: &str, mark: Span) -> Error {
    parse_error(format!("expected a form after `{}`", slice(text, mark)), mark)
        .hint("write the form, or delete the mark")
}

/// An unknown name after `##`.
pub(super) fn unknown_symbolic(text: &str, span: Span) -> Error {
    parse_error(format!("expected ##Inf, ##-Inf or ##NaN, got `{}`", excerpt(text)), span)
        .hint("write one of these three; no other value is written with ##")
}

/// The text ends before a collection does.
pub(super) fn unclosed(delimiter: Delimiter, opener: Span, missing: &str) -> Error {
    let (name, closer) = (delimiter.name(), delimiter.closer().character());
    let message = format!(
        "unclosed {name}: expected `{closer}` to close this `{}`, got the end of the program",
        delimiter.opener()
    );
    let hint = match missing.len() {
        0 | 1 => format!("add `{closer}` where the {name} should end"),
        open => format!(
            "add `{closer}` where the {name} should end; {open} are open in all, `{}` at the end closes them",
            excerpt(missing)
        ),
    };
    parse_error(message, opener).hint(hint).detail("missing", missing)
}

/// A closing delimiter does not match the innermost open one. `fits` tells whether it would close one further out.
pub(super) fn mismatched(
    text: &str,
    (delimiter, opener): (Delimiter, Span),
    (closer, span): (Closer, Span),
    fits: bool,
) -> Error {
    let (expected, got) = (delimiter.closer().character(), closer.character());
    let (line, column) = LineIndex::new(text).position(opener.start);
    let message = format!(
        "mismatched delimiter: expected `{expected}` to close the {} that `{}` opens at line {line}, column {column}, \
         got `{got}`",
        delimiter.name(),
        delimiter.opener()
    );
    parse_error(message, span).hint(match fits {
        true => format!("add `{expected}` before this `{got}`"),
        false => format!("write `{expected}` instead of this `{got}`"),
    })
}

/// Closing delimiters without an open one; `span` is that of the first.
pub(super) fn surplus(closer: Closer, count: usize, span: Span) -> Error {
    let character = closer.character();
    let message = match count {
        1 => format!("unexpected `{character}`: there is nothing to close"),
        _ => format!("{count} unexpected delimiters, the first is `{character}`: there is nothing to close"),
    };
    parse_error(message, span)
        .hint("delete it, or move it after the form that it should close")
        .detail("surplus", count)
}

/// A map with a key that has no value.
pub(super) fn odd_map(text: &str, forms: usize, key: Span) -> Error {
    let key_text = excerpt(slice(text, key));
    let message = format!(
        "expected a value after the last key `{key_text}`: a map literal has an even number of forms, got {forms}"
    );
    parse_error(message, key).hint("give each key a value, and delete any other form")
}

/// A map or set literal has the same key twice; `again` is the second position.
pub(super) fn duplicate_key(text: &str, delimiter: Delimiter, again: Span) -> Error {
    let part = if delimiter == Delimiter::Map { "key" } else { "element" };
    let (name, key) = (delimiter.name(), excerpt(slice(text, again)));
    Error::new(Reason::DuplicateKey, format!("duplicate {part} `{key}` in a {name} literal")).at(again).hint(
        match delimiter {
            Delimiter::Map => "keep one of the two; to set a key again use assoc or merge",
            _ => "keep one of the two; to build a set of computed values use (set [...])",
        },
    )
}

/// The text ends before a string or regex does.
pub(super) fn unclosed_string(text: &str, start: u32) -> Error {
    let (name, opener) = string_opener(text, start);
    parse_error(format!("unclosed {name}: expected `\"` to close it, got the end of the program"), opener)
        .hint(format!("add `\"` where the {name} should end; a quote inside it is written `\\\"`"))
}

/// A backslash before a line break in a string or regex.
pub(super) fn escaped_line_break(text: &str, start: u32, backslash: u32) -> Error {
    let (name, _) = string_opener(text, start);
    let at = start.saturating_add(backslash);
    let message = format!("a line break after a backslash in a {name}: expected another character to escape");
    parse_error(message, Span::new(at, at.saturating_add(1)))
        .hint("write `\\n` for a line break, or break the line without a backslash")
}

/// The text ends after a backslash.
pub(super) fn empty_character(span: Span) -> Error {
    parse_error("expected a character after `\\`, got the end of the program", span)
        .hint("write a character such as \\a or \\newline, or delete the backslash")
}

/// A backslash before something that is not a character.
pub(super) fn no_character(text: &str, span: Span, fault: CharacterFault) -> Error {
    let literal = excerpt(slice(text, span));
    match fault {
        CharacterFault::Hidden => {
            let name = slice(text, span).chars().nth(1).map_or(String::new(), describe);
            parse_error(format!("expected a visible character after `\\`, got {name}"), span)
                .hint("write the character inside a string instead")
        }
        CharacterFault::Unicode => parse_error(
            format!("`{literal}` is not a character: expected four hexadecimal digits of one after `\\u`"),
            span,
        )
        .hint("write it like \\u00e9; write a character of two units in a string"),
        CharacterFault::Octal => {
            parse_error(format!("`{literal}` is not a character: expected octal digits up to 377 after `\\o`"), span)
                .hint("write it like \\o101, or \\u0041")
        }
        CharacterFault::Unknown if literal.starts_with("\\\"") => {
            parse_error(format!("`{literal}` is not a character: expected one character after `\\`"), span)
                .hint("write a string with plain quotes, and no backslash before them")
        }
        CharacterFault::Unknown => {
            let names: Vec<_> = CHARACTER_NAMES.iter().map(|(name, _)| format!("\\{name}")).collect();
            parse_error(format!("`{literal}` is not a character: expected one character after `\\`, or its name"), span)
                .hint(format!("write one such as \\a with a space after it, {}, or a string", names.join(", ")))
        }
    }
}

/// A name such as `/a` or `a/`.
pub(super) fn beside_slash(name: &str, span: Span) -> Error {
    parse_error(
        format!("invalid name `{}`: a slash needs a namespace before it and a name after it", excerpt(name)),
        span,
    )
    .hint("write it like str/join, or as one word without a slash")
}

/// A name such as `a:` or `a::b`.
pub(super) fn colon_in_name(name: &str, span: Span) -> Error {
    let keyword = name.trim_matches(':');
    parse_error(format!("invalid name `{}`: a name cannot end in a colon or contain `::`", excerpt(name)), span).hint(
        match keyword.contains(':') {
            true => "write a keyword such as :name, with the colon in front".to_owned(),
            false => format!("write :{} for a keyword: its colon is in front", excerpt(keyword)),
        },
    )
}

/// Adds to an error of a text in which a Markdown fence does not enclose everything.
pub(super) fn beside_fence(error: Error) -> Error {
    const ALONE: &str = "send the program alone, without the text around its Markdown fence";
    let hint = error.hint.as_ref().map_or(ALONE.to_owned(), |hint| format!("{ALONE}; or {hint}"));
    if error.reason == Reason::ParseError { error.hint(hint) } else { error }
}

/// A quote mark before a collection; `at` is the position of the mark.
pub(super) fn quoted_collection(at: u32) -> Error {
    parse_error("a `'` between a name and a collection: it may belong to either", mark(at, 1))
        .hint("leave a space after the name, or before the quote")
}

/// A text that does not start a token.
pub(super) fn unexpected(text: &str, at: u32) -> Error {
    let rest = text.get(at as usize..).unwrap_or("");
    let mut characters = rest.chars();
    let Some(first) = characters.next() else {
        return parse_error("expected a form, got the end of the program", mark(at, 0)).hint("write a form here");
    };
    let second = characters.next();
    let here = Span::new(at, at.saturating_add(u32::try_from(first.len_utf8()).unwrap_or(u32::MAX)));
    match first {
        '#' => unexpected_dispatch(second, at),
        ':' if second == Some(':') => {
            parse_error("keywords such as `::name` are not supported: expected a name after `:`", mark(at, 2))
                .hint("write :name")
        }
        ':' => parse_error("expected a name right after `:`", here)
            .hint("write a keyword such as :name, with no space after the colon"),
        '@' => parse_error("`@` is not supported: there are no atoms or refs to dereference", here)
            .hint("write the name without `@`; keep state in loop, reduce or def"),
        '`' | '~' if rest.starts_with("```") || rest.starts_with("~~~") => {
            parse_error("a Markdown code fence is inside the program", mark(at, 3))
                .hint("delete the mark; a fence may enclose the whole program only, in lines of its own")
        }
        '`' | '~' => {
            parse_error(format!("the character {first} is not supported: there are no macros to define"), here)
                .hint("write a function with fn or defn")
        }
        _ => unexpected_character(first, here),
    }
}

/// A `#` that does not start a token.
fn unexpected_dispatch(second: Option<char>, at: u32) -> Error {
    match second {
        Some('\'') => {
            parse_error("expected a symbol right after `#'`", mark(at, 2)).hint("write #'name, or just the name")
        }
        Some('?') => parse_error("reader conditionals `#?` are not supported", mark(at, 2))
            .hint("write the form for this language only"),
        Some(letter) if letter.is_alphabetic() => {
            parse_error("tagged literals such as #inst or #uuid are not supported", mark(at, 1))
                .hint("write the plain string, \"2024-01-01\", and parse it if necessary")
        }
        _ => parse_error("expected `{`, `(`, `\"`, `'` or `#Inf` right after `#`", mark(at, 1))
            .hint("write #{1 2} for a set, #(+ % 1) for a function, #\"a+\" for a regex, without a space after #"),
    }
}

/// A character without meaning outside of strings and comments.
fn unexpected_character(character: char, span: Span) -> Error {
    let name = describe(character);
    if is_bidirectional(character) {
        return parse_error(format!("a character that changes the direction of writing: {name}"), span)
            .hint("delete it; it is allowed in strings and comments only");
    }
    if character.is_control() || is_invisible(character) {
        return parse_error(format!("an invisible character: {name}"), span)
            .hint("delete it; it is allowed in strings and comments only");
    }
    if character.is_whitespace() {
        return parse_error(format!("expected whitespace, got {name}, which does not count as whitespace here"), span)
            .hint("write an ordinary space or line break instead");
    }
    let error = parse_error(format!("unexpected character {name}"), span);
    match character {
        '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}' => error.hint("write straight quotes: \"text\""),
        '\u{2018}' | '\u{2019}' => error.hint("write a straight quote: 'name, or \"text\" for a string"),
        '\u{2013}' | '\u{2014}' | '\u{2212}' => error.hint("write an ordinary minus: -"),
        _ if character.is_ascii() => {
            error.hint("delete it; names consist of letters, digits and * + ! - _ ' ? < > = . & % $ | # : /")
        }
        _ => error.hint("names consist of letters and digits; put other text into a string: \"...\""),
    }
}

fn parse_error(message: impl Into<String>, span: Span) -> Error {
    Error::new(Reason::ParseError, message).at(span)
}

fn mark(at: u32, width: u32) -> Span {
    Span::new(at, at.saturating_add(width))
}

/// Returns what starts with the quote of the string or regex that starts here, and the position of that quote.
fn string_opener(text: &str, start: u32) -> (&'static str, Span) {
    match slice(text, mark(start, 1)) {
        "#" => ("regex", mark(start, 2)),
        _ => ("string", mark(start, 1)),
    }
}

fn slice(text: &str, span: Span) -> &str {
    text.get(span.start as usize..span.end as usize).unwrap_or("")
}

/// Returns the character in a form that a person can see and search.
fn describe(character: char) -> String {
    let code = u32::from(character);
    match is_hidden(character) || character.is_whitespace() {
        true => format!("U+{code:04X}"),
        false if character.is_ascii() => format!("`{character}`"),
        false => format!("`{character}` (U+{code:04X})"),
    }
}

/// Returns text of the program, short and on one line: messages end up in terminals and prompts.
fn excerpt(text: &str) -> String {
    let mut characters = text.chars().map(|c| if is_hidden(c) { ' ' } else { c });
    let mut short: String = characters.by_ref().take(EXCERPT_CHARACTERS).collect();
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}
