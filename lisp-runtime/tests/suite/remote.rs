//! A run in two halves gives the answer of a run in one.

use crate::described::{PROGRAMS, came, server};
use lisp_runtime::outcome::Place;
use lisp_runtime::remote::{
    CallReply, CallStarted, Figures, GuestCall, GuestHalf, HostHalf, Job, Report, RunHost, SentSet,
};
use lisp_runtime::{
    Amounts, Answer, Budget, Cancel, DataSet, Engine, Input, Limits, Outcome, Request, Tool, ToolError,
};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The host half on the same thread, and what came through.
struct Near {
    home: HostHalf,
    replies: Vec<(u64, CallReply)>,
    lines: Vec<Vec<String>>,
    told: Vec<Figures>,
}

impl RunHost for Near {
    fn figures(&mut self, figures: Figures) {
        self.home.figures(figures);
        self.told.push(figures);
    }

    fn printed(&mut self, lines: Vec<String>) {
        self.home.printed(lines.clone());
        self.lines.push(lines);
    }

    fn call(&mut self, call: GuestCall<'_>) {
        // A message of its own would wake the host once more.
        assert_eq!(call.figures.is_some(), call.place.is_of_program());
        if let Some(figures) = call.figures {
            self.figures(figures);
        }
        let begun = (call.number, self.home.begin(call));
        self.go_on(begun);
    }

    fn next_reply(&mut self, until: Option<Instant>) -> Option<(u64, CallReply)> {
        self.replies.pop().or_else(|| {
            // While helpers compute, a call may wait for one of theirs that has its turn before.
            let until = until.expect("a call under way");
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            None
        })
    }
}

impl Near {
    fn go_on(&mut self, begun: (u64, CallStarted)) {
        match begun {
            (number, CallStarted::Ready(reply)) => self.replies.push((number, reply)),
            (_, CallStarted::Call(call)) => {
                let ended = call.make();
                self.home.end(ended).into_iter().for_each(|begun| self.go_on(begun));
            }
            (_, CallStarted::Later) => {}
        }
    }
}

fn engine() -> Engine {
    Engine::builder()
        .limits(Limits::default().with_tool_calls(3).with_prints_bytes(300))
        .grant(Tool::new("price", |call| Ok(call.get::<i64>("n")? * 2)).signature("(n :int) -> :int").cached())
        .tool("broken", |_| Err::<(), _>(ToolError::new("it is broken")))
        .grant(Tool::echo("echo"))
        .build()
        .unwrap()
}

fn in_two(engine: &Engine, json: &str) -> (Answer, Vec<Vec<String>>) {
    let request = Request::parse(json).unwrap();
    let mut input = Input::new();
    let (job, home) = match engine.split_request(&request, &mut input) {
        Ok(halves) => halves,
        Err(outcome) => return (Answer::new(request.id.clone(), &outcome), Vec::new()),
    };
    let (outcome, lines) = both_halves(engine, &job, home, &[]);
    (Answer::new(request.id.clone(), &outcome), lines)
}

/// A job that goes through JSON, and so does its report.
fn both_halves(engine: &Engine, job: &Job<'_>, home: HostHalf, sets: &[DataSet]) -> (Outcome, Vec<Vec<String>>) {
    let text = serde_json::to_string(job).unwrap();
    let job: Job<'_> = serde_json::from_str(&text).unwrap();
    let asked = Mutex::new(engine.split("", &Input::new(), &[], false).unwrap().1);
    let clock = move |place: &Place| asked.lock().unwrap().time(place).unwrap();
    let mut far = GuestHalf::new(job, sets, Arc::new(AtomicBool::new(false)), Cancel::new(), clock);
    let mut near = Near { home, replies: Vec::new(), lines: Vec::new(), told: Vec::new() };
    let report = far.run(Instant::now(), None, &mut near);
    let report: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    (near.home.finish(report), near.lines)
}

