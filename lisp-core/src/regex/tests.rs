//! The engines agree with each other and with the crate whose notation they read.

use super::*;
use crate::heap::{Fault, Heap};
use std::sync::atomic::AtomicBool;

fn heap() -> Heap {
    Heap::new(1, usize::MAX / 2)
}

type Groups = Vec<Option<(usize, usize)>>;

/// The groups of all matches by the backtracking machine.
fn backtracked(pattern: &str, text: &str) -> Vec<Groups> {
    let h = heap();
    let program = Program::compile(&translate(pattern).text).unwrap_or_else(|_| panic!("{pattern} is a pattern"));
    let mut all = Vec::new();
    let mut place = 0;
    while place <= text.len() {
        let mut machine = Backtracker::new(&h, &program, text, place).expect("there is room");
        if !machine.search().expect("it ends") {
            break;
        }
        let groups: Groups = machine.groups().collect();
        let (start, end) = groups[0].expect("a match has a range");
        place = if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) };
        all.push(groups);
    }
    all
}

/// The match that the fancy-regex crate finds.
fn expected(pattern: &str, text: &str) -> Vec<Groups> {
    let regex = fancy_regex::Regex::new(&translate(pattern).text).unwrap_or_else(|e| panic!("{pattern}: {e}"));
    let mut all = Vec::new();
    let mut place = 0;
    while place <= text.len() {
        let Some(found) = regex.captures_from_pos(text, place).expect("it ends") else { break };
        let groups: Groups = (0..found.len()).map(|i| found.get(i).map(|m| (m.start(), m.end()))).collect();
        let (start, end) = groups[0].expect("a match has a range");
        place = if end > start { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) };
        all.push(groups);
    }
    all
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

/// Patterns that all engines know.
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
    r"(?m)^\w+",
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
    r"\p{Lu}",
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

/// Patterns for backtracking only.
const OTHERS: &[&str] = &[
    r"(\w)\1",
    r"(\w+) \1",
    r"(?i)(\w+)\s\1",
    r"(?=a)",
    r"a(?=b)",
    r"a(?!b)",
    r"(?<=a)b",
    r"(?<!a)b",
    r"(?<=\$)\d+",
    r"(?<![\d.])\d+",
    r"\B(?=(\d{3})+(?!\d))",
    r"(?=(a+))a*b\1",
    r"(?>a+)b",
    r"(?>a|ab)b",
    r"a++b",
    r"a*+",
    r"(?<=a|é)\d",
    r"(?<=a.)b",
    r"(?<=x\d{1,2})y?",
    r"(?<!^)[A-Z]",
    r"(?=.*\d)(?=.*[a-z]).{3,}",
    r"(?!.*X)a",
    r"(?:(?=(a))a)+",
    r"(?:(a)|b)*\1",
    r"(a)?(?(1)b|x)",
    r"foo\Kbar|a\Kb",
    r"(?<=\ba)\w",
    r"(?<=(a))(b)",
    r"(?<!(a))(b)",
    r"(?=(?!b)\w)\w",
    r"(a|b)*?\1",
    r"(?<=^|\n)\w",
    r"(?>(a+?))(?=b)",
    r"(?:a(?=b)|b)*",
    r"(?<q>a)\k<q>",
    r"(?<=a*)b",
    r"\Ga",
    r"(?<=é)1",
];

#[test]
fn backtracking_agrees_with_the_crate_it_reads_like() {
    for pattern in REGULAR.iter().chain(OTHERS) {
        for text in TEXTS {
            assert_eq!(backtracked(pattern, text), expected(pattern, text), "{pattern} in {text:?}");
        }
    }
}

