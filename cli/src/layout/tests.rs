use super::{LayoutError, WIDTH, lay_out};
use lisp_core::syntax::{Form, FormKind, Names, ReadLimits, read};
use std::fs;
use std::path::Path;

/// The forms of a text without their positions.
fn forms(text: &str) -> Vec<String> {
    fn show(form: &Form, names: &Names) -> String {
        let all = |forms: &[Form]| forms.iter().map(|form| show(form, names)).collect::<Vec<_>>().join(" ");
        match &form.kind {
            FormKind::Keyword(id) => format!("Keyword({})", names.text(*id)),
            FormKind::Symbol(id) => format!("Symbol({})", names.text(*id)),
            FormKind::Quote(form) => format!("Quote({})", show(form, names)),
            FormKind::Var(id) => format!("Var({})", names.text(*id)),
            FormKind::List(forms) => format!("List({})", all(forms)),
            FormKind::Vector(forms) => format!("Vector({})", all(forms)),
            FormKind::Map(forms) => format!("Map({})", all(forms)),
            FormKind::Set(forms) => format!("Set({})", all(forms)),
            FormKind::ShortFn(forms) => format!("ShortFn({})", all(forms)),
            atom => format!("{atom:?}"),
        }
    }
    let source = read(text, &ReadLimits::default()).expect("a text that can be read");
    source.forms.iter().map(|form| show(form, &source.names)).collect()
}

/// Formats a text, and checks that its forms are the same and that formatting it again changes nothing.
fn checked(text: &str) -> String {
    let once = match lay_out(text) {
        Ok(once) => once,
        Err(error) => panic!("{error:?}: {text}"),
    };
    assert_eq!(forms(&once), forms(text), "{text}\n---\n{once}");
    let twice = lay_out(&once).expect("a text that can be read");
    assert_eq!(twice, once, "not stable: {text}");
    once
}

#[test]
fn layouts() {
    let table = include_str!("tests.txt");
    let mut cases = 0;
    for case in table.split("\n====\n").filter(|case| !case.trim().is_empty()) {
        let (text, expected) = case.split_once("\n----\n").expect("a text and its layout");
        assert_eq!(checked(text), format!("{}\n", expected.trim_end_matches('\n')), "{text}");
        cases += 1;
    }
    assert!(cases > 30, "{cases}");
}

#[test]
fn texts_of_nothing() {
    for text in ["", "\n\n", " , \u{feff}".trim_end_matches('\u{feff}'), "\u{feff}"] {
        assert_eq!(checked(text), "", "{text:?}");
    }
}

#[test]
fn what_a_line_end_means_in_a_text_stays() {
    assert_eq!(checked("(str \"a\r\n  b\" ; c\r\n  \\newline)\r\n"), "(str \"a\r\n  b\" ; c\n     \\newline)\n");
    assert_eq!(checked("[\\  \\;]"), "[\\  \\;]\n");
    assert_eq!(checked("(count \\ )\n"), "(count \\ )\n");
    assert_eq!(checked("a[2]\"b\"c' nil"), "a\n[2]\n\"b\"\nc'\nnil\n");
}

#[test]
fn what_cannot_be_read_is_refused() {
    for text in ["(+ 1", "[1}", "{:a}", "\"a", "{:a 1 :a 2}", "#_"] {
        assert!(matches!(lay_out(text), Err(LayoutError::Unreadable(_))), "{text}");
    }
}

#[test]
fn deep_and_long_texts() {
    let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "x" + &close.repeat(depth);
    for (open, close) in [("(f a ", ")"), ("[", "]"), ("{:a ", "}"), ("#{", "}"), ("(do ", ")")] {
        let laid_out = checked(&nested(open, close, 64));
        assert_eq!(laid_out.matches('x').count(), 1, "{laid_out}");
        assert!(matches!(lay_out(&nested(open, close, 65)), Err(LayoutError::Unreadable(_))));
        assert!(matches!(lay_out(&nested(open, close, 200_000)), Err(LayoutError::Unreadable(_))));
    }
    // A quote inside quoted data is a form around the next one.
    assert_eq!(checked(&nested("'(", ")", 30)).matches('x').count(), 1);
    // Marks do not count as nesting.
    checked(&format!("[{} 1]", "#_ x ".repeat(20_000)));
    checked(&format!("[{}{} 1]", "#_".repeat(20_000), " x".repeat(20_000)));
    checked(&format!("[{} 1]", "^:a ".repeat(20_000)));
    // Quotes do.
    checked(&format!("[{} x]", "' ".repeat(60)));
    assert!(matches!(lay_out(&format!("[{} x]", "' ".repeat(20_000))), Err(LayoutError::Unreadable(_))));
    checked(&format!("(do {})", "(f ; c\n) ".repeat(20_000)));
    checked(&format!("(do {}\n)", "; c\n".repeat(100_000)));
    let long = checked(&format!("[{}]", "1234 ".repeat(20_000)));
    assert!(long.lines().all(|line| line.len() <= WIDTH));
    // Twenty per line; the last one has no space after it for the bracket.
    assert_eq!(long.lines().count(), 1_001);
}