pub(crate) fn eval_in_two(engine: &Engine, source: &str, input: &Input<'_>) -> Outcome {
    match engine.split(source, input, &[], false) {
        Ok((job, home)) => both_halves(engine, &job, home, &[]).0,
        Err(outcome) => *outcome,
    }
}

/// An answer without what no two runs have in common.
fn plain(answer: &Answer) -> Value {
    let mut value: Value = serde_json::from_str(&answer.to_json()).unwrap();
    value.as_object_mut().unwrap().remove("run_id");
    // A line that goes out at once cuts the work after it: what that had allocated is allocated again.
    for name in ["compute_us", "duration_us", "allocated_bytes"] {
        value["usage"].as_object_mut().unwrap().remove(name);
    }
    for entry in value["ledger"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("duration_us");
    }
    value
}

#[test]
fn the_answer_is_the_same() {
    let engine = engine();
    let requests = [
        r#"{"program": "(+ 1 2)", "id": [1]}"#,
        r#"{"program": "(println 1) (println \"äö\") (tool/price {:n 4})"}"#,
        r#"{"program": "[(tool/price {:n 4}) (tool/price {:n 4}) (tool/echo {:a #{1 2}}) (tool/price {:n 5}) (tool/price {:n 6})]"}"#,
        r#"{"program": "(tool/broken {})"}"#,
        r#"{"program": "(tool/price {:m 4})"}"#,
        r#"{"program": "(tool/missing {})"}"#,
        r#"{"program": "(def x 1) (def y [x x]) (fail :no)"}"#,
        r#"{"program": "(return {:a 1 \"a\" 2})"}"#,
        r#"{"program": "(doseq [i (range 50)] (println \"a line of some length\" i))"}"#,
        r#"{"program": "(inc nil"}"#,
        r#"{"program": "```clojure\n[##NaN (re-find #\"\\\\d\" \"1\")]\n```"}"#,
        r#"{"program": "```\n(def a ##NaN) (/ 1 0)\n```"}"#,
        r#"{"program": "(/ 1 0)", "setup": ["(def a 1)", "(println a)"]}"#,
        r#"{"program": "(+ a 1)", "setup": ["(def a 1)", "(println a)"]}"#,
        r#"{"program": "1", "setup": ["(def a 1)", "(println"]}"#,
        r#"{"program": "(conj data/x (count *1) m)", "data": {"x": [1]}, "memory": {"m": 2}, "history": ["abc"]}"#,
        r#"{"program": "data/nothing", "strict_data": true}"#,
        r#"{"program": "1", "data": [1]}"#,
        r#"{"program": "1.5", "signature": "() -> :int"}"#,
        r#"{"program": "1.5", "signature": "() -> :nothing!"}"#,
        r#"{"program": "(vec (range 1e9))", "limits": {"heap_bytes": 100000}}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))"}"#,
        r#"{"program": "(loop [i 0] (recur (inc i)))", "limits": {"fuel": 500}}"#,
        r#"{"program": "(println 0) (def r (pmap (fn [i] (println i) (tool/echo {:i i})) [3 1 2])) (println 4) r"}"#,
        r#"{"program": "(pmap (fn [i] (println i) (tool/price {:n (rem i 2)})) (range 6))"}"#,
        r#"{"program": "(pmap (fn [i] (pmap (fn [j] (println i j) (tool/echo {:i [i j]}) (inc j)) [1 2])) [1])"}"#,
        r#"{"program": "(pmap (fn [i] (tool/price {:n i})) (range 6))", "limits": {"parallel_window": 1}}"#,
        r#"{"program": "(pcalls #(tool/broken {}) #(do (println 1) 2))", "limits": {"parallel_window": 1}}"#,
        r#"{"program": "(map (fn [n] (try (tool/price {:n n}) (catch Exception e [(:reason e) (:tool e)]) (finally (println n)))) [1 \"a\" 2])"}"#,
        r#"{"program": "[(try (tool/broken {}) (catch Exception e e)) (try (fail {:a 1}) (catch Exception e (ex-data e)))]"}"#,
        r#"{"program": "(try (pmap (fn [i] (println i) (tool/broken {})) [1]) (catch Exception e [(:reason e) (ex-message e)]))"}"#,
        r#"{"program": "(pmap (fn [i] (try (tool/broken {:i i}) (catch Exception e (:message e)))) (range 3))"}"#,
        r#"{"program": "(doseq [i (range 9)] (try (tool/echo {:i i}) (catch Exception e 1) (finally (println i))))"}"#,
        r#"{"program": "(throw (ex-info \"no stock\" {:id 7}))"}"#,
        r#"{"program": "(try (tool/own {}) (catch Exception e (ex-message e)))", "tools": {"own": {"error": "own fault"}}}"#,
        r#"{"program": "(tool/own {:a 1})", "tools": {"own": {"returns": {"b": [1, null]}}}}"#,
        r#"{"program": "[data/rows m *1 (tool/own {}) (tool/echo {:x-y {\"k k\" 1}})]", "json_keys": "keywords", "data": {"rows": [{"a/b": {"": 1}}]},
            "memory": {"m": {"é": 1}}, "history": [{"h": 1}], "tools": {"own": {"returns": {"b": [{"c": null}]}}}}"#,
        r#"{"program": "(def m ##NaN) [(try (tool/echo {:a [##Inf]}) (catch Exception e (ex-message e))) ##-Inf {:a ##NaN}]"}"#,
        r#"{"program": "(def d (reduce (fn [a _] [a]) [] (range 600))) d"}"#,
        r#"{"program": "[data/rows (tool/echo {:a 1})]", "json_keys": "strings", "data": {"rows": [{"a": 1}]}}"#,
    ];
    for json in requests {
        let one = Request::parse(json).unwrap().run(&engine);
        let (two, _) = in_two(&engine, json);
        assert_eq!(plain(&two), plain(&one), "{json}");
    }
}

