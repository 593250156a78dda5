//! What built-ins that take an integer do with a float and with an integer beyond 64 bits: what the number exactly is, or an error.
//! The calls are made of the examples of every row whose usage names such an argument.

use crate::common::{Answer, run};
use lisp_core::builtins::Builtin;
use lisp_core::library;
use lisp_core::syntax::{Form, FormKind, ReadLimits, read};

/// Arguments that are integers go by these names.
const INTEGERS: &[&str] =
    &["n", "index", "start", "end", "from", "size", "step", "limit", "radix", "year", "month", "day"];

/// These take numbers of any kind there: of `take` and `drop` a fraction counts as one more element, as in Clojure.
const ANY_NUMBER: &[&str] = &["drop", "range", "take"];

/// The names of the arguments for a number of them, by what is said of the row's use.
fn parameters(row: &Builtin, count: usize) -> Option<Vec<&'static str>> {
    row.usage.split('(').find_map(|call| {
        let mut names: Vec<&str> = call.split(')').next()?.split_whitespace().skip(1).collect();
        while names.len() > count {
            let left_out = names.iter().rposition(|name| name.ends_with('?'))?;
            names.remove(left_out);
        }
        let names = names.into_iter().map(|name| name.trim_end_matches('?')).collect::<Vec<_>>();
        (names.len() == count && !names.contains(&"...") && !names.contains(&"&")).then_some(names)
    })
}

/// The places in a program of integers that are arguments of the row, where it takes integers.
fn places(row: &Builtin, source: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let Ok(read) = read(source, &ReadLimits::default()) else { return found };
    let mut work: Vec<&Form> = read.forms.iter().collect();
    while let Some(form) = work.pop() {
        let (FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items)) =
            &form.kind
        else {
            continue;
        };
        work.extend(items);
        let text = |form: &Form| &source[form.span.start as usize..form.span.end as usize];
        let (FormKind::List(_), Some((head, args))) = (&form.kind, items.split_first()) else { continue };
        if text(head) != row.name {
            continue;
        }
        let Some(names) = parameters(row, args.len()) else { continue };
        for (arg, name) in args.iter().zip(names) {
            if matches!(arg.kind, FormKind::Int(_)) && INTEGERS.contains(&name) {
                found.push(arg.span.start as usize..arg.span.end as usize);
            }
        }
    }
    found
}

fn answer(source: &str) -> Answer {
    run(source, 10_000).0
}

/// What is wrong with what comes of another number in place of an integer, if anything is.
fn fault(source: &str, place: &std::ops::Range<usize>) -> Vec<String> {
    let integer = &source[place.clone()];
    let with = |number: &str| format!("{}{number}{}", &source[..place.start], &source[place.end..]);
    let mut wrong = Vec::new();
    let mut refuse = |number: &str| {
        if let Ok(value) = answer(&with(number)) {
            wrong.push(format!("{} answers {value}", with(number)));
        }
    };
    for number in [&format!("{integer}.5"), "##NaN", "##Inf", "##-Inf", "0.000001", "-1.5"] {
        refuse(number);
    }
    // As the integer, or not at all.
    let whole = format!("(let [f (fn [] {source}) g (fn [] {})] (= (f) (g)))", with(&format!("{integer}.0")));
    if answer(&whole) == Ok("false".to_owned()) {
        wrong.push(format!("{} is not what {integer} makes it", with(&format!("{integer}.0"))));
    }
    // Exactly what a number is that is beyond everything here, or not at all.
    for (number, beyond) in [
        ("99999999999999999999", "1000003"),
        ("1e300", "1000003"),
        ("9223372036854775808.0", "1000003"),
        ("-99999999999999999999", "-1000003"),
        ("-1e300", "-1000003"),
    ] {
        if let Ok(value) = answer(&with(number))
            && answer(&with(beyond)) != Ok(value.clone())
        {
            wrong.push(format!("{} answers {value}", with(number)));
        }
    }
    wrong
}

#[test]
fn a_number_is_taken_for_what_it_is_or_refused() {
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for row in library::all().iter().filter(|row| !ANY_NUMBER.contains(&row.name)) {
        let mut found = false;
        for (source, _) in row.examples.iter().filter(|(_, answer)| !answer.starts_with('!')) {
            for place in places(row, source) {
                found = true;
                wrong.extend(fault(source, &place));
            }
        }
        rows += usize::from(found);
    }
    assert!(wrong.is_empty(), "{} calls:\n{}", wrong.len(), wrong.join("\n"));
    assert!(rows >= 50, "{rows} rows have such an example");
}

/// The elements of endless sequences have places beyond 64 bits.
#[test]
fn places_in_endless_sequences_are_exact() {
    for call in
        ["(nth (range) N)", "(first (drop N (range)))", "(first (nthrest (cycle [1 2]) N))", "(split-at N (range))"]
    {
        for beyond in ["99999999999999999999", "1e300", "9223372036854775808"] {
            let answer = answer(&call.replace('N', beyond));
            assert!(answer.is_err(), "{call} {beyond}: {answer:?}");
        }
    }
    assert_eq!(answer("(nth (range) 9223372036854775807)"), Ok("9223372036854775807".to_owned()));
    assert_eq!(answer("(nth (range) 4e0)"), Ok("4".to_owned()));
    assert_eq!(answer("(take -99999999999999999999 (range))"), Ok("[]".to_owned()));
}
