//! The engines agree with each other. `tests/suite/patterns.rs` compares them with Java.

use super::*;
use crate::heap::{Fault, Heap};
use std::sync::atomic::AtomicBool;

fn heap() -> Heap {
    Heap::new(1, usize::MAX / 2)
}

type Groups = Vec<Option<(usize, usize)>>;

/// Returns the groups of all matches. `search` gets the start of a search and the end of the previous match.
fn all(text: &str, mut search: impl FnMut(usize, usize) -> Option<Groups>) -> Vec<Groups> {
    let (mut found, mut place, mut last_match) = (Vec::new(), 0, 0);
    while place <= text.len() {
        let Some(groups) = search(place, last_match) else { break };
        let (start, end) = groups[0].expect("a match has a range");
        place = if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) };
        last_match = end;
        found.push(groups);
    }
    found
}

/// Returns the groups of all matches that the backtracking engine finds.
fn backtracked(pattern: &str, text: &str) -> Vec<Groups> {
    let h = heap();
    let program = Program::compile(&parse(pattern).expect(pattern)).expect(pattern);
    all(text, |place, last_match| {
        let mut machine = Backtracker::new(&h, &program, text, place, last_match).expect("there is room");
        machine.search().expect("it ends").then(|| machine.groups().collect())
    })
}

const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "aa",
    "ab",
    "aab abab",
    "xaaab",
    "é1éa2",
    "The the cat sat",
    "foo=1, bar=22;\nbaz=333\n",
    "aXbXc",
    "price: $1234567.89 and €42",
    "abcabc xyzxyz",
    "\n\na\n",
    "naïve façade 12:34",
    "((a)(b))",
    "aBcDeF",
    "x1y22z333",
];

/// Patterns that all engines support.
const REGULAR: &[&str] = &[
    "a",
    "a*",
    "a+?",
    "a|ab|b",
    "(a|ab)(b|)",
    "(a*)(a*)",
    "(a*?)(a*)b",
    r"(\w+)\s+(\w+)",
    r"\b\w",
    r"\B\w",
    r"^\w+$",
    r"(?m)$",
    r"\A\s*|\s*\z",
    r"(?i)THE",
    r"[^a-z\s]+",
    r"(\d+)(?:\.(\d+))?",
    r"\d{2,3}",
    r"\d{2,3}?",
    r"(?:ab){2}",
    r"(a)?(b)?(c)?",
    r"(?:(a)|b)*",
    r"(?s).*",
    r".*?X",
    r"é",
    r"[é-ï]",
    "[À-ÿ]",
    r"(?:a|aa)+$",
    r"(x)?\w",
    r"(a|b)*?b",
    r"\s",
    r"(?x) a \s* b",
    r"(?:a{0}b)?",
    r"(?:a?){3}",
    r"((a{1,2})b?){2}",
    r"(?i)é|ß",
];

#[test]
fn backtracking_agrees_with_linear_searches() {
    for pattern in REGULAR {
        let Ok((Compiled::Linear(linear), _)) = compile(pattern, Extent::Part) else { panic!("{pattern} is linear") };
        let groups = linear.quick.captures_len();
        for text in TEXTS.iter().filter(|text| linear.needs.allow(text, false)) {
            let found = backtracked(pattern, text).iter().map(|found| found[..groups].to_vec()).collect::<Vec<_>>();
            let linear = all(text, |place, _| {
                let mut captures = linear.quick.create_captures();
                linear.quick.search_captures(&regex_automata::Input::new(text).range(place..), &mut captures);
                let groups = (0..captures.group_len()).map(|i| captures.get_group(i).map(|m| (m.start, m.end)));
                captures.is_match().then(|| groups.collect())
            });
            assert_eq!(found, linear, "{pattern} in {text:?}");
        }
    }
}