#[test]
fn the_stepped_automaton_agrees_with_the_quick_one() {
    let h = heap();
    for pattern in REGULAR {
        let Ok((Compiled::Linear(linear), _)) = compile(pattern, Extent::Part) else { panic!("{pattern} is linear") };
        let automata = linear.automata().expect("there is an automaton");
        let mut stepped = Stepped::new(&h, automata, 1);
        for text in TEXTS.iter().map(|t| t.repeat(40)) {
            for place in (0..=text.len()).step_by(7).filter(|&at| text.is_char_boundary(at)) {
                let input = regex_automata::Input::new(&text).range(place..);
                let quick = linear.quick.search(&input).map(|m| (m.start(), m.end()));
                match stepped.find(&text, place).expect("it ends") {
                    Found::Match(start, end) => {
                        assert_eq!(Some((start, end)), quick, "{pattern} in {text:?} at {place}")
                    }
                    Found::Nothing => assert_eq!(quick, None, "{pattern} in {text:?} at {place}"),
                    Found::Unknown => assert!(pattern.contains(r"\b") || pattern.contains(r"\B"), "{pattern} is known"),
                }
            }
        }
    }
}

#[test]
fn a_repeat_with_its_numbers_out_of_order_is_refused() {
    for pattern in ["a{2,1}", r"\d{2,1}b", "(?:ab){3,2}", "(?=a{2,1})", "(?=x)(?:ab){3,2}?"] {
        let Err(error) = compile(pattern, Extent::Part) else { panic!("{pattern} is no pattern") };
        assert!(error.message.contains("repe"), "{pattern}: {}", error.message);
    }
}

#[test]
fn what_was_tried_is_remembered() {
    let text = "a".repeat(3_000);
    let h = heap();
    for pattern in ["(a*)*b", "(a|aa)+b", "(a+)+b"] {
        let Ok(program) = Program::compile(pattern) else { panic!("{pattern} is a pattern") };
        let mut machine = Backtracker::new(&h, &program, &text, 0).expect("there is room");
        assert!(!machine.search().expect("it ends"), "{pattern}");
    }
}

#[test]
fn every_engine_looks_at_the_flag_while_it_searches() {
    let text = "a".repeat(1 << 20);
    for pattern in ["(?:(?=a*b)|(?=a*c))x", r"(?=a*a*b)[ab]*c", "(?s).*b", r"(\w+)\s(?<!b)"] {
        let h = heap();
        h.set_host_fuel(1_000, Some(std::sync::Arc::new(AtomicBool::new(true))));
        let answer = match compile(pattern, Extent::Part).expect("it is a pattern").0 {
            Compiled::Linear(linear) => {
                let automata = linear.automata().expect("there is an automaton");
                Stepped::new(&h, automata, 1).find(&text, 0).map(drop)
            }
            Compiled::Backtracking(program) => {
                Backtracker::new(&h, &program, &text, 0).and_then(|mut machine| machine.search()).map(drop)
            }
        };
        assert!(matches!(answer, Err(Fault::Pause(spent)) if spent < 10_000), "{pattern}: {answer:?}");
    }
}

#[test]
fn a_search_that_takes_too_many_steps_says_so() {
    let h = heap();
    let text = "a".repeat(60);
    let Ok((Compiled::Backtracking(program), _)) = compile(r"(a|a)*\1b", Extent::Part) else {
        panic!("it needs backtracking")
    };
    let answer = Backtracker::new(&h, &program, &text, 0).and_then(|mut machine| machine.search());
    let Err(Fault::Error(error)) = answer else { panic!("{answer:?}") };
    assert!(error.message.contains(&Backtracker::MOST_STEPS.to_string()), "{}", error.message);
}

#[test]
fn choices_are_kept_within_the_budget() {
    let h = Heap::new(1, 1 << 20);
    let text = "ab".repeat(200_000);
    let Ok((Compiled::Backtracking(program), _)) = compile(r"(?:a|b)*(?=c)", Extent::Part) else {
        panic!("it needs backtracking")
    };
    let answer = Backtracker::new(&h, &program, &text, 0).and_then(|mut machine| machine.search());
    assert!(matches!(answer, Err(Fault::Collect(_))), "{answer:?}");
}
