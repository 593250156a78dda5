//! Where a run did its work.

use lisp_runtime::outcome::{Cost, Profile, ProfileNode};
use lisp_runtime::{Engine, Input, Limits, Outcome, Problem, Reason, ToolError};
use std::collections::BTreeMap;

const HALVES: &str = "(defn half [x] (/ x 2))\n(reduce + (map half (range 1000)))";

fn engine() -> Engine {
    Engine::builder()
        .limits(Limits::default().with_fuel(100_000_000))
        .tool("ok", |_| Ok(vec![1; 1_000]))
        .tool("bad", |_| Err::<(), _>(ToolError::new("it is bad")))
        .build()
        .expect("an engine")
}

fn profile(outcome: &Outcome) -> &Profile {
    outcome.profile.as_ref().expect("a profile")
}

fn sum(profile: &Profile) -> Cost {
    profile.nodes.iter().fold(Cost::default(), |mut sum, node| {
        sum.add(node.cost);
        sum
    })
}

/// What is the same each time.
fn fixed(profile: &Profile) -> Vec<ProfileNode> {
    let mut nodes = profile.nodes.clone();
    nodes.iter_mut().for_each(|node| node.cost.nanos = 0);
    nodes
}

#[test]
fn a_profile_changes_nothing_and_has_all_of_it() {
    let engine = engine();
    for program in [
        "(+ 1 2)",
        HALVES,
        "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(fib 15)",
        "(loop [i 0] (if (< i 20000) (recur (inc i)) i))",
        "(str (sort (mapv #(mod (* % 7919) 1009) (range 2000))))",
        "(count (tool/ok)) (tool/ok)",
        "(tool/bad)",
        "(inc nil)",
        "(try (inc nil) (catch Exception e 1))",
        "(def x (range 3000)) (println (count x)) (System/currentTimeMillis)",
    ] {
        let plain = engine.eval(program, Input::new().now_ms(0));
        let seen = engine.eval(program, Input::new().now_ms(0).profile());
        assert_eq!(plain.profile, None);
        assert_eq!(
            (plain.text(), plain.problem(), &plain.prints),
            (seen.text(), seen.problem(), &seen.prints),
            "{program}"
        );
        assert_eq!(plain.usage.fuel, seen.usage.fuel, "{program}");
        // What an instruction allocates that begins again is counted again.
        assert!(plain.usage.allocated_bytes <= seen.usage.allocated_bytes, "{program}");
        assert_eq!(sum(profile(&seen)).fuel, seen.usage.fuel, "{program}");
        assert_eq!(sum(profile(&seen)).bytes, seen.usage.allocated_bytes, "{program}");
        let again = engine.eval(program, Input::new().now_ms(0).profile());
        assert_eq!(fixed(profile(&seen)), fixed(profile(&again)), "{program}");
    }
}

#[test]
fn each_form_has_its_own_account() {
    let outcome = engine().eval(HALVES, Input::new().profile());
    let profile = profile(&outcome);
    let mut forms: BTreeMap<&str, Cost> = BTreeMap::new();
    for (node, total) in profile.nodes.iter().zip(profile.totals()) {
        let name = match (&node.function, node.span) {
            (_, Some((start, end))) => &HALVES[start as usize..end as usize],
            (Some(function), None) => function,
            (None, None) => "?",
        };
        forms.entry(name).or_default().add(total);
    }
    let map = forms["(map half (range 1000))"];
    assert!(forms["(/ x 2)"].fuel >= 1_000 && map.fuel > forms["(/ x 2)"].fuel, "{forms:?}");
    assert!(forms["(/ x 2)"].fuel + forms["map"].fuel > map.fuel, "{forms:?}");
    assert!(!profile.cut && profile.samples > 1_000, "{profile:?}");
}