#[test]
fn the_clock_is_the_hosts() {
    // It goes back now and then, which a run does not see.
    let engine = || {
        let read = AtomicI64::new(0);
        let clock = move || match read.fetch_add(1, Ordering::Relaxed) {
            n if n % 3 == 2 => 5,
            n => 1_000 * n,
        };
        // Workers one after the other ask in order.
        let limits = Limits::default().with_parallel_window(1);
        Engine::builder().clock(clock).limits(limits).without_threads().build().unwrap()
    };
    let now = "(System/currentTimeMillis)";
    let four = format!("[{now} {now} {now} {now}]");
    let replay = [(-3, 2), (7, 1)];
    for (source, input) in [
        (four.clone(), Input::new()),
        (four.clone(), Input::new().clock(&replay)),
        (four.clone(), Input::new().now_ms(9)),
        (format!("(pmap (fn [_] {now}) (range 5))"), Input::new()),
        (format!("(pmap (fn [_] {now}) (range 5))"), Input::new().clock(&replay)),
        ("1".to_owned(), Input::new().clock(&replay)),
        (format!("{now} (/ {now} 0)"), Input::new()),
    ] {
        let one = engine().eval(&source, input.clone());
        let two = eval_in_two(&engine(), &source, &input);
        assert_eq!((two.json(), &two.clock), (one.json(), &one.clock), "{source} {input:?}");
        assert_eq!(two.problem().map(|p| &p.error), one.problem().map(|p| &p.error), "{source}");
        // What it was told can be told again at either mode.
        if !one.clock.is_empty() {
            let again = Input::new().clock(&two.clock);
            assert_eq!(eval_in_two(&engine(), &source, &again).json(), one.json());
            assert_eq!(engine().eval(&source, again).json(), one.json());
        }
    }
    assert_eq!(eval_in_two(&engine(), &four, &Input::new()).json(), Some("[0,1000,1000,3000]"));
    assert_eq!(eval_in_two(&engine(), &four, &Input::new().clock(&replay)).clock, [(-3, 2), (7, 2)]);
}

