//! Sessions as values: saved and loaded, forked, taken back, and within their ceilings.

use lisp_runtime::{Engine, Input, Limits, Outcome, Problem, Program, Reason, Session, Tool};
use proptest::prelude::*;

fn text(session: &mut Session, program: &str) -> String {
    let outcome = session.eval(program);
    assert!(outcome.is_success(), "{program:.200}: {:?}", outcome.problem());
    outcome.text().unwrap_or_default().to_owned()
}

fn session(limits: Limits) -> Session {
    Engine::builder().limits(limits).build().unwrap().session(Input::new())
}

fn loaded(text: &str) -> Session {
    Engine::default().load_session(text, Input::new()).unwrap_or_else(|problem| panic!("{problem:?}\n{text}"))
}

fn problem(outcome: &Outcome) -> &Problem {
    outcome.problem().expect("it fails")
}

/// Definitions, and what is asked of them: before and after the same must come of it.
const ROWS: &[(&str, &str)] = &[
    ("(def x nil) (def y true) (def z -7) (def w 1.5)", "[x y z w]"),
    ("(def big 123456789012345678901234567890) (def neg (- big))", "[big neg (+ big neg) (* big big)]"),
    ("(def odd-floats [(/ 0.0 0.0) (/ 1.0 0.0) (/ -1.0 0.0) -0.0 1.0e300 5.0e-324 0.1])", "odd-floats"),
    ("(def minus-zero -0.0)", "(/ 1.0 minus-zero)"),
    (r#"(def s "a \"b\" \\ c\nd\re\t é 🇩🇪 \u0001")"#, "[s (count s)]"),
    (r#"(def long (apply str (repeat 100 "ab\\\\\n\"")))"#, "[long (count long)]"),
    (r#"(def k [:a :a/b (keyword "with space") (keyword "") (keyword "q\"uote")])"#, "(mapv name k)"),
    ("(def m {:a 1 \"a\" 2 nil 3 [1 2] 4 {:x 1} 5 1.5 6 true 7})", "[m (m [1 2]) (m nil) (count m)]"),
    ("(def set1 #{1 2.5 :a \"a\" [1] #{}})", "[set1 (contains? set1 [1])]"),
    ("(def large (into {} (map (fn [i] [i (* i i)]) (range 100))))", "[(large 50) (count large) large]"),
    ("(def nested (reduce (fn [v _] [v]) [] (range 900)))", "(count (str nested))"),
    ("(def sym 'abc) (def v (def w 1)) (def re #\"a\\d+\\\"b\")", "[sym v re (re-find re \"xa12\\\"b\")]"),
    ("(defn f \"doc\" [a & more] [a more]) (def g f)", "[(f 1 2 3) (g 1) (= f g)]"),
    ("(defn fact [n] (if (zero? n) 1 (* n (fact (dec n)))))", "(fact 20)"),
    ("(defn many ([] 0) ([a] [a]) ([a b] [a b]))", "[(many) (many 1) (many 1 2)]"),
    ("(def add (let [n 5 m {:k [1 2]}] (fn [x] [(+ x n) m])))", "(add 3)"),
    (
        "(def pair (letfn [(ev? [n] (if (zero? n) true (od? (dec n)))) (od? [n] (if (zero? n) false (ev? (dec n))))] [ev? od?]))",
        "[((pair 0) 10) ((pair 1) 10)]",
    ),
    ("(def loop-fn (fn self [n acc] (if (zero? n) acc (self (dec n) (conj acc n)))))", "(loop-fn 4 [])"),
    (
        "(def fs [inc + str/upper-case clojure.string/join map :k])",
        "[((fs 0) 1) ((fs 1) 1 2) ((fs 2) \"a\") ((fs 4) (fs 0) [1])]",
    ),
    (
        "(def p (partial + 1 2)) (def c (comp str inc)) (def j (juxt :a :b)) (def n (fnil inc 0)) (def co (constantly 9))",
        "[(p 3) (c 1) (j {:a 1 :b 2}) (n nil) (co 1)]",
    ),
    (
        "(def e (every-pred odd? pos?)) (def s (some-fn :a :b)) (def k (complement odd?)) (def d (completing conj count))",
        "[(e 3) (s {:b 1}) (k 3) (transduce (map inc) d [] [1 2])]",
    ),
    (
        "(def xf (comp (filter odd?) (map inc) (take 2) (drop 0) (distinct) (dedupe) (partition-all 2) (interpose :x) cat))",
        "(into [] xf (range 20))",
    ),
    (
        "(def ones (repeat 1)) (def nat (range)) (def cyc (cycle [1 2 3])) (def it (iterate (partial * 2) 1))",
        "[(take 2 ones) (take 3 (rest nat)) (take 4 (drop 2 cyc)) (take 5 it)]",
    ),
    (
        "(def evens (filter even? (map inc (range)))) (def zipped (map vector (range) (iterate inc 10))) (def pre (cons 7 (range)))",
        "[(take 3 evens) (take 2 zipped) (take 3 pre)]",
    ),
    ("(def r (repeatedly (fn [] 4))) (def windows (partition 2 1 (range)))", "[(take 2 r) (take 2 windows)]"),
    (
        "(def day (LocalDate/parse \"2024-02-29\")) (def at (Instant/parse \"2024-02-29T12:00:00.5Z\")) (def dur (Duration/ofMillis 1500))",
        "[(str day) (str at) (str dur) (str (.plusDays day 1))]",
    ),
    ("(def old (java.util.Date. 12345))", "(.getTime old)"),
    ("(def count 3) (defn size [v] [count v])", "(size 1)"),
    ("(def v [1 2 3 4]) (def tail (rest v)) (def more (conj tail 5))", "[v tail more (subvec v 1 3)]"),
    ("(def err (try (throw (ex-info \"no\" {:a 1})) (catch Exception e e)))", "[(ex-message err) (ex-data err)]"),
    ("(def thunk (fn [] tool/f))", "(str (thunk))"),
    ("(def red (reduced 5)) (def stop (fn [a x] (if (> x 2) red (+ a x))))", "(reduce stop 0 [1 2 3 4])"),
    ("(def *special* 1)", "*special*"),
];

#[test]
fn what_is_saved_is_what_is_loaded() {
    let engine =
        Engine::builder().tool("f", |_: &lisp_runtime::ToolCall| Ok::<_, lisp_runtime::ToolError>(1)).build().unwrap();
    for (define, ask) in ROWS {
        let mut first = engine.session(Input::new());
        text(&mut first, define);
        let saved = first.save().unwrap_or_else(|problem| panic!("{define}: {problem:?}"));
        assert!(saved.starts_with("{\"schema\":\"ptc-session/3\""), "{saved}");
        let mut second =
            engine.load_session(&saved, Input::new()).unwrap_or_else(|p| panic!("{define}: {p:?}\n{saved}"));
        assert_eq!(second.save().unwrap(), saved, "{define}");
        // The results of the last turn too.
        assert_eq!(text(&mut first, "(str *1)"), text(&mut second, "(str *1)"), "{define}");
        assert_eq!(text(&mut first, ask), text(&mut second, ask), "{define}\n{saved}");
        assert_eq!(first.names(), second.names(), "{define}");
        // And once more, by way of the machine that was made of the text.
        let mut third = engine.load_session(&second.save().unwrap(), Input::new()).unwrap();
        assert_eq!(text(&mut first, ask), text(&mut third, ask), "{define}");
    }
}

/// Definitions that take longer than a moment to save, and a question about them.
const LONG: &[(&str, &str)] = &[
    ("(def v (vec (range 60000)))", "[(count v) (v 59999)]"),
    ("(def rows (mapv (fn [i] {:id i :name (str \"row \" i) :tags #{i :a} :f 0.5}) (range 10000)))", "(rows 9999)"),
    ("(def f (reduce (fn [g i] (fn [x] (if (zero? i) (g x) (+ x i)))) inc (range 20000)))", "(f 1)"),
    ("(def s (set (range 60000)))", "[(count s) (s 59999)]"),
    ("(def c (mapv (fn [i] (comp inc (partial + i))) (range 20000)))", "((c 5) 1)"),
];

#[test]
fn what_takes_long_to_save_is_saved() {
    let engine = Engine::default();
    for (define, ask) in LONG {
        for input in [Input::new(), Input::new().profile()] {
            let mut first = engine.session(input);
            text(&mut first, define);
            let saved = first.save().unwrap_or_else(|problem| panic!("{define}: {problem:?}"));
            assert!(saved.len() > 200_000, "{define}: {}", saved.len());
            let mut fork = first.fork().unwrap_or_else(|problem| panic!("{define}: {problem:?}"));
            let mut second = engine.load_session(&saved, Input::new()).unwrap();
            assert_eq!(second.save().unwrap(), saved, "{define}");
            let asked = text(&mut first, ask);
            assert_eq!((text(&mut fork, ask), text(&mut second, ask)), (asked.clone(), asked), "{define}");
        }
    }
}

#[test]
fn saving_ends_at_the_deadline_and_when_cancelled() {
    let none = Limits::default().with_session_bytes(0).with_setup_heap_bytes(0);
    let xs = format!("[{}0]", "1.5,".repeat(3_000_000));
    for (timeout, reason) in [(10, Reason::Timeout), (600_000, Reason::Cancelled)] {
        let engine = Engine::builder().limits(none.with_timeout_ms(timeout)).build().unwrap();
        let set = engine.import("xs", &xs).unwrap();
        for input in [Input::new().data_set(&set), Input::new().data_set(&set).profile()] {
            let mut session = engine.session(input);
            // On a busy machine the turn itself may end at the deadline.
            while !session.eval("(def xs data/xs)").is_success() {}
            if reason == Reason::Cancelled {
                session.cancel_handle().cancel();
            }
            let error = session.save().unwrap_err().error;
            assert_eq!(error.reason, reason, "{error:?}");
            if reason == Reason::Timeout {
                assert_eq!(error.message, "saving the session takes longer than timeout_ms, which is 10 ms");
                assert!(error.hint.is_some_and(|hint| hint.contains("raise the limit timeout_ms")));
            }
            assert!(session.fork().is_err());
        }
    }
}

#[test]
fn functions_of_several_turns_work_together_after_loading() {
    let mut session = session(Limits::default());
    text(&mut session, "(defn twice [x] (* 2 x))");
    text(&mut session, "(def fs (mapv (fn [n] (fn [x] (+ n (twice x)))) [1 2]))");
    text(&mut session, "(def count (fn [_] :mine))");
    text(&mut session, "(defn all [x] [(count x) (mapv (fn [f] (f x)) fs)])");
    let mut later = loaded(&session.save().unwrap());
    assert_eq!(text(&mut later, "(all 10)"), "[:mine [21 22]]");
    // An error in a function of an earlier turn is told by that turn.
    text(&mut session, "(defn broken [x]\n  (+ x :a))");
    let mut later = loaded(&session.save().unwrap());
    let (before, after) = (session.eval("(broken 1)"), later.eval("(broken 1)"));
    let place = |outcome: &Outcome| problem(outcome).position.map(|place| (place.line, place.column));
    assert_eq!((place(&after), problem(&after).turn), (place(&before), problem(&before).turn));
    assert_eq!(problem(&after).turn, Some(5));
}

#[test]
fn shared_parts_are_saved_once() {
    let mut session = session(Limits::default());
    text(&mut session, "(def tower (reduce (fn [v _] [v v]) [:x] (range 60)))");
    let saved = session.save().unwrap();
    assert!(saved.len() < 5_000, "{} bytes", saved.len());
    let mut later = loaded(&saved);
    assert_eq!(text(&mut later, "(first (first (first (first tower)))) (count tower)"), "2");
    let deep = "(def deep (loop [v [] n 0] (if (< n 990) (recur [v] (inc n)) v)))";
    text(&mut session, deep);
    for _ in 0..20 {
        text(&mut session, "(def deep (reduce (fn [v _] [v]) deep (range 5000)))");
    }
    let saved = session.save().unwrap();
    assert_eq!(
        text(&mut loaded(&saved), "(loop [v deep n 0] (if (< n 900) (recur (first v) (inc n)) (count v)))"),
        "1"
    );
}

#[test]
fn data_is_given_again_and_set_up_does_not_run_again() {
    let engine = Engine::default();
    let setup = Program::compile("(println \"once\") (def rate 3)", &Limits::default()).unwrap();
    let input = || Input::new().json("xs", "[1,2,3]").setup(&setup).memory(r#"{"old": 1}"#);
    let mut session = engine.session(input());
    // Before the first turn the set-up runs.
    let early = session.save().unwrap();
    assert_eq!(text(&mut engine.load_session(&early, input()).unwrap(), "[rate old]"), "[3 1]");
    text(&mut session, "(defn total [] (* rate (reduce + data/xs))) (def old 2)");
    text(&mut session, "(def rate 4)");
    let saved = session.save().unwrap();
    let mut later = engine.load_session(&saved, input()).unwrap();
    assert_eq!(text(&mut later, "[(total) old rate]"), "[24 2 4]");
    let mut other = engine.load_session(&saved, Input::new().json("xs", "[10]")).unwrap();
    assert_eq!(text(&mut other, "(total)"), "40");
    let strict = engine.load_session(&saved, Input::new().strict_data(true)).unwrap_err();
    assert!(strict.error.message.contains("data/xs is not given"), "{strict:?}");
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let engine = Engine::builder().grant(Tool::external("send")).build().unwrap();
    let mut session = engine.session(Input::new());
    text(&mut session, "(defn go [] (tool/send {}))");
    let saved = session.save().unwrap();
    let missing = Engine::default().load_session(&saved, Input::new()).unwrap_err();
    assert_eq!(missing.reason(), Reason::UnknownTool);
    assert!(missing.error.message.contains("program 1 of the saved session: there is no tool/send"), "{missing:?}");

    let tight = Engine::builder().limits(Limits::default().with_session_bytes(100)).build().unwrap();
    let mut large = tight.session(Input::new());
    text(&mut large, "(def a 1)");
    text(&mut large, "(def rows (range 1000))");
    let error = large.save().unwrap_err().error;
    assert_eq!(error.reason, Reason::SessionLimitExceeded);
    for part in ["rows", "session_bytes", "100"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert!(error.hint.unwrap().contains("raise the limit session_bytes"));
    assert_eq!(text(&mut large, "[a (count rows)]"), "[1 1000]", "nothing is changed");
}

#[test]
fn a_hostile_text_is_an_error_with_its_line() {
    let mut session = session(Limits::default());
    text(
        &mut session,
        "(def a (let [n 1] (fn [x] (+ x n)))) (def b {:k [1 2 3]}) (def c (partial + 1)) (def d (map inc (range)))",
    );
    text(&mut session, "(def e #{1 \"two\"}) (def f 123456789012345678901234567890123) (def g #\"x\")");
    let saved = session.save().unwrap();
    let engine = Engine::default();
    let fails = |text: &str, line: Option<i64>| {
        let problem = engine.load_session(text, Input::new()).err().unwrap_or_else(|| panic!("it is loaded: {text}"));
        assert_eq!(problem.reason(), Reason::ParseError, "{problem:?}\n{text}");
        let told = problem.error.details.iter().find(|(name, _)| name == "line").map(|(_, detail)| detail.clone());
        assert!(told.is_some() && problem.error.hint.is_some(), "{problem:?}");
        if let Some(line) = line {
            assert_eq!(told, Some(lisp_runtime::outcome::Detail::Int(line)), "{problem:?}");
        }
    };
    // Cut anywhere but before its last newline.
    for end in (0..saved.len() - 1).filter(|&end| saved.is_char_boundary(end)) {
        fails(&saved[..end], None);
    }
    let (first, _) = saved.split_once('\n').unwrap();
    let with = |line: &str| format!("{first}\n{line}\nhistory\nend\n");
    for line in [
        "def",
        "def x",
        "def \"x\"",
        "def \"x\" ",
        "def \"x\" 1 2",
        "def \"x\" @0",
        "def \"x\" @-1",
        "def \"x\" @99999999999999999999",
        "def \"data/x\" 1",
        "def \"\" 1",
        "def \"x\" 1x",
        "def \"x\" 1e5",
        "def \"x\" :",
        "def \"x\" \"abc",
        "def \"x\" \"a\\q\"",
        "def \"x\" \"a\"b",
        "def \"x\" #xzz",
        "def \"x\" #x-",
        "def \"x\" day:99999999999999999",
        "def \"x\" instant:1:9999999999",
        "def \"x\" instant:1",
        "def \"x\" date:1:1",
        "def \"x\" fn\"no-such\"",
        "def \"x\" maybe",
        "what 1 2",
        "{ 1",
        "{ 1 2 1 3",
        "# 1 1",
        "fn 1 0 \"[x]\"",
        "fn prelude 99999 \"[x]\"",
        "fn prelude 0 \"[no such]\"",
        "fn prelude -1 \"\"",
        "make partial",
        "make comp 1",
        "make take :a",
        "make take-nth 0",
        "make windows 1 0",
        "make prefix 1",
        "make nothing 1",
        "seq range",
        "seq range 1 2 3",
        "seq nothing 1",
        "program 1 1",
        "program x 1 \"1\"",
        "program 1 x \"1\"",
        "program 1 1 \"1\" count",
        "program 1 1 \"(\" ",
        "=",
        "= 1 2",
        "= ",
        "[ @0",
    ] {
        fails(&with(line), if line.starts_with("program 1 1 \"(\"") { None } else { Some(2) });
    }
    fails(&with("def \"x\" 1\ndef \"x\" 2"), Some(3));
    fails(&with("program 1 1 \"(fn [] 1)\"\nprogram 1 2 \"2\""), Some(3));
    fails(&with("program 1 1 \"(def f (fn [] 1))\"\nfn 1 1 \"\""), Some(3));
    fails(&with("program 1 1 \"(def f (fn [] 1))\"\nfn 1 0 \"\" 1"), Some(3));
    fails(&with("[\nseq cycle @0 @0 0"), Some(3));
    fails(&with("[ 1\nseq cycle @0 @0 0"), Some(3));
    fails(&with("[\n[ 1\nseq cycle @0 @1 7"), Some(4));
    fails(&first.replace("ptc-session/3", "ptc-session/4"), Some(1));
    fails("", Some(1));
    fails("{}", Some(1));
    assert!(
        engine
            .load_session(&with("program 1 1 \"(def f (fn [] 1))\"\nfn 1 0 \"\"\ndef \"f\" @0"), Input::new())
            .is_ok()
    );
}

#[test]
fn a_small_text_takes_no_more_than_the_set_up_may() {
    let limits = Limits::default().with_heap_bytes(100_000);
    let engine = Engine::builder().limits(limits).build().unwrap();
    let mut small = engine.session(Input::new());
    text(&mut small, "(def a 1)");
    let saved = small.save().unwrap();
    let many = "[\n".repeat(200_000);
    let text = saved.replace("def \"a\"", &format!("{many}def \"a\""));
    let problem = engine.load_session(&text, Input::new()).unwrap_err();
    assert_eq!(problem.reason(), Reason::MemoryExceeded);
    assert!(problem.error.hint.unwrap().contains("setup_heap_bytes"));
}

#[test]
fn forks_go_their_own_ways() {
    let mut first = session(Limits::default());
    let mut unused = first.fork().unwrap();
    text(&mut first, "(def xs [1]) (defn more [] (conj xs (count xs)))");
    let mut second = first.fork().unwrap();
    let mut third = second.fork().unwrap();
    assert_eq!(text(&mut second, "(def xs (more))"), "#'xs");
    assert_eq!(text(&mut first, "[xs *1]"), "[[1] #'more]");
    assert_eq!(text(&mut second, "[xs (more)]"), "[[1 1] [1 1 2]]");
    assert_eq!(text(&mut third, "[xs *1]"), "[[1] #'more]");
    assert_eq!(third.names(), ["more", "xs"]);
    assert_eq!(problem(&unused.eval("xs")).reason(), Reason::UnboundVar);
    let mut early = Engine::default().session(Input::new().memory(r#"{"m": 5}"#)).fork().unwrap();
    assert_eq!(text(&mut early, "m"), "5");
    // A cancelled session says nothing of its fork.
    first.cancel_handle().cancel();
    let mut fork = first.fork().unwrap();
    assert_eq!(text(&mut fork, "xs"), "[1]");
}

#[test]
fn turns_are_taken_back_one_by_one() {
    let mut session = session(Limits::default().with_session_undo(3));
    assert_eq!(session.undo().unwrap_err().reason(), Reason::SessionLimitExceeded);
    for n in 1..=5 {
        text(&mut session, &format!("(def x {n}) (def y{n} {n}) (defn f [] [x {n}])"));
    }
    session.eval("(def x :failed) (/ 1 0)");
    session.eval("(def x :failed) (fail 1)");
    session.undo().unwrap();
    assert_eq!(session.names(), ["f", "x", "y1", "y2", "y3", "y4"]);
    assert_eq!(text(&mut session, "[x (f) *1]"), "[4 [4 4] #'f]");
    // That was a turn, which is taken back, and the two before it that are kept.
    for names in [&["f", "x", "y1", "y2", "y3", "y4"][..], &["f", "x", "y1", "y2", "y3"], &["f", "x", "y1", "y2"]] {
        session.undo().unwrap();
        assert_eq!(session.names(), names);
    }
    let error = session.undo().unwrap_err().error;
    assert!(error.message.contains("at most its last 3 turns (session_undo)"), "{}", error.message);
    assert_eq!(text(&mut session, "[x (f)]"), "[2 [2 2]]");
    assert_eq!(problem(&session.eval("y4")).reason(), Reason::UnboundVar);
    // What it is saved as is what it is now.
    session.undo().unwrap();
    let mut later = loaded(&session.save().unwrap());
    assert_eq!(text(&mut later, "[x (f) *1]"), "[2 [2 2] #'f]");
    assert!(later.eval("1").is_success());
    later.undo().unwrap();
    later.undo().unwrap();
    later.undo().unwrap_err();
}

#[test]
fn a_name_of_a_built_in_is_its_own_again_when_its_definition_is_taken_back() {
    let mut session = session(Limits::default());
    text(&mut session, "(def count 7)");
    assert_eq!(text(&mut session, "count"), "7");
    session.undo().unwrap();
    session.undo().unwrap();
    assert_eq!(text(&mut session, "(count [1 2])"), "2");
    session.eval("(def first 1) (/ 1 0)");
    assert_eq!(text(&mut session, "(first [4])"), "4");
}

#[test]
fn what_it_takes_to_undo_gives_way_to_a_program_that_needs_the_room() {
    let mut session = session(Limits::default().with_heap_bytes(1_000_000));
    text(&mut session, "(def rows (vec (range 20000)))");
    text(&mut session, "(def rows nil)");
    text(&mut session, "(def rows (vec (range 20000 40000)))");
    assert_eq!(text(&mut session, "(def rows (mapv inc rows)) (count rows)"), "20000");
    assert_eq!(text(&mut session, "(def more (mapv inc rows)) (first more)"), "20002");
    session.undo().unwrap();
    let error = loop {
        if let Err(problem) = session.undo() {
            break problem.error;
        }
    };
    assert!(error.message.contains("dropped when a program needed the memory"), "{}", error.message);
}

#[test]
fn programs_that_no_function_needs_are_forgotten() {
    let limits = Limits::default().with_session_programs(30).with_session_undo(2);
    let mut session = session(limits);
    text(&mut session, "(def kept \"a constant of the first turn\") (def rows [{:a 1 :b [1 2]} {:a 2 :b #{3}}])");
    text(
        &mut session,
        "(def tail (rest [:x :y :z])) (def part (subs \"0123456789\" 2 5)) (def nested {:k {:deep [1 [2 [3]]]}})",
    );
    text(&mut session, "(defn early [x] [x :early \"text\" #\"a+\"])");
    for n in 0..500 {
        let define =
            format!("(def f (fn [x] [x {n} \"constant {n}\"])) (def last {{:n {n} :s \"s{n}\" :v [{n}]}}) last");
        assert_eq!(text(&mut session, &define), format!("{{:n {n} :s \"s{n}\" :v [{n}]}}"));
        assert_eq!(text(&mut session, "(f 1)"), format!("[1 {n} \"constant {n}\"]"));
        if n % 50 == 0 {
            session.undo().unwrap();
            assert_eq!(
                text(&mut session, "[(f 1) kept tail part (:n last)]"),
                format!("[[1 {n} \"constant {n}\"] \"a constant of the first turn\" [:y :z] \"234\" {n}]")
            );
        }
    }
    assert_eq!(
        text(&mut session, "[kept rows tail part nested (early 1)]"),
        "[\"a constant of the first turn\" [{:a 1 :b [1 2]} {:a 2 :b #{3}}] [:y :z] \"234\" {:k {:deep [1 [2 [3]]]}} [1 :early \"text\" #\"a+\"]]"
    );
    let saved = session.save().unwrap();
    assert_eq!(saved.lines().filter(|line| line.starts_with("program ")).count(), 2, "{saved}");
    // Names of turns that failed are no burden either.
    for n in 0..3_000 {
        assert!(!session.eval(&format!("(def name{n} 1) (/ 1 0)")).is_success());
    }
    assert_eq!(session.names(), ["early", "f", "kept", "last", "nested", "part", "rows", "tail"]);
    assert_eq!(text(&mut session, "(f 2)"), "[2 499 \"constant 499\"]");
}

/// What is held of data and of constants when a program is forgotten: views of data stay views, and constants come on the account.
#[test]
fn what_is_held_when_programs_are_forgotten_fits() {
    let rows: Vec<i64> = (0..20_000).collect();
    let engine = Engine::builder()
        .limits(Limits::default().with_heap_bytes(150_000).with_setup_heap_bytes(4_000_000).with_session_undo(0))
        .build()
        .unwrap();
    let mut session = engine.session(Input::new().data("rows", &rows));
    text(&mut session, "(def tail (rest data/rows)) (def part (rest (rest [[1] [2] [3] {:k [4]}])))");
    let words = (0..5_000).map(|n| format!("\"word {n}\"")).collect::<Vec<_>>().join(" ");
    text(&mut session, &format!("(def words [{words}]) (def some-words (rest words))"));
    for n in 0..100 {
        assert_eq!(
            text(&mut session, &format!("(def n {n}) [(count tail) (count some-words) part n]")),
            format!("[19999 4999 [[3] {{:k [4]}}] {n}]")
        );
    }
    assert_eq!(
        text(&mut session, "[(first tail) (last some-words) (conj part 5)]"),
        "[1 \"word 4999\" [[3] {:k [4]} 5]]"
    );
    text(&mut session, "(def words nil) (def some-words nil)");
    assert_eq!(text(&mut session, "(reduce + tail)"), "199990000");
}

#[test]
fn ceilings_of_a_session_name_themselves() {
    let limits = Limits::default().with_session_programs(12).with_session_definitions(11).with_session_undo(0);
    let mut session = session(limits);
    let mut turn = 0;
    let outcome = loop {
        turn += 1;
        let outcome = session.eval(&format!("(defn f{turn} [] {turn})"));
        if !outcome.is_success() {
            break outcome;
        }
    };
    assert_eq!(turn, 12);
    let error = &problem(&outcome).error;
    assert_eq!(error.reason, Reason::SessionLimitExceeded);
    assert_eq!(error.message, "the session would have 12 definitions; the limit session_definitions is 11");
    assert!(error.hint.as_deref().unwrap().contains("raise the limit session_definitions"));
    assert_eq!(text(&mut session, "(f11)"), "11");
    assert_eq!(session.names().len(), 11);

    let outcome = session.eval("(def f1 (fn [] 0)) (def f2 [(fn [] 0)])");
    assert!(outcome.is_success(), "{:?}", outcome.problem());
    text(&mut session, "(def f3 [f3 (fn [] 1)])");
    text(&mut session, "(def f3 [f3 (fn [] 1)])");
    let outcome = session.eval("(def f3 [f3 (fn [] 1)])");
    let error = &problem(&outcome).error;
    assert_eq!(
        error.message,
        "the session would keep 13 programs for the functions of its definitions; the limit session_programs is 12"
    );
    assert!(error.hint.as_deref().unwrap().contains("raise the limit session_programs"));
    // Only a turn that takes something back would go on: it is a program too.
    let wide = Engine::builder().limits(Limits::default().with_session_programs(13)).build().unwrap();
    let mut wide = wide.load_session(&session.save().unwrap(), Input::new()).unwrap();
    text(&mut wide, "(def f3 nil)");

    let limits = Limits::default().with_session_program_bytes(20_000);
    let mut session = Engine::builder().limits(limits).build().unwrap().session(Input::new());
    let long = "x".repeat(9_000);
    text(&mut session, &format!("(defn a [] \"{long}\")"));
    let outcome = session.eval(&format!("(defn b [] \"{long}\")"));
    let error = &problem(&outcome).error;
    assert_eq!(error.reason, Reason::SessionLimitExceeded);
    assert!(error.message.contains("the limit session_program_bytes is 20000"), "{}", error.message);
    assert_eq!(text(&mut session, "(count (a))"), "9000");
}

/// Source of an expression whose value can be compared by its text.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("nil".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|f| if f.is_finite() { format!("{f:?}") } else { "(/ 0.0 0.0)".to_owned() }),
        (any::<i64>(), any::<i64>()).prop_map(|(a, b)| format!("(* {a} {b} {a} {b})")),
        "[a-z][a-z0-9-]{0,6}".prop_map(|k| format!(":{k}")),
        "[ -~éß🎉\n\t]{0,70}".prop_map(|s| format!("\"{}\"", s.replace('\\', "\\\\").replace('"', "\\\""))),
        (0i64..1_000_000).prop_map(|days| format!("(LocalDate/ofEpochDay {days})")),
        (-9_999_999i64..9_999_999).prop_map(|ms| format!("(Duration/ofMillis {ms})")),
        any::<i32>().prop_map(|ms| format!("(java.util.Date. {ms})")),
        Just("(map inc (range))".to_owned()).prop_map(|s| format!("(vec (take 3 {s}))")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(|all| format!("[{}]", all.join(" "))),
            prop::collection::vec(inner.clone(), 0..6).prop_map(|all| format!("(set [{}])", all.join(" "))),
            prop::collection::vec((inner.clone(), inner.clone()), 0..24).prop_map(|all| {
                format!("(into {{}} [{}])", all.iter().map(|(k, v)| format!("[{k} {v}]")).collect::<Vec<_>>().join(" "))
            }),
            inner.clone().prop_map(|x| format!("(rest [1 {x} 2])")),
            inner.clone().prop_map(|x| format!("((let [n {x}] (fn [] [n n])))")),
            inner.prop_map(|x| format!("((partial vector {x}) 1)")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn generated_definitions_survive(all in prop::collection::vec(expression(), 1..8), hold in any::<bool>()) {
        let mut session = session(Limits::default());
        for (n, source) in all.iter().enumerate() {
            // As a value, as what a function captured, and as what it computes.
            let program = match hold {
                true => format!("(def d{n} (let [v {source}] (fn [] v)))"),
                false => format!("(def d{n} {source}) (defn f{n} [] [d{n} {source}])"),
            };
            prop_assert!(session.eval(&program).is_success(), "{program}");
        }
        let ask: Vec<String> = (0..all.len()).map(|n| if hold { format!("(d{n})") } else { format!("d{n} (f{n})") }).collect();
        let ask = format!("(str [{}])", ask.join(" "));
        let saved = session.save().unwrap();
        let mut later = Engine::default().load_session(&saved, Input::new()).unwrap();
        prop_assert_eq!(session.eval(&ask).text().map(str::to_owned), later.eval(&ask).text().map(str::to_owned));
        later.undo().unwrap();
        // But for the number of turns in the first line.
        let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(lines(&later.save().unwrap()), lines(&saved));
    }

    #[test]
    fn mutated_texts_never_panic(at in any::<prop::sample::Index>(), with in "[ -~\n@\"]{0,4}", cut in 0usize..6) {
        let mut session = session(Limits::default());
        session.eval("(def a (let [n [1 2]] (fn [x] [x n]))) (def b {:k #{1 \"two\"}}) (def c (comp inc (partial + 1)))");
        session.eval("(def d (drop 3 (map inc (cycle [1 2 3])))) (def e (comp (take 2) (partition-all 2)))");
        let saved = session.save().unwrap();
        let at = at.index(saved.len());
        let mutated = format!("{}{with}{}", &saved[..at], &saved[(at + cut).min(saved.len())..]);
        if let Ok(mut later) = Engine::default().load_session(&mutated, Input::new()) {
            // What it loads as is of no matter: using it ends in a value or an error.
            for program in ["(a 1)", "[b (c 1)]", "(take 3 d)", "(into [] e (range 5))", "(str a b c d e)"] {
                later.eval(program);
            }
            let _ = later.save();
        }
    }
}