#[test]
fn what_is_deep_or_wide_is_cut_and_not_lost() {
    let deep = engine().eval("(defn f [n] (if (zero? n) 0 (inc (f (dec n)))))\n(f 3000)", Input::new().profile());
    assert!(deep.is_success() && profile(&deep).cut, "{:?}", deep.problem());
    assert!(profile(&deep).nodes.len() < 2_000);
    assert_eq!(sum(profile(&deep)).fuel, deep.usage.fuel);
    let many: String = (0..12_000).map(|i| format!("(inc {i})")).collect::<Vec<_>>().join(" ");
    let wide = engine().eval(&format!("(def x 1) [{many}]"), Input::new().profile());
    assert!(wide.is_success(), "{:?}", wide.problem());
    assert!(profile(&wide).nodes.len() <= Profile::NODES);
    assert_eq!(sum(profile(&wide)).fuel, wide.usage.fuel);
}

/// Looking at a run takes no longer the deeper it is, and its deadline holds.
#[test]
fn deep_and_endless_runs_end_as_ever() {
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(20_000).with_fuel(3_000_000))
        .build()
        .expect("an engine");
    let deep = "(defn g [x] (g x)) (inc (g 1))";
    let plain = engine.eval(deep, Input::new());
    let seen = engine.eval(deep, Input::new().profile());
    assert_eq!(plain.problem().map(Problem::reason), Some(Reason::MemoryExceeded));
    assert_eq!((plain.problem(), plain.usage.fuel), (seen.problem(), seen.usage.fuel));
    assert_eq!(sum(profile(&seen)).fuel, seen.usage.fuel);
    let short = Engine::builder()
        .limits(Limits::default().with_timeout_ms(100).with_loop_iterations(0))
        .build()
        .expect("an engine");
    let endless = short.eval("(loop [] (recur))", Input::new().profile());
    assert_eq!(endless.problem().map(Problem::reason), Some(Reason::Timeout));
    assert_eq!(sum(profile(&endless)).fuel, endless.usage.fuel);
}

#[test]
fn workers_and_turns_are_in_it() {
    let outcome = engine().eval("(defn half [x] (/ x 2))\n(pmap half (range 50))", Input::new().profile());
    let calls: u64 = profile(&outcome)
        .nodes
        .iter()
        .filter(|node| node.function.as_deref() == Some("half"))
        .map(|n| n.cost.fuel)
        .sum();
    assert!(calls >= 50, "{:?}", profile(&outcome));
    assert!(sum(profile(&outcome)).fuel <= outcome.usage.fuel);
    let mut session = engine().session(Input::new().profile());
    assert!(session.eval("(defn half [x] (/ x 2))").is_success());
    let outcome = session.eval("(map half [1 2 3])");
    assert_eq!(sum(profile(&outcome)).fuel, outcome.usage.fuel);
    let earlier = |node: &&ProfileNode| node.turn == Some(1) && node.span == Some((15, 22));
    assert_eq!(profile(&outcome).nodes.iter().filter(earlier).count(), 1, "{:?}", profile(&outcome));
    let setup = Engine::default().compile("(defn half [x] (/ x 2))").expect("a program");
    let outcome = Engine::default().eval("(map half [1 2 3])", Input::new().setup(&setup).profile());
    assert_eq!(sum(profile(&outcome)).fuel, outcome.usage.fuel);
    assert!(profile(&outcome).nodes.iter().any(|node| node.setup == Some(0)), "{:?}", profile(&outcome));
}

#[test]
fn a_call_with_long_arguments_is_profiled() {
    let engine = Engine::builder()
        .tool("n", |call: &lisp_runtime::ToolCall| Ok::<_, lisp_runtime::ToolError>(call.json().len()))
        .build()
        .unwrap();
    let program = "(def v (vec (range 200000))) [(tool/n {:v v}) (tool/n {:v 1})]";
    let plain = engine.eval(program, Input::new());
    let seen = engine.eval(program, Input::new().profile());
    assert!(seen.is_success(), "{:?}", seen.problem());
    assert_eq!((seen.text(), seen.usage.fuel), (plain.text(), plain.usage.fuel));
    assert_eq!(sum(profile(&seen)).fuel, seen.usage.fuel);
}
