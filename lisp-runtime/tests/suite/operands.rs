//! Random programs with arithmetic over random data: a call that a check says fails ends the run with a type error.

use lisp_runtime::{Check, Engine, Input, Reason};
use serde_json::{Map, Value, json};

/// A source of random programs.
struct Source(u64);

impl Source {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    fn key(&mut self) -> &'static str {
        ["a", "b", "c", "d"][self.below(4)]
    }

    /// Rows in which each key has values of one type or of two.
    fn rows(&mut self) -> Value {
        let kinds: Vec<Vec<Value>> = (0..4)
            .map(|_| {
                let one = self.below(4);
                let other = if self.below(3) == 0 { self.below(4) } else { one };
                [one, other].map(|kind| [json!(7), json!("x"), json!(null), json!([1])][kind].clone()).to_vec()
            })
            .collect();
        let count = 1 + self.below(3);
        let row = |source: &mut Source| {
            let mut row = Map::new();
            for (key, values) in ["a", "b", "c", "d"].into_iter().zip(&kinds) {
                if source.below(10) > 0 {
                    row.insert(key.to_owned(), values[source.below(values.len())].clone());
                }
            }
            Value::Object(row)
        };
        (0..count).map(|_| row(self)).collect()
    }

    /// A form of `r`, a row.
    fn form(&mut self, depth: usize) -> String {
        let key = self.key();
        if depth == 0 {
            return match self.below(3) {
                0 => format!("(:{key} r)"),
                1 => format!("(get r \"{key}\")"),
                _ => "1".to_owned(),
            };
        }
        let (one, other) = (self.form(depth - 1), self.form(depth - 1));
        match self.below(14) {
            0 => format!("(inc {one})"),
            1 => format!("(+ {one} {other})"),
            2 => format!("(- {one})"),
            3 => format!("(upper-case {one})"),
            4 => format!("(or (:{key} r) {one})"),
            5 => format!("(if (number? (:{key} r)) (inc (:{key} r)) {one})"),
            6 => format!("(let [{{:keys [{key}]}} r] (dec {key}))"),
            7 => format!("(let [x {one}] (when x (* x 2)))"),
            8 => format!("((fn [x y] (+ y 1)) {one} {other})"),
            9 => format!("(map (fn [x] (+ x {one})) (:{key} r))"),
            10 => format!("(trim (:{key} r {one}))"),
            11 => format!("(if {one} {other} 1)"),
            12 => format!("(loop [n 2 x {one}] (if (pos? n) (recur (dec n) (inc x)) x))"),
            _ => format!("(:{key} r)"),
        }
    }

    fn program(&mut self, depth: usize) -> String {
        let (key, other) = (self.key(), self.key());
        let form = self.form(2);
        if depth > 0 && self.below(3) == 0 {
            let (one, two) = (self.program(depth - 1), self.program(depth - 1));
            return match self.below(8) {
                0 => format!("(do {one} {two})"),
                1 => format!("(if (= (:{key} (first data/rows)) 7) {one} {two})"),
                2 => format!("(try {one} (catch Exception e {two}))"),
                3 => format!("(when (seq data/rows) {one})"),
                4 => format!("(do (doseq [r data/rows] (when (nil? (:{key} r)) (return 1))) {one})"),
                5 => format!("(do (defn f [] {one}) (when (= 1 (count data/rows)) (f)))"),
                6 => format!("(do (def x {one}) x)"),
                _ => format!("(and {one} {two})"),
            };
        }
        match self.below(16) {
            0 => format!("(map (fn [r] {form}) data/rows)"),
            1 => format!("(reduce + (map :{key} data/rows))"),
            2 => format!("(reduce (fn [n r] (+ n {form})) 0 data/rows)"),
            3 => format!("(for [r data/rows] {form})"),
            4 => format!("(for [r data/rows :when (:{key} r)] {form})"),
            5 => format!("(sum-by :{key} data/rows)"),
            6 => format!("(sort-by :{key} data/rows)"),
            7 => format!("(map (fn [r] (map (fn [x] {form}) (:{key} r))) data/rows)"),
            8 => format!("(some (fn [r] {form}) data/rows)"),
            9 => format!("(filter (fn [r] {form}) data/rows)"),
            10 => format!("(map (fn [[k rs]] (reduce + (map :{key} rs))) (group-by :{other} data/rows))"),
            11 => format!("(apply + (map :{key} data/rows))"),
            12 => format!("(->> data/rows (filter :{other}) (map :{key}) (reduce + 0))"),
            13 => format!("(map inc (keep :{key} data/rows))"),
            14 => format!("(reduce (fn [n r] (if (:{other} r) (reduced n) (+ n (:{key} r)))) 0 data/rows)"),
            _ => format!("(max-by :{key} (reverse (sort-by :{other} data/rows)))"),
        }
    }
}

/// How many programs: `PTC_CHECKED_PROGRAMS`.
#[test]
fn a_call_that_is_said_to_fail_fails() {
    let programs = std::env::var("PTC_CHECKED_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000);
    let engine = Engine::builder().check(Check::Warn).build().expect("an engine");
    let (mut said, mut failed) = (0, 0);
    for number in 0..programs {
        let mut source = Source(u64::wrapping_mul(number, 0x9E37_79B9_7F4A_7C15));
        let (rows, program) = (source.rows(), source.program(2));
        let input = || Input::new().data("rows", &rows);
        let checked = engine.compile(&program).and_then(|program| engine.check(&program, &input())).expect("a program");
        let outcome = engine.eval(&program, input());
        let has_failed = outcome.problem().is_some_and(|problem| problem.reason() == Reason::TypeError);
        let is_said = checked.iter().any(|warning| warning.kind.name() == "wrong_type");
        assert!(!is_said || has_failed, "{number}: {program}\n{rows}\n{checked:?}");
        (said, failed) = (said + u64::from(is_said), failed + u64::from(has_failed));
    }
    println!("{programs} programs, {failed} failed, {said} of them were said to");
    assert!(said * 4 > failed && said > programs / 20, "{said} of {failed} in {programs} programs");
}
