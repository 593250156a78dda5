//! Random programs on the machine and on an oracle that walks trees over the standard library's collections: value,
//! prints and reason agree.

mod builtins;
mod eval;
mod grammar;
mod value;

use lisp_core::vm::{Grant, Machine, Settings};
use proptest::prelude::*;
use std::sync::Arc;

/// What both are asked for: the value as text or the reason, and the printed lines.
type Came = (Result<String, String>, Vec<String>);

fn machine(source: &str, compact_every: Option<u64>) -> Came {
    let settings = Settings { compact_every, heap_bytes: 0, ..Settings::default() };
    let mut machine = Machine::new(Vec::<Arc<Grant>>::new(), settings);
    let answer = crate::common::answer(&mut machine, source, 1_000).map_err(|(reason, _)| reason.to_owned());
    (answer, machine.take_prints())
}

fn oracle(program: &eval::Expr) -> Came {
    let mut run = eval::Run::default();
    let answer = run.eval(program, &None);
    let answer = answer.map(|v| value::readable(&v)).map_err(|failure| failure.reason.to_owned());
    (answer, run.prints)
}

/// How the two differ, if they do.
fn difference(program: &eval::Expr) -> Option<String> {
    let source = eval::source(program);
    let wanted = oracle(program);
    if wanted.0.as_ref().is_err_and(|reason| reason == eval::TOO_MUCH) {
        return None;
    }
    let got = machine(&source, None);
    (got != wanted || machine(&source, Some(3)) != wanted)
        .then(|| format!("{source}\n  oracle  {wanted:?}\n  machine {got:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_agrees_with_the_oracle(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(difference(&grammar::program(&bytes)), None);
    }
}

/// Random programs seldom print a line that is longer than a line may be.
#[test]
fn a_long_line_is_cut_by_both() {
    let text = eval::Expr::Const(value::Value::Str("é".repeat(2_001)));
    let print = eval::Expr::Call(Box::new(grammar::builtin("println")), vec![text]);
    assert_eq!(difference(&print), None);
    assert!(oracle(&print).1[0].ends_with("é... (2000/2001 chars)"));
}

/// The programs must be worth comparing: most come to a value, some fail, some print.
#[test]
fn random_programs_do_something() {
    let mut random = 1u64;
    let (mut values, mut errors, mut prints) = (0, 0, 0);
    for _ in 0..1_000 {
        let bytes: Vec<u8> = (0..200)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) as u8
            })
            .collect();
        let (answer, printed) = oracle(&grammar::program(&bytes));
        values += usize::from(answer.is_ok());
        errors += usize::from(answer.is_err());
        prints += usize::from(!printed.is_empty());
    }
    assert!(values > 300 && errors > 100 && prints > 200, "{values} values, {errors} errors, {prints} print");
}

/// The arguments of a call lie on the stack, and their number passes the sizes of smaller integers.
#[test]
fn calls_with_very_many_arguments_agree() {
    type Item = fn(i64) -> value::Value;
    let kinds: [(&str, Item); 4] = [
        ("(range COUNT)", value::Value::from),
        ("(map str (range COUNT))", |i| value::Value::Str(i.to_string())),
        ("(map (constantly nil) (range COUNT))", |_| value::Value::Nil),
        ("(map vector (range COUNT))", |i| value::Value::List(vec![i.into()])),
    ];
    let known = ["+", "-", "max", "min", "<", "<=", ">", ">=", "=", "str", "pr-str", "vector", "concat", "println"];
    for count in [0, 2, 65_533, 65_536, 65_537] {
        for (list, item) in kinds {
            let args: Vec<value::Value> = (0..count).map(item).collect();
            for name in known {
                let mut run = eval::Run::default();
                let wanted = builtins::call(&mut run, name, args.clone());
                let wanted = (wanted.map(|v| value::readable(&v)).map_err(|f| f.reason.to_owned()), run.prints);
                let source = format!("(apply {name} {})", list.replace("COUNT", &count.to_string()));
                let cut = |came: &Came| format!("{came:?}").chars().take(100).collect::<String>();
                let got = machine(&source, None);
                assert!(got == wanted, "{source}\n  oracle  {}\n  machine {}", cut(&wanted), cut(&got));
            }
        }
    }
}