#[test]
fn programs_of_the_repository() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut programs = Vec::new();
    for folder in ["examples", "fuzz/seeds/reader", "fuzz/seeds/program", "lisp-core/src/prelude"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_program = folder.starts_with("fuzz/seeds/reader") || path.extension().is_some_and(|e| e == "clj");
            if is_program {
                programs.push(fs::read_to_string(path).expect("a program"));
            }
        }
    }
    // The examples of the language, line by line.
    let page = fs::read_to_string(root.join("docs/language.md")).expect("the page");
    let blocks = page.split("```clojure\n").skip(1).filter_map(|block| block.split("```").next());
    programs.extend(blocks.flat_map(str::lines).map(str::to_owned));
    programs.retain(|program| read(program, &ReadLimits::default()).is_ok());
    assert!(programs.len() > 300, "{}", programs.len());
    for program in &programs {
        let laid_out = checked(program);
        // Whatever line breaks the author used.
        checked(&program.replace('\n', " \n "));
        if !program.contains(';') {
            checked(&program.replace('\n', " "));
            checked(&program.replace(' ', "\n"));
        }
        assert!(laid_out.lines().all(|line| line == line.trim_end()), "{laid_out}");
    }
    for name in ["orders", "logs", "products", "tickets"] {
        let program = fs::read_to_string(root.join(format!("examples/{name}.clj"))).expect("an example");
        let laid_out = checked(&program);
        assert!(laid_out.lines().all(|line| line.chars().count() <= 120), "{laid_out}");
    }
}

/// A deterministic number generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn any_text_that_can_be_read_keeps_its_forms() {
    const WORDS: &[&str] = &[
        "(",
        "(",
        "(",
        "[",
        "[",
        "{",
        "#{",
        "#(",
        ")",
        ")",
        ")",
        "]",
        "]",
        "}",
        "}",
        "'",
        "#_",
        "^",
        "^:k ",
        "; c\n",
        ";c",
        "\n",
        "\n\n\n",
        " ",
        " ",
        " ",
        ",",
        "let ",
        "fn ",
        "defn ",
        "cond ",
        "case ",
        "->> ",
        "if ",
        "do ",
        "letfn ",
        "assoc ",
        ":let ",
        "x",
        "a-long-name-of-something ",
        "1 ",
        "-2.5 ",
        ":k ",
        ":a/b ",
        "\"text\" ",
        "\"two\nlines\" ",
        "#\"a+\" ",
        "\\a ",
        "\\ ",
        "'q ",
        "#'v ",
        "nil ",
        "##NaN ",
        "inc' ",
        "%",
        "\"a text that takes a good part of the width of one line of a program\" ",
    ];
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let (mut read_so_far, mut tries) = (0, 0);
    while read_so_far < 3_000 {
        tries += 1;
        assert!(tries < 2_000_000, "only {read_so_far} texts can be read");
        let mut text = String::new();
        let mut open: Vec<&str> = Vec::new();
        for _ in 0..numbers.below(60) {
            let word = WORDS[numbers.below(WORDS.len())];
            match word {
                "(" | "#(" => open.push(")"),
                "[" => open.push("]"),
                "{" | "#{" => open.push("}"),
                ")" | "]" | "}" => {
                    if let Some(closer) = open.pop() {
                        text.push_str(closer);
                    }
                    continue;
                }
                _ => {}
            }
            text.push_str(word);
        }
        text.push('\n');
        text.extend(open.iter().rev().copied());
        if read(&text, &ReadLimits::default()).is_ok() {
            checked(&text);
            read_so_far += 1;
        }
    }
}