#[test]
fn the_stepped_automaton_agrees_with_the_quick_one() {
    let h = heap();
    for pattern in REGULAR {
        let Ok((Compiled::Linear(linear), _)) = compile(pattern, Extent::Part) else { panic!("{pattern} is linear") };
        let automata = linear.automata().expect(pattern);
        let mut stepped = Stepped::new(&h, automata, 1);
        for text in TEXTS.iter().map(|t| t.repeat(40)).filter(|text| linear.needs.allow(text, true)) {
            for place in (0..=text.len()).step_by(7).filter(|&at| text.is_char_boundary(at)) {
                let input = regex_automata::Input::new(&text).range(place..);
                let quick = linear.quick.search(&input).map(|m| (m.start(), m.end()));
                match stepped.find(&text, place).expect("it ends") {
                    Found::Match(start, end) => {
                        assert_eq!(Some((start, end)), quick, "{pattern} in {text:?} at {place}")
                    }
                    Found::Nothing => assert_eq!(quick, None, "{pattern} in {text:?} at {place}"),
                    Found::Unknown => assert!(!text.is_ascii() && linear.needs.look_through(), "{pattern} is known"),
                }
            }
        }
    }
}

#[test]
fn what_was_tried_is_remembered() {
    let text = "a".repeat(3_000);
    let h = heap();
    for pattern in ["(a*)*b", "(a|aa)+b", "(a+)+b"] {
        let program = Program::compile(&parse(pattern).expect(pattern)).expect(pattern);
        let mut machine = Backtracker::new(&h, &program, &text, 0, 0).expect("there is room");
        assert!(!machine.search().expect("it ends"), "{pattern}");
    }
}

#[test]
fn every_engine_looks_at_the_flag_while_it_searches() {
    let text = "a".repeat(1 << 20);
    for pattern in [r"(?:\p{L}|a)*\p{Lu}*b", r"\p{L}*\p{L}*~", "(?s).*b", r"(\p{L}+)\s"] {
        let h = heap();
        h.set_host_fuel(1_000, Some(std::sync::Arc::new(AtomicBool::new(true))));
        let answer = match compile(pattern, Extent::Part).expect("it is a pattern").0 {
            Compiled::Linear(linear) => {
                let automata = linear.automata().expect("there is an automaton");
                Stepped::new(&h, automata, 1).find(&text, 0).map(drop)
            }
            Compiled::Backtracking(program) => {
                Backtracker::new(&h, &program, &text, 0, 0).and_then(|mut machine| machine.search()).map(drop)
            }
        };
        assert!(matches!(answer, Err(Fault::Pause(spent)) if spent < 10_000), "{pattern}: {answer:?}");
    }
}

#[test]
fn a_search_that_takes_too_many_steps_says_so() {
    let h = heap();
    // Too long for the choices to be remembered.
    let text = "é".repeat(Backtracker::MAX_SEEN);
    let Ok((Compiled::Backtracking(program), _)) = compile(r"(?:\p{L}|\p{L}\p{L})*~", Extent::Part) else {
        panic!("it needs backtracking")
    };
    let answer = Backtracker::new(&h, &program, &text, 0, 0).and_then(|mut machine| machine.search());
    let Err(Fault::Error(error)) = answer else { panic!("{answer:?}") };
    assert!(error.message.contains(&Backtracker::MAX_STEPS.to_string()), "{}", error.message);
}

#[test]
fn choices_are_kept_within_the_budget() {
    let h = Heap::new(1, 1 << 20);
    let text = "ab".repeat(200_000);
    let Ok((Compiled::Backtracking(program), _)) = compile(r"(?:a|\p{L})*c", Extent::Part) else {
        panic!("it needs backtracking")
    };
    let answer = Backtracker::new(&h, &program, &text, 0, 0).and_then(|mut machine| machine.search());
    assert!(matches!(answer, Err(Fault::Collect(_))), "{answer:?}");
}