#[test]
fn readings_in_a_report_are_bounded() {
    let engine = Engine::default();
    let finished = |readings: usize, replay: &[(i64, u64)]| {
        let input = Input::new().clock(replay);
        let (job, mut home) = engine.split("1", &input, &[], false).unwrap();
        let mut far = GuestHalf::new(
            serde_json::from_str(&serde_json::to_string(&job).unwrap()).unwrap(),
            &[],
            Arc::default(),
            Cancel::new(),
            |_| 0,
        );
        let mut near = Near {
            home: engine.split("1", &input, &[], false).unwrap().1,
            replies: Vec::new(),
            lines: Vec::new(),
            told: Vec::new(),
        };
        let mut report = serde_json::to_value(far.run(Instant::now(), None, &mut near)).unwrap();
        report["clock"] = serde_json::to_value(vec![(1, 1); readings]).unwrap();
        home.finish(serde_json::from_value(report).unwrap())
    };
    assert_eq!(finished(100_000, &[]).clock.len(), 100_000);
    let outcome = finished(100_001, &[]);
    assert!(outcome.problem().is_some_and(|p| p.error.message.contains("asked for the time more than it may")));
    assert!(outcome.clock.is_empty());
    assert!(finished(100_001, &[(1, 1); 100_001]).is_success());
}

/// A process that lies about its figures is believed up to what it was allowed, and no further: sums over many runs do not wrap.
#[test]
fn figures_of_a_process_that_lies_are_held_to_what_it_was_allowed() {
    let limits = Limits::default().with_fuel(1_000).with_heap_bytes(100_000).with_parallel_workers(3);
    let budget = Budget::new(Amounts::new().with_fuel(10_000).with_bytes(u64::MAX));
    let engine = Engine::builder().limits(limits).build().unwrap();
    let input = Input::new().budget(&budget).profile();
    let (job, home) = engine.split("1", &input, &[], false).unwrap();
    let mut far = GuestHalf::new(job, &[], Arc::default(), Cancel::new(), |_| 0);
    let mut near = Near { home, replies: Vec::new(), lines: Vec::new(), told: Vec::new() };
    let mut report = serde_json::to_value(far.run(Instant::now(), None, &mut near)).unwrap();
    // Every number of it that is a figure.
    let max = || Value::from(u64::MAX);
    for figure in report["usage"].as_object_mut().unwrap().values_mut() {
        *figure = max();
    }
    for name in ["prints_dropped", "prints_cut", "more_refused"] {
        report[name] = max();
    }
    for figure in ["fuel", "bytes", "nanos"] {
        report["profile"]["nodes"][0]["cost"][figure] = max();
    }
    report["end"]["Ok"]["text_bytes"] = max();
    let outcome = near.home.finish(serde_json::from_value(report).unwrap());
    let usage = outcome.usage;
    assert_eq!((usage.fuel, usage.workers_peak, usage.tool_calls), (1_000, 3, 0));
    assert_eq!((usage.heap_peak_bytes, usage.heap_live_bytes), (400_000, Some(400_000)));
    assert_eq!((usage.baseline_bytes, usage.cpu_us, usage.rss_peak_bytes), (Some(400_000), None, None));
    // What has no limit is held to what a machine can do in the time.
    let work = (usage.duration_us + 1) * 1_000_000;
    let cost = outcome.profile.as_ref().unwrap().nodes[0].cost;
    for figure in [usage.allocated_bytes, usage.compactions, outcome.prints_dropped, outcome.ledger_dropped, cost.bytes]
    {
        assert!(figure <= work, "{figure} in {} us", usage.duration_us);
    }
    assert!(usage.compute_us <= usage.duration_us * 4 && cost.fuel == 1_000 && cost.nanos <= usage.duration_us * 4_000);
    assert!(outcome.text_cut().is_some_and(|bytes| bytes as u64 <= work));
    let left = budget.left();
    assert!(left.fuel == Some(9_000) && left.bytes.is_some_and(|bytes| bytes >= u64::MAX - work), "{left:?}");
    // So are those that it tells on the way, of a run that is killed.
    let (_, mut home) = engine.split("1", &Input::new(), &[], false).unwrap();
    let max = u64::MAX;
    home.figures(Figures {
        fuel: max,
        baseline_bytes: max,
        heap_peak_bytes: max,
        allocated_bytes: max,
        compactions: max,
    });
    let killed = home.fail(lisp_runtime::Error::new(lisp_runtime::Reason::Timeout, "killed"), None).usage;
    assert_eq!((killed.fuel, killed.heap_peak_bytes, killed.baseline_bytes), (1_000, 400_000, Some(400_000)));
}

