//! Many hostile programs at once beside honest ones, in a process of their own: no other test has to keep its time here.

use lisp_runtime::{Engine, Input, Limits};

/// L21: a thousand hostile programs on eight threads beside a thousand honest ones.
#[test]
fn a_thousand_honest_programs_finish_beside_a_thousand_hostile_ones() {
    let hostile: [(&str, &[&str]); 8] = [
        ("(loop [] (recur))", &["timeout"]),
        ("(defn f [x] (inc (f x))) (f 0)", &["memory_exceeded", "timeout"]),
        ("(reduce (fn [s _] (str s s)) \"x\" (range 64))", &["memory_exceeded", "timeout"]),
        (
            "(re-find #\"\\p{L}*\\p{L}*\\p{L}*~\" (join (map (fn [_] \"a\") (range 10000))))",
            &["timeout", "runtime_error"],
        ),
        ("(reduce (fn [x _] (* x x)) 3 (range 60))", &["timeout", "type_error"]),
        ("(sort (fn [a b] (= a b)) (range 100000))", &["memory_exceeded", "timeout"]),
        (
            "(pmap (fn [_] (pmap (fn [_] (loop [] (recur))) (range 9))) (range 9))",
            &["timeout", "parallel_capacity_exceeded"],
        ),
        ("(((((", &["parse_error", "timeout"]),
    ];
    let short = Limits::default().with_timeout_ms(20).with_loop_iterations(0);
    let attacked = Engine::builder().limits(short).build().expect("an engine");
    let honest = Engine::builder().limits(Limits::default().with_timeout_ms(600_000)).build().expect("an engine");
    let program = honest.compile("(reduce + (map :n (filter :ok data/rows)))").expect("a program");
    let rows = honest.import("rows", format!("[{}{{}}]", "{\"n\": 2, \"ok\": true},".repeat(100))).expect("data");
    let (attacked, honest, program, rows) = (&attacked, &honest, &program, &rows);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for i in 0..125 {
                    let (source, expected) = hostile[(i + thread) % hostile.len()];
                    let outcome = attacked.eval(source, Input::new());
                    assert!(
                        expected.contains(&outcome.problem().map_or("ok", |problem| problem.reason().name())),
                        "{source}: {:?}",
                        outcome.problem()
                    );
                }
            });
            scope.spawn(move || {
                for _ in 0..125 {
                    assert_eq!(honest.run(program, Input::new().data_set(rows)).value::<i64>(), Ok(200));
                }
            });
        }
    });
}
