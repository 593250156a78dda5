use super::*;
use crate::error::{Detail, Reason};
use crate::syntax::LineIndex;
use proptest::prelude::*;

/// Returns a form as text that distinguishes all kinds.
fn show(form: &Form, names: &Names) -> String {
    let all = |forms: &[Form]| forms.iter().map(|form| show(form, names)).collect::<Vec<_>>().join(" ");
    match &form.kind {
        FormKind::Nil => "nil".to_owned(),
        FormKind::Bool(value) => value.to_string(),
        FormKind::Int(value) => value.to_string(),
        FormKind::Big(value) => format!("{value}N"),
        FormKind::Float(value) => format!("{value:?}"),
        FormKind::Str(text) => format!("{text:?}"),
        FormKind::Regex(text) => format!("#{text:?}"),
        FormKind::Keyword(name) => format!(":{}", names.text(*name)),
        FormKind::Symbol(name) => names.text(*name).to_owned(),
        FormKind::Quote(form) => format!("'{}", show(form, names)),
        FormKind::Var(name) => format!("#'{}", names.text(*name)),
        FormKind::List(forms) => format!("({})", all(forms)),
        FormKind::Vector(forms) => format!("[{}]", all(forms)),
        FormKind::Map(forms) => format!("{{{}}}", all(forms)),
        FormKind::Set(forms) => format!("#{{{}}}", all(forms)),
        FormKind::ShortFn(forms) => format!("#({})", all(forms)),
    }
}

fn shown(text: &str) -> Result<String, Error> {
    let source = read(text, &ReadLimits::default())?;
    Ok(source.forms.iter().map(|form| show(form, &source.names)).collect::<Vec<_>>().join(" "))
}

fn error(text: &str) -> Error {
    match read(text, &ReadLimits::default()) {
        Ok(source) => panic!("{text:?} was read as {:?}", source.forms),
        Err(error) => error,
    }
}