/// Errors say what is wrong with a pattern, and what to write instead.
#[test]
fn what_is_no_pattern_says_why() {
    for (pattern, what, hint) in [
        ("(", "a group is not closed", r"\("),
        ("a)", "closes no group", r"\)"),
        ("[a", "a class is not closed", r"\["),
        ("[]", "a class is not closed", r"\["),
        ("[b-a]", "wrong order", r"\-"),
        ("(?x)[a&& ]", "missing class after &&", "[a-z&&[^aeiou]]"),
        (r"[a&&]", "missing class after &&", "[a-z&&[^aeiou]]"),
        ("*a", "nothing that `*` could repeat", r"\*"),
        ("a|{2}", "nothing that a count in braces could repeat", r"\{"),
        ("a**", "follows a repeat", "(?:a{2}){3}"),
        ("a{2}{3}", "follows a repeat", "(?:a{2}){3}"),
        ("a{2,1}", "wrong order", "smaller"),
        ("a{99999999999}", "too large", "2147483647"),
        (r"a\Kb", r"\K is not supported", "with a group"),
        ("(?=a)", "look-ahead (?=...) is not supported", "with a group"),
        ("a(?!b)", "look-ahead (?!...) is not supported", r"\b"),
        ("(?<=a)b", "look-behind (?<=...) is not supported", "with a group"),
        ("(?<!a)b", "look-behind (?<!...) is not supported", r"\b"),
        ("(?>a)", "atomic group (?>...) is not supported", "(?:...)"),
        ("a++", "possessive repeats", "last +"),
        (r"(a)\1", r"back-reference \1 is not supported", "(= a b)"),
        (r"(?<n>a)\k<n>", r"back-reference \k is not supported", "(= a b)"),
        (r"(?<n>a)(?<n>b)", "two groups are named n", "its own"),
        (r"(?<1>a)", "invalid name of a group", "(?<year>...)"),
        (r"\g1", r"\g is not supported", "(= a b)"),
        (r"\y", r"\y is not supported", r"\b"),
        (r"[\z]", r"\z is not supported in a class", "outside"),
        (r"[\R]", r"\R is not supported in a class", "outside"),
        (r"\b{g}a", r"\b{...} is not supported", r"\X"),
        (r"\N{DIGIT ONE}", r"\N is not supported", r"\x{...}"),
        (r"\u{41}", r"missing four", r"\x{1F600}"),
        (r"\x4", r"missing two", r"\x{...}"),
        (r"\x{110000}", "is not a character", r"\x{...}"),
        (r"\0", r"missing octal digits after \0", r"\x00"),
        ("a\\", "the pattern ends in a backslash", r"\\"),
        (r"a\E", r"`\E` closes no quotation", r"\Q"),
        (r"\p{InGreek}", "blocks are not supported", r"\p{IsGreek}"),
        (r"\p{Nope}", r"\p{Nope} is not known", r"\p{L}"),
        (r"\p{L", r"\p{ is not closed", "}"),
        ("(?c)a", "canonical equivalence", "alternatives"),
        ("(?q)a", "q is not a flag", "i, m, s"),
        ("(?#a)", "(?#...) is not supported", "(?x)"),
        ("(a)?(?(1)b|c)", "(?(...)...) is not supported", "alternatives"),
        ("(a)(?1)", "(?1) is not supported", "write the group out"),
        ("(?R)", "(?R) is not supported", "write the group out"),
        ("(?|a)", "(?|...) is not supported", "number"),
        ("(?<n>a)(?P=n)", "(?P=name) is not supported", "(= a b)"),
    ] {
        let Err(error) = compile(pattern, Extent::Part) else { panic!("{pattern} is no pattern") };
        assert!(error.message.contains(what), "{pattern}: {}", error.message);
        let given = error.hint.as_deref().unwrap_or_default();
        assert!(given.contains(hint), "{pattern}: {given}");
    }
    let deep = |open: &str, close: &str, n: usize| format!("{}a{}", open.repeat(n), close.repeat(n));
    for (open, close, max) in [("(", ")", 50), ("[", "]", 20), ("[a&&", "]", 10), ("(?:", ")*", 50)] {
        assert!(compile(&deep(open, close, max), Extent::Part).is_ok(), "{open}");
        for n in [max + 1, 1_000] {
            let Err(error) = compile(&deep(open, close, n), Extent::Part) else { panic!("{open} is too deep") };
            assert!(error.message.contains("nested more than"), "{}", error.message);
        }
    }
}

