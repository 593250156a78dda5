//! `map` and its like are loops in the code around them where they are called by name. As values, under a local name, they are
//! native functions: nothing but the fuel tells the two apart.

use lisp_runtime::{Engine, Input, Limits, Reason};

/// What can be seen of a program.
fn seen(engine: &Engine, program: &str) -> String {
    let outcome = engine.eval(program, Input::new());
    if let Some(problem) = outcome.problem().filter(|problem| problem.reason() == Reason::FuelExhausted) {
        return problem.error.message.clone();
    }
    format!("{:?} {:?} {:?}", outcome.text(), outcome.prints, outcome.problem())
}

/// The program, where the functions are called by name or as values. Each stands at the same place in both.
fn both(body: &str) -> [String; 2] {
    let names = ["map", "mapv", "filter", "remove", "keep", "reduce"];
    let bound = |of: &dyn Fn(&str) -> String| {
        let bindings: Vec<String> = names.iter().map(|name| format!("{} {name}", of(name))).collect();
        format!("(let [{}]\n{body})", bindings.join(" "))
    };
    [bound(&|name| format!("_{name}")), bound(&|name| format!("{name} "))]
}

/// Functions of one argument, as they stand in a program; `g` and `k` are local names.
const FUNCTIONS: &[&str] = &[
    "(fn [x] (+ x 1))",
    "#(* % k)",
    "(fn [x] (let [y (g x)] (println x y) (+ y k)))",
    "(fn [{:keys [a b] :or {b 2} :as m}] [a b m])",
    "(fn [[a b & more]] {:a a :b b :more more})",
    "(fn me [x] (if (and (int? x) (pos? x)) (me (dec x)) x))",
    "(fn [x] (if (and (int? x) (pos? x)) (recur (- x 2)) x))",
    "(fn ([x] [x]) ([x y] [x y]))",
    "(fn [& all] (count all))",
    "(fn [x y] [x y])",
    "(fn [] 1)",
    ":a",
    "inc",
    "odd?",
    "str",
    "first",
    "g",
    "(partial + 1)",
    "(comp inc inc)",
    "{1 :one}",
    "#{1 2}",
    "5",
    "nil",
    "(fn [x] (reduced x))",
    "(fn [x] (map (fn [y] (filter (fn [z] (if (= z 3) (inc nil) (> z x))) [y 1 2])) [x 2]))",
    "(fn [x] (loop [i 0 v []] (if (< i 2) (recur (inc i) (map (fn [y] (+ y i x)) [1 2])) v)))",
    "(fn [x] (try (+ x 1) (catch Exception e (:message e)) (finally (println x))))",
    "(fn [x] (if (= x 2) (throw (ex-info \"two\" {:x x})) x))",
    "(fn [x] (if (= x 2) (return [:out x]) x))",
    "(fn [x] (if (= x 2) (fail [:out x]) x))",
    "(fn [x] (fn [y] [x y]))",
];

const COLLECTIONS: &[&str] = &[
    "[1 2 3]",
    "[]",
    "nil",
    "[{:a 1} {:a 2 :b 3} nil]",
    "{:a 1 :b 2}",
    "#{1}",
    "\"ab\"",
    "[1 nil \"x\"]",
    "[[1 2 3] [4]]",
    "5",
    ":k",
    "inc",
    "(take 4 (range))",
    "(range)",
    "(inc nil)",
];

#[test]
fn loops_in_place_are_told_as_calls() {
    let engine = Engine::builder().limits(Limits::default().with_fuel(100_000)).build().expect("an engine");
    let (mut compared, mut failed) = (0, 0);
    let mut compare = |body: String| {
        let [by_name, as_values] = both(&body).map(|program| seen(&engine, &program));
        assert_eq!(by_name, as_values, "{body}");
        compared += 1;
        failed += usize::from(by_name.starts_with("None"));
    };
    let around = |call: &str| {
        [
            format!("(let [k 10 g (fn [x] (+ x k))] {call})"),
            format!("(let [k 10 g (fn [x] (* 2 x))] (try {call} (catch Exception e [k (:message e)])))"),
            format!("(let [k 10 g (fn [x] (* 2 x))] (try {call} (catch Exception e (throw e)) (finally (println k))))"),
        ]
    };
    for coll in COLLECTIONS {
        for f in FUNCTIONS {
            for name in ["map", "mapv", "filter", "remove", "keep"] {
                let call = format!("({name} {f} {coll})");
                let call = if *coll == "(range)" { format!("(take 3 {call})") } else { call };
                around(&call).into_iter().for_each(&mut compare);
            }
        }
        for f in [
            "(fn [a x] (+ a x))",
            "(fn [a [k v]] (assoc a k v))",
            "+",
            "conj",
            "max",
            "g",
            "(fn [a x] (if (= x 3) (reduced [a]) x))",
        ] {
            around(&format!("(reduce {f} {coll})")).into_iter().for_each(&mut compare);
            around(&format!("(reduce {f} {{}} {coll})")).into_iter().for_each(&mut compare);
            around(&format!("(reduce {f} (reduced 1) {coll})")).into_iter().for_each(&mut compare);
        }
    }
    assert!(compared > 6_000 && failed > compared / 10 && failed < compared / 2, "{failed} of {compared}");
}

#[test]
fn loops_in_place_need_no_more_memory_than_calls() {
    let sum = "(let [a (map str (range 20000)) b (map count a)] (reduce + 0 b))";
    let engine = Engine::builder().limits(Limits::default().with_heap_bytes(1_350_000)).build().expect("an engine");
    let [by_name, as_values] = both(sum).map(|program| seen(&engine, &program));
    assert_eq!(by_name, as_values);
    assert!(by_name.starts_with("Some(\"88890\")"), "{by_name}");
}