#[test]
fn forms() {
    let cases = [
        ("", ""),
        (" ,\t\r\n", ""),
        ("; just a comment", ""),
        ("\u{feff}1", "1"),
        ("```clojure\n[1 \"a\n```\n\"]\n```\n", "[1 \"a\\n```\\n\"]"),
        ("```\n```", ""),
        ("1 2 nil", "1 2 nil"),
        ("[1,2;x ]\n3]", "[1 2 3]"),
        ("(+ 1 (f))", "(+ 1 (f))"),
        ("()", "()"),
        ("{:a 1 \"b\" [2]}", "{:a 1 \"b\" [2]}"),
        ("#{} #{1 1.5}", "#{} #{1 1.5}"),
        ("#(+ % %2) #()", "#(+ % %2) #()"),
        ("#(f #(g))", "#(f #(g))"),
        ("'x 'nil '-1 #'x #'nil", "'x 'nil '-1 #'x #'nil"),
        ("nil true false nil?", "nil true false nil?"),
        ("9223372036854775808 -5 +5", "9223372036854775808N -5 5"),
        ("1.5e3 ##Inf ##-Inf ##NaN 1e-999", "1500.0 inf -inf NaN 0.0"),
        ("10N 0x1F :a/b :a.b 5. +5 8r17", "10 31 :a/b :a.b 5.0 5 15"),
        (r"\a \newline \space\tab \u0041", r#""a" "\n" " " "\t" "A""#),
        ("[#_a 1 #_ #_ 2 (3) {#_:k :a #_1 2} #_'b] #_c", "[1 {:a 2}]"),
        ("'(1 a [b #(c)]) 'x '5 ''y '#{a} '{a (b)} '#_1 z", "'(1 a [b #(c)]) 'x '5 ''y '#{a} '{a (b)} 'z"),
        ("größe :größe 'größe #'größe data/größe", "größe :größe 'größe #'größe data/größe"),
        (":a/b/c :a:b a:b a#b a|b x² :/ :1", ":a/b/c :a:b a:b a#b a|b x² :/ :1"),
        ("#_'a 'b '#_a c #_#_'a b c ' #_a 'b", "'b 'c c ''b"),
        (r"\o101\space 1'a", r#""A" " " 1 'a"#),
        ("^:k ^{:a 1} f #_'x y (as-> 1 $ $)", "f y (as-> 1 $ $)"),
        (r#""\u00e9\u12" #"\u00e9""#, r##""é\\u12" #"\\u00e9""##),
        (r#""a\qb\n" #"\d\\d\"""#, r#""a\\qb\n" #"\\d\\\\d\\\"""#),
        ("\"a\r\nλ\u{0}\u{202e}\" ;\u{0}\u{202e}", "\"a\\r\\nλ\\0\\u{202e}\""),
        ("\\\n", "\"\\n\""),
        ("(map inc' [1])(inc')", "(map inc' [1]) (inc')"),
        ("(as-> 1 x)[[\"a\"][1]]", "(as-> 1 x) [[\"a\"] [1]]"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text).as_deref(), Ok(expected), "{text:?}");
    }
}

#[test]
fn spans() {
    let text = "\u{feff}“";
    assert_eq!(error(text).span, Some(Span::new(3, 6)));
    let source = read("\u{feff}[\"λ\" #{:a}]  'x", &ReadLimits::default()).expect("it is well-formed");
    assert_eq!(source.forms.iter().map(|form| form.span).collect::<Vec<_>>(), [Span::new(3, 15), Span::new(17, 19)]);
    let FormKind::Vector(inner) = &source.forms[0].kind else { panic!("not a vector") };
    assert_eq!(inner.iter().map(|form| form.span).collect::<Vec<_>>(), [Span::new(4, 8), Span::new(9, 14)]);
}

/// Text, the span of the error, and what the message and the hint must contain.
type Fault = (&'static str, (u32, u32), &'static str, &'static str);

fn check(reason: Reason, faults: &[Fault]) {
    for &(text, (start, end), message, hint) in faults {
        let error = error(text);
        assert_eq!(error.reason, reason, "{text:?}: {error}");
        assert_eq!(error.span, Some(Span::new(start, end)), "{text:?}: {error}");
        assert!(error.message.contains(message), "{text:?}: {error}");
        let given = error.hint.unwrap_or_default();
        assert!(given.contains(hint) && !given.is_empty(), "{text:?}: hint {given}");
    }
}

#[test]
fn faults_of_delimiters() {
    check(
        Reason::ParseError,
        &[
            ("(+ 1", (0, 1), "unclosed list: expected `)` to close this `(`", "add `)`"),
            ("[1 2 3", (0, 1), "unclosed vector: expected `]`", "add `]`"),
            ("#{1 2", (0, 2), "unclosed set: expected `}` to close this `#{`", "add `}`"),
            ("#(f", (0, 2), "unclosed short function: expected `)` to close this `#(`", "add `)`"),
            ("(a [b {:c", (6, 7), "unclosed map", "3 are open in all, `}])` at the end closes them"),
            ("; λ 🚀\n(ns app) (", (19, 20), "unclosed list", "add `)`"),
            (
                "(a\n [b)",
                (6, 7),
                "expected `]` to close the vector that `[` opens at line 2, column 2, got `)`",
                "add `]` before this `)`",
            ),
            ("(f #{1 ]", (7, 8), "expected `}` to close the set", "write `}` instead of this `]`"),
            (")", (0, 1), "nothing to close", "delete it"),
            (
                "(+ 1 2)) ] }",
                (7, 8),
                "3 unexpected delimiters, the first is `)`: there is nothing to close",
                "delete it",
            ),
            ("(def x 1)\n  ))\n(+ x 1)", (12, 13), "2 unexpected delimiters", "delete it"),
            ("(f) ) (g", (6, 7), "unclosed list", "add `)`"),
            ("(+ 1 2) )) @@@", (11, 12), "`@` is not supported", "without `@`"),
            (
                "{:a 1 :b}",
                (6, 8),
                "value after the last key `:b`: a map literal has an even number of forms, got 3",
                "each key",
            ),
            ("\"hello", (0, 1), "unclosed string: expected `\"`", "add `\"`"),
            ("(f \"a\\", (3, 4), "unclosed string", "`\\\"`"),
            ("1 #\"a", (2, 4), "unclosed regex", "add `\"`"),
            ("\"a\\\nb\"", (2, 3), "a line break after a backslash in a string", "`\\n`"),
            ("#\"a\\\rb\"", (3, 4), "a line break after a backslash in a regex", "`\\n`"),
        ],
    );
}

#[test]
fn faults_of_tokens() {
    check(
        Reason::ParseError,
        &[
            ("(map inc'[1])", (8, 9), "between a name and a collection", "leave a space"),
            ("'", (0, 1), "expected a form after `'`", "delete the mark"),
            ("[1 #_]", (3, 5), "expected a form after `#_`", "delete the mark"),
            ("(f ^)", (3, 4), "expected a form after `^`", "delete the mark"),
            ("(f ^:a)", (3, 4), "expected a form after `^`", "delete the mark"),
            ("1 ^:a #_b", (2, 3), "expected a form after `^`", "delete the mark"),
            ("1 #_", (2, 4), "expected a form after `#_`", "delete the mark"),
            ("#'123", (0, 2), "expected a symbol right after `#'`", "#'name"),
            ("#'", (0, 2), "expected a symbol right after `#'`", "#'name"),
            ("# {1 2}", (0, 1), "right after `#`", "without a space"),
            ("#", (0, 1), "right after `#`", "#{1 2}"),
            ("#?(:clj 1)", (0, 2), "reader conditionals", "this language"),
            ("#inst \"2024-01-01\"", (0, 1), "tagged literals", "plain string"),
            ("##Infinity", (0, 10), "expected ##Inf, ##-Inf or ##NaN, got `##Infinity`", "three"),
            ("@state", (0, 1), "`@` is not supported", "loop, reduce or def"),
            ("`(a ~b)", (0, 1), "no macros", "fn or defn"),
            ("1\n```\n2", (2, 5), "a Markdown code fence", "enclose the whole program"),
            ("Here it is:\n```clj\n1\n```", (8, 11), "invalid name `is:`", "send the program alone"),
            ("```clj\n(f @a)\n```", (10, 11), "`@` is not supported", "loop, reduce or def"),
            ("::k", (0, 2), "`::name`", ":name"),
            (": a", (0, 1), "expected a name right after `:`", ":name"),
            ("10-3", (0, 4), "invalid number `10-3`", "write (- 10 3)"),
            ("(+ 1e3+2)", (3, 8), "invalid number `1e3+2`", "write (+ 1e3 2)"),
            ("3x", (0, 2), "invalid number `3x`", "a name cannot start with a digit"),
            ("1_000", (0, 5), "invalid number", "without separators"),
            ("010", (0, 3), "starts with a zero", "write 10, or 8r10"),
            ("-08", (0, 3), "octal, and go up to 7", "write -8"),
            ("37r1", (0, 4), "the radix before `r` is 2 to 36", "2r101"),
            ("2r102", (0, 5), "its digits are below it", "2r101"),
            (r#"[\"foo\"]"#, (1, 6), r#"`\"foo` is not a character"#, "no backslash before"),
            ("(a \\ab)", (3, 6), "`\\ab` is not a character", "\\newline"),
            ("\\newlines", (0, 9), "`\\newlines` is not a character", "a string"),
            ("\\u12", (0, 4), "four hexadecimal digits", "\\u00e9"),
            ("\\o400", (0, 5), "octal digits up to 377", "\\o101"),
            ("foo/", (0, 4), "invalid name `foo/`", "str/join"),
            ("/x", (0, 2), "invalid name `/x`", "str/join"),
            (":a/", (0, 3), "invalid name `:a/`", "str/join"),
            ("{name: 1}", (1, 6), "invalid name `name:`", "write :name for a keyword"),
            ("a::b", (0, 4), "invalid name `a::b`", "in front"),
            ("na“ïve”", (2, 5), "unexpected character `“` (U+201C)", "straight quotes"),
            ("'“a”", (1, 4), "unexpected character `“` (U+201C)", "straight quotes"),
            ("a😀", (1, 5), "unexpected character `😀`", "letters and digits"),
            ("(f “x”)", (3, 6), "unexpected character `“` (U+201C)", "straight quotes"),
            ("(−1)", (1, 4), "unexpected character `−`", "minus"),
            ("a\0b", (1, 2), "an invisible character: U+0000", "delete it"),
            ("\u{1b}[0m", (0, 1), "an invisible character: U+001B", "delete it"),
            ("a\u{c}", (1, 2), "an invisible character: U+000C", "delete it"),
            ("a \u{feff}", (2, 5), "an invisible character: U+FEFF", "delete it"),
            ("(a \u{202e} b)", (3, 6), "direction of writing: U+202E", "delete it"),
            ("a\u{a0}b", (1, 3), "expected whitespace, got U+00A0", "ordinary space"),
            ("\\", (0, 1), "expected a character after `\\`", "\\newline"),
            ("\\\0", (0, 2), "expected a visible character after `\\`, got U+0000", "string"),
            ("\\\u{2066}", (0, 4), "got U+2066", "string"),
            ("1e999", (0, 5), "out of range", "##Inf"),
            ("-1.5e400", (0, 8), "out of range", "##-Inf"),
        ],
    );
}

#[test]
fn repeated_keys() {
    check(
        Reason::DuplicateKey,
        &[
            ("{:a 1 :b 2 :a 3 :b 4}", (11, 13), "duplicate key `:a` in a map literal", "assoc"),
            ("#{1 2 1}", (6, 7), "duplicate element `1` in a set literal", "(set [...])"),
            ("[{\"a\" 1 \\a 2}]", (8, 10), "duplicate key `\\a`", "keep one"),
            ("#{0.0 -0.0}", (6, 10), "duplicate element `-0.0`", "keep one"),
            ("#{##NaN ##NaN}", (8, 13), "duplicate element", "keep one"),
            ("#{0 -0}", (4, 6), "duplicate element", "keep one"),
            ("#{1 1.0}", (4, 7), "duplicate element `1.0`", "keep one"),
            ("#{100000000000000000000 1e20}", (24, 28), "duplicate element `1e20`", "keep one"),
            ("{[-0.0] 1 [0] 2}", (10, 13), "duplicate key `[0]`", "keep one"),
            ("{nil 1 nil 2}", (7, 10), "duplicate key `nil`", "keep one"),
            ("{[1 2] 0 (1 2) 0}", (9, 14), "duplicate key `(1 2)`", "keep one"),
            ("{(keyword \"a\") 1 (keyword \"a\") 2}", (17, 30), "duplicate key", "keep one"),
            ("{{:a 1 :b [2]} 0 {:b [2] :a 1} 0}", (17, 30), "duplicate key", "keep one"),
            ("#{#{1 2} #{2 1}}", (9, 15), "duplicate element", "keep one"),
            ("#{[#{1 [{}]}] [#{[{}] 1}]}", (14, 25), "duplicate element", "keep one"),
            ("#{#(get {:a 1 :a 2} %)}", (14, 16), "duplicate key", "keep one"),
            ("#(f {% 1 %1 2})", (9, 11), "duplicate key `%1`", "keep one"),
            ("{'x 1 'x 2}", (6, 8), "duplicate key", "keep one"),
            ("#{99999999999999999999 99999999999999999999}", (23, 43), "duplicate element", "keep one"),
        ],
    );
    let distinct = [
        "{:a 1 \"a\" 2 a 3 'a 4 #'a 5}",
        "#{1 1.5 ##Inf ##-Inf ##NaN}",
        "{:a :a :b :a}",
        "{[1 2] 0 [2 1] 0}",
        "{{:a 1} 0 {1 :a} 0}",
        "#{#\"a\" #\"a\" [#\"a\"] [#\"a\"]}",
        "#{#(f) #(f) [#(f)] [#(f)]}",
        "#{[] {} #{} nil false 0 \"\"}",
        "#{% %1}",
        "#{[1 2] 1 2}",
    ];
    for text in distinct {
        assert!(shown(text).is_ok(), "{text}");
    }
    assert_eq!(error("{:a 1 :a 2} (").reason, Reason::ParseError);
}

#[test]
fn limits() {
    let limits = |source_bytes, names, nesting| ReadLimits { source_bytes, names, nesting };
    let figures = |limit, reached| vec![("limit".into(), Detail::Int(limit)), ("reached".into(), Detail::Int(reached))];
    let cases = [
        ("12345", limits(4, 0, 9), Reason::ProgramTooLarge, figures(4, 5), "the limit program_bytes", None),
        ("a :a :b c d", limits(0, 2, 9), Reason::SymbolLimitExceeded, figures(2, 3), "the limit symbols", Some((8, 9))),
        ("([{}])", limits(0, 0, 2), Reason::ParseError, figures(2, 3), "flatter", Some((2, 3))),
        ("[[1]]", limits(0, 0, 1), Reason::ParseError, figures(1, 2), "flatter", Some((1, 2))),
    ];
    for (text, limits, reason, details, hint, span) in cases {
        let error = read(text, &limits).expect_err(text);
        assert_eq!((error.reason, &error.details), (reason, &details), "{error}");
        assert_eq!(error.span, span.map(|(start, end)| Span::new(start, end)), "{error}");
        assert!(error.hint.as_deref().is_some_and(|given| given.contains(hint)), "{error}");
        assert!(error.message.contains(&format!("{:?}", limits.nesting)) || reason != Reason::ParseError, "{error}");
    }
    assert!(read("12345", &limits(5, 0, 0)).is_ok());
    assert!(read("a :a :b c", &limits(0, 3, 0)).is_ok());
    assert!(read("([{}])", &limits(0, 0, 3)).is_ok());
}

#[test]
fn digits_are_limited() {
    let nines = "9".repeat(literals::DIGITS);
    for text in [nines.clone(), format!("-{nines}"), format!("{nines}.{nines}")] {
        assert!(shown(&text).is_ok(), "{text}");
    }
    for text in [format!("9{nines}"), format!("-9{nines}"), format!("9{nines}.5"), "9".repeat(900_000)] {
        let error = error(&text);
        assert_eq!((error.reason, error.span), (Reason::ParseError, Some(Span::new(0, text.len() as u32))));
        assert_eq!(error.details[0], ("limit".into(), Detail::Int(100)));
    }
}

/// Hostile texts could use up the native stack: each of these must be parsed with very little of it.
#[test]
fn long_texts_need_no_stack() {
    let million = 1_000_000;
    let texts = [
        ("(", million, Some("nesting limit is 64")),
        ("#(", million / 2, Some("nesting limit is 64")),
        ("[{#{", million / 4, Some("nesting limit is 64")),
        (")", million, Some("1000000 unexpected delimiters")),
        ("'", million, Some("nesting limit is 64")),
        ("#_", million / 2, Some("expected a form")),
        ("^a #_b c ", million / 9, None),
        ("^", million, Some("expected a form after `^`")),
        ("^a ", million / 3, Some("expected a form after `^`")),
        ("'(a)", million / 4, None),
        ("a", million, None),
        ("%'", million / 2, None),
        (" ", million, None),
        (";\n", million / 2, None),
        (" \n;λ\n", million / 6, None),
        ("λ", million / 2, None),
        ("\\λ", million / 3, None),
        ("1 ", million / 2, None),
        ("-1e5 ", million / 5, None),
        ("1-", million / 2, Some("invalid number")),
        (" :a", million / 3, None),
        (":a", million / 2, None),
        ("''a", million / 3, None),
        ("a/", million / 2, Some("invalid name")),
        ("{:a 1}", million / 6, None),
        ("\"λ\"", million / 4, None),
        ("#{1 2}", million / 6, None),
    ];
    for (unit, count, fault) in texts {
        let text = unit.repeat(count);
        on_little_stack(move || match (shown(&text), fault) {
            (Ok(_), None) => {}
            (Err(error), Some(part)) if error.message.contains(part) => {}
            (result, _) => panic!("{count} times {unit:?}: {:?}", result.map(|shown| shown.len())),
        });
    }
    for body in ["λ".repeat(200_000), "\\\"".repeat(200_000)] {
        let text = format!("\"{body}\" ;{body}");
        on_little_stack(move || assert!(shown(&text).is_ok()));
    }
}

fn on_little_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 * 1024).spawn(work).expect("a thread can be started");
    thread.join().expect("the work does not panic");
}

#[test]
fn the_nesting_ceiling_holds() {
    let limits = ReadLimits { nesting: usize::MAX, ..ReadLimits::default() };
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let source = read(&nested(ReadLimits::NESTING_CEILING), &limits).expect("it is as deep as can be");
    assert_eq!(source.forms, source.forms.clone());
    let error = read(&nested(ReadLimits::NESTING_CEILING + 1), &limits).expect_err("one deeper");
    assert!(error.hint.is_some_and(|hint| hint.contains("cannot be raised")));
}

#[test]
fn completeness_for_a_prompt() {
    for text in ["", "1", "(f)", "; (", "\"(\"", "\\(", "{:a 1}"] {
        assert_eq!(completeness(text), Completeness::Complete, "{text:?}");
    }
    for text in ["(", "(f [1 2", "#{", "#(", "\"a", "\"a\\", "#\"a", "(f \"a", "(f ; )", "{:a", "(f) (g", "'", "#_"] {
        assert_eq!(completeness(text), Completeness::Incomplete, "{text:?}");
    }
    for text in [")", "(]", "{:a}", "(f @a", ") (", "{:a 1 :a 2}", "{:a 1 :a 2} (", "(\\", "1e999", "\"\\\n"] {
        assert!(matches!(completeness(text), Completeness::Invalid(_)), "{text:?}");
    }
}

#[test]
fn messages_are_short_and_printable() {
    let text = format!("{{\"{}\u{1b}\n\" 1 :b}}", "x\u{202e}".repeat(5_000));
    let error = error(&text.replace(" :b", " \u{22}\u{1b}[31m\u{22}"));
    assert!(error.message.len() < 400 && !error.message.chars().any(crate::syntax::hidden::is_hidden), "{error}");
    assert!(
        super::read(&"(".repeat(200), &ReadLimits::default())
            .is_err_and(|error| { error.hint.is_some_and(|hint| hint.len() < 300) && error.message.len() < 300 })
    );
}

fn walk<'a>(forms: &'a [Form], visit: &mut impl FnMut(&'a Form)) {
    for form in forms {
        visit(form);
        match &form.kind {
            FormKind::List(inner) | FormKind::Vector(inner) | FormKind::Map(inner) => walk(inner, visit),
            FormKind::Set(inner) | FormKind::ShortFn(inner) => walk(inner, visit),
            FormKind::Quote(inner) => walk(std::slice::from_ref(inner), visit),
            _ => {}
        }
    }
}

/// Checks what must hold for any text.
fn check_any(text: &str) {
    let whole = |span: Span| text.get(span.start as usize..span.end as usize);
    let result = read(text, &ReadLimits::default());
    match (&result, completeness(text)) {
        (Ok(_), Completeness::Complete) => {}
        (Err(error), Completeness::Invalid(same)) => assert_eq!(*error, same),
        (Err(error), Completeness::Incomplete) => assert_eq!(error.reason, Reason::ParseError),
        (result, completeness) => panic!("{text:?}: {result:?} but {completeness:?}"),
    }
    match result {
        Ok(source) => walk(&source.forms, &mut |form| {
            let slice = whole(form.span).expect("a span lies in its text");
            let again = |slice: &str| {
                let again = read(slice, &ReadLimits::default()).expect("what a span covers reads by itself");
                assert_eq!(again.forms.len(), 1, "{slice:?} of {text:?}");
                show(&again.forms[0], &again.names)
            };
            assert_eq!(show(form, &source.names), again(slice), "{slice:?} of {text:?}");
        }),
        Err(error) => {
            let span = error.span.expect("a fault of a short text has a place");
            assert!(whole(span).is_some(), "{span:?} of {text:?}");
            assert!(span.start < span.end && error.hint.is_some(), "{text:?}: {error:?}");
            let (line, column) = LineIndex::new(text).position(span.start);
            assert!(line >= 1 && column >= 1);
        }
    }
}

/// Pieces of programs: texts made of these get much further than arbitrary ones.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "#{",
    "#(",
    "#\"",
    "\"",
    "\\",
    "\\n",
    "'",
    "#'",
    "#",
    "##Inf",
    "##",
    "nil",
    "true",
    "a",
    "inc'",
    "a/b",
    "%",
    "%1",
    ":a",
    ":",
    "1",
    "-1",
    "-",
    "+",
    "1.5",
    "1e5",
    "1e999",
    ".",
    "e",
    "λ",
    "🚀",
    "\u{feff}",
    "\u{0}",
    "\u{202e}",
    "\u{a0}",
    ";",
    "\n",
    "\r",
    " ",
    ",",
    "@",
    "^",
    "`",
    "$",
    "\\newline",
    "99999999999999999999",
    "\n```\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check_any(&text);
    }

    #[test]
    fn any_pieces_are_read_or_refused(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        check_any(&pieces.concat());
    }

    #[test]
    fn a_cut_program_is_incomplete(cut in 0_usize..40) {
        let text = "(f [1 {:a \"x λ\"} #{2 #(g %)}] #\"y\")     ";
        let mut cut = cut.min(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let expected = match text[..cut].trim_end() {
            "" => Completeness::Complete,
            prefix if prefix.ends_with("\"y\")") => Completeness::Complete,
            prefix if prefix.ends_with(['#', ':']) => return Ok(()),
            _ => Completeness::Incomplete,
        };
        prop_assert_eq!(completeness(&text[..cut]), expected);
    }
}

#[test]
fn quoted_names_are_read_from_their_spans() {
    for text in ["'\n$ 1", "'(a [b c] {d 1})", "'#_ x y", "[' z]"] {
        check_any(text);
    }
}