/// Whether a run may have workers is known from the symbols of its text, which is not compiled for this.
#[test]
fn only_sources_that_name_a_parallel_function_may_have_workers() {
    let engine = Engine::default();
    // With one core there is nobody to help.
    let cores = std::thread::available_parallelism().map_or(1, usize::from) > 1;
    let set_up = |source: &str| Input::new().setup(&engine.compile(source).unwrap());
    let may = |source: &str, input: &Input<'_>| engine.split(source, input, &[], false).unwrap().1.may_have_workers();
    for source in [
        "(pmap inc [1])",
        "(apply pcalls [])",
        "(map pmap [inc] [[1]])",
        "(let [p clojure.core/pmap] (p inc [1]))",
        "(->> [1] (pmap inc))",
        "(if false (pmap inc [1]) 1)",
        "(defn f [x] (pcalls (fn [] x)))",
        "(require '[clojure.core :as c]) (c/pmap inc [1])",
        "(#'pmap inc [1])",
        // Too much is said of these, which costs address space and nothing else.
        "(let [pmap 1] pmap)",
        "(comment (pmap inc [1])) 1",
        "(pmap inc [1]",
    ] {
        assert_eq!(may(source, &Input::new()), cores, "{source}");
    }
    for source in [
        "; pmap\n(+ 1 2)",
        "(count \"pmap pcalls\")",
        ":pmap",
        "'pmap",
        "(re-find #\"pmap\" \"a\") \\pmap",
        "(let [pmap-all 1 my-pmap 2] pmap-all)",
        "{:pmap data/x}",
    ] {
        assert!(!may(source, &Input::new()), "{source}");
    }
    // What a set-up program defines, the program may call.
    assert_eq!(may("(f 1)", &set_up("(defn f [x] (pmap inc [x]))")), cores);
    assert!(!may("(f 1)", &set_up("(defn f [x] (map inc [x])) ; pmap")));
    assert_eq!(may("(f 1)", &Input::new().setup_source("(defn f [x] (pmap inc [x]))")), cores);
    // Memory is data.
    assert!(!may("(count a)", &Input::new().memory("{\"a\": \"pmap\"}")));
    let request = |json: &str| {
        let request = Request::parse(json).unwrap();
        let mut input = Input::new();
        engine.split_request(&request, &mut input).unwrap().1.may_have_workers()
    };
    assert_eq!(request(r#"{"program": "(f 1)", "setup": ["(defn f [x] (pcalls (fn [] x)))"]}"#), cores);
    assert!(!request(r#"{"program": "(f 1) ; pmap", "setup": ["(defn f [x] \"pcalls\")"]}"#));
    // A program that is larger than most is not searched.
    assert!(!may(&format!("(pmap inc [1]) {}", " ".repeat(70_000)), &Input::new()));
}

#[test]
fn data_sets_are_the_same_in_two_halves() {
    let engine = Engine::default();
    // Keys in different orders, some twice, escapes, floats that look like integers, integers that are none.
    let rows = r#"[{"b": 1, "a": 2}, {"a": 1.0, "b": "\u00e4\n"}, {"a": 1, "a": 2},  {"n": 123456789012345678901234567890}, []]"#;
    let sets = [
        engine.import("rows", rows).unwrap(),
        engine.import_object(r#"{"x": [1, 2.5, null], "y": {"k": {}}}"#).unwrap(),
    ];
    // As a template has them: from the text, without it.
    let there: Vec<DataSet> = sets
        .iter()
        .map(|set| {
            let text = serde_json::to_string(&set.sent().unwrap()).unwrap();
            serde_json::from_str::<SentSet<'_>>(&text).unwrap().import().unwrap()
        })
        .collect();
    assert_eq!(
        there.iter().map(DataSet::bytes).collect::<Vec<_>>(),
        sets.iter().map(DataSet::bytes).collect::<Vec<_>>()
    );
    assert!(there[0].sent().is_none() && engine.split("1", &Input::new().data_set(&there[0]), &[], false).is_err());
    let mut all = Input::new().json("extra", "[1]");
    all = sets.iter().fold(all, |input, set| input.data_set(set));
    let tight = |bytes: usize| {
        let mut limits = lisp_runtime::LimitsRequest::default();
        limits.set("setup_heap_bytes", bytes as u64).unwrap();
        all.clone().limits(limits)
    };
    let bytes: usize = sets.iter().map(DataSet::bytes).sum();
    for (source, input) in [
        ("[data/rows data/x data/y data/extra]", all.clone()),
        ("(mapv #(assoc % :z 1) (take 3 data/rows))", all.clone()),
        ("(conj data/x data/nothing)", all.clone()),
        ("data/nothing", all.clone().strict_data(true)),
        ("(count data/rows)", tight(bytes / 2)),
        ("(count data/rows)", tight(bytes + 5_000)),
        ("(println 1) (vec (range 1e9))", all.clone()),
        ("(inc", all.clone()),
    ] {
        let one = engine.eval(source, input.clone());
        for known in [&sets[..], &sets[1..], &[]] {
            let (job, home) = engine.split(source, &input, known, false).unwrap();
            let here = &there[sets.len() - known.len()..];
            let (two, _) = both_halves(&engine, &job, home, here);
            let (one, two) = (plain(&Answer::new(None, &one)), plain(&Answer::new(None, &two)));
            assert_eq!(two, one, "{source} with {} known", known.len());
        }
    }
    // Of a set that the other half knows nothing is sent.
    let large = engine.import("large", format!("[{}0]", "1234567,".repeat(100_000))).unwrap();
    let input = Input::new().data_set(&large);
    let sent = |known: &[DataSet]| {
        let (job, _) = engine.split("1", &input, known, false).unwrap();
        serde_json::to_vec(&job).unwrap().len()
    };
    assert!(sent(std::slice::from_ref(&large)) < 2_000, "{}", sent(std::slice::from_ref(&large)));
    assert!(sent(&[]) > 800_000);
}

#[test]
fn a_line_goes_out_before_the_next_piece_of_work() {
    let (answer, lines) = in_two(&engine(), r#"{"program": "(println 1) (println 2) (tool/broken {})"}"#);
    assert_eq!(lines, [["1"], ["2"]]);
    assert_eq!(answer.prints, ["1", "2"]);
}

#[test]
fn set_up_programs_print_for_nobody() {
    let json = r#"{"program": "(println 2)", "setup": ["(println 1)", "(println 1)"]}"#;
    let (answer, lines) = in_two(&engine(), json);
    // The last line goes with the report.
    assert_eq!((lines.len(), answer.prints), (0, vec!["2".to_owned()]));
    // Those of one that fails are in the outcome only, whoever takes lines.
    let input = Input::new().setup_source("(println 1) (/ 1 0)").print_to(|line| panic!("{line} is shown"));
    let (job, home) = engine().split("2", &input, &[], false).unwrap();
    let mut near = Near { home, replies: Vec::new(), lines: Vec::new(), told: Vec::new() };
    let mut far = GuestHalf::new(job, &[], Arc::default(), Cancel::new(), |_| 0);
    let report = far.run(near.home.started(), None, &mut near);
    let outcome = near.home.finish(report);
    assert_eq!((outcome.problem().and_then(|problem| problem.setup), outcome.prints), (Some(0), vec!["1".to_owned()]));
}

/// A guest half tells where it stands as it goes on; what the host half heard last is what it knows of one that breaks.
#[test]
fn a_run_tells_its_figures_as_it_goes_on() {
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(60_000).with_loop_iterations(0))
        .tool("t", |_| Ok(1))
        .build()
        .unwrap();
    let input = Input::new().json("n", "1");
    let told = |source: &str| {
        let (job, home) = engine.split(source, &input, &[], false).unwrap();
        let mut near = Near { home, replies: Vec::new(), lines: Vec::new(), told: Vec::new() };
        let mut far = GuestHalf::new(job, &[], Arc::default(), Cancel::new(), |_| 0);
        let begun = Instant::now();
        let report = far.run(near.home.started(), None, &mut near);
        let took = begun.elapsed();
        let fuel = near.home.finish(report).usage.fuel;
        assert!(near.told.is_sorted_by_key(|figures| figures.fuel));
        assert!(near.told.iter().all(|figures| figures.fuel <= fuel && figures.baseline_bytes > 0));
        (near.told.len(), took)
    };
    assert_eq!(told("(+ 1 data/n)").0, 0, "a short run has nothing to tell");
    assert_eq!(told("(tool/t {})").0, 1);
    assert_eq!(told("(println 1) (println 2)").0, 2);
    assert_eq!(told("(pmap inc [1 2])").0, 1);
    let (count, took) = told("(loop [i 0] (if (< i 20000000) (recur (inc i)) i))");
    // After the first slice, and then every 50 ms: about as often as there is time for.
    let max = 2 + usize::try_from(took.as_millis() / 50).unwrap();
    assert!((2..=max).contains(&count), "{count} times in {took:?}");
    // Of one that breaks, the figures told last are left, and how old they are.
    let (_, mut home) = engine.split("1", &input, &[], false).unwrap();
    let figures = Figures { fuel: 7, baseline_bytes: 8, heap_peak_bytes: 9, allocated_bytes: 10, compactions: 11 };
    home.figures(figures);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let error = || lisp_runtime::Error::new(lisp_runtime::Reason::Timeout, "killed");
    let usage = home.fail(error(), None).usage;
    assert_eq!((usage.fuel, usage.baseline_bytes, usage.heap_peak_bytes), (7, Some(8), 9));
    assert_eq!((usage.allocated_bytes, usage.compactions), (10, 11));
    assert!(usage.figures_age_us >= Some(20_000), "{usage:?}");
    // Those of one turn are not the next one's.
    home.next_turn();
    assert_eq!(home.fail(error(), None).usage.figures_age_us, None);
}

#[test]
fn tools_of_schemas_are_the_same_in_two_halves() {
    let engine = Engine::builder().grant_all(server()).build().unwrap();
    for (program, wanted) in PROGRAMS {
        let (near, far) = (engine.eval(program, Input::new()), eval_in_two(&engine, program, &Input::new()));
        assert_eq!(came(&far), *wanted, "{program}");
        let hint = |outcome: &Outcome| outcome.problem().and_then(|problem| problem.error.hint.clone());
        assert_eq!(hint(&far), hint(&near), "{program}");
        let ledger = |outcome: &Outcome| {
            let lines = outcome.ledger.iter();
            lines
                .map(|line| (line.name.clone(), line.status, line.error.clone(), line.arguments.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(ledger(&far), ledger(&near), "{program}");
        assert_eq!((far.usage.tool_calls, far.usage.fuel), (near.usage.tool_calls, near.usage.fuel), "{program}");
    }
}