/// The rounds of a counted repeat share their strings.
#[test]
fn long_strings_are_repeated_in_little_memory() {
    let pattern = format!("(?:{}){{49000}}", "a".repeat(8_000));
    let Ok((Compiled::Backtracking(program), cost)) = compile(&pattern, Extent::Part) else {
        panic!("it is too large")
    };
    let texts = program.insns.iter().filter_map(|insn| match insn {
        program::Insn::Text(text) => Some(text.as_ptr()),
        _ => None,
    });
    assert_eq!(texts.collect::<std::collections::HashSet<_>>().len(), 1);
    assert!(cost.bytes > 49_000 * size_of::<program::Insn>(), "{}", cost.bytes);
}

/// No pattern takes long to parse, whatever it consists of.
#[test]
fn long_patterns_are_read_or_refused() {
    for part in [
        "[",
        "{",
        "(",
        "[a]",
        "[^a]",
        "[[a]b]",
        r"\p{L}",
        r"[\p{L}[a]]",
        "(?U)[[:alpha:]]",
        "(?iu)[\0-\u{10ffff}]",
        "(?iux)[\0- \u{10ffff}]",
        "(?iu)a",
        "(?<a>b)",
        "a{1,9}",
        "(?:a?){9}",
        "((",
        "[a&&",
        "&&",
        r"\Q",
        r"\Q\E",
        "a|",
        "(?:",
        r"(?U)\b",
        r"\X",
        r"(?U)[\w]",
    ] {
        let pattern = part.repeat(Regexes::PATTERN_BYTES / part.len());
        let _ = compile(&pattern, Extent::Part);
        let _ = compile(&format!("[{pattern}]"), Extent::Whole);
    }
}

/// However many patterns are used again, the caches of their searches stay within the bound, and no search uses the
/// cache of another pattern.
#[test]
fn search_caches_are_bounded() {
    let text: String = (0..2_000_u64).map(|i| if i * i * 7_919 % 104_729 < 52_000 { 'a' } else { 'b' }).collect();
    let input = regex_automata::Input::new(&text);
    let patterns: Vec<Arc<Linear>> = (0..60)
        .map(|n| match compile(&format!("[ab]*a[ab]{{14}}(?:[x-z]{{{}}}|a)", n % 20 + 1), Extent::Part) {
            Ok((Compiled::Linear(linear), _)) => linear,
            other => panic!("{other:?}"),
        })
        .collect();
    let (mut caches, mut max) = (SearchCaches::default(), 0);
    for round in 0..3 {
        for (n, linear) in patterns.iter().enumerate() {
            // Every third search has another one with the same pattern inside it.
            let mut inner = (n % 3 == round).then(|| caches.take(linear));
            let mut cache = caches.take(linear);
            let found = linear.quick.search_with(&mut cache, &input);
            assert_eq!(found, linear.quick.search(&input), "{}", linear.text);
            if let Some(cache) = inner.as_mut() {
                assert_eq!(found, linear.quick.search_with(cache, &input), "{}", linear.text);
            }
            inner.into_iter().chain([cache]).for_each(|cache| caches.put(linear, cache));
            let counted: usize = caches.others.values().map(|(.., bytes)| bytes).sum();
            assert_eq!(counted, caches.bytes);
            max = max.max(counted);
        }
    }
    assert!((1_000_000..=SearchCaches::MAX_BYTES).contains(&max), "{max}");
}
