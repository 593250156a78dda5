//! Where errors are said to be: line and column, and the text that they are of.

use lisp_runtime::outcome::{Call, Position};
use lisp_runtime::{Cancel, Engine, Input, Limits, Outcome, Problem, Progress, Reason, Tool, ToolError};
use std::time::Duration;

/// A program, and the place in it that stands between `«` and `»`.
fn marked(text: &str) -> (String, [u32; 4]) {
    let (mut program, mut place, mut line, mut column) = (String::new(), Vec::new(), 1, 1);
    for c in text.chars() {
        match c {
            '«' | '»' => place.extend([line, column]),
            c => {
                program.push(c);
                (line, column) = if c == '\n' { (line + 1, 1) } else { (line, column + 1) };
            }
        }
    }
    (program, place.try_into().expect("one marked place"))
}

fn numbers(at: Position) -> [u32; 4] {
    [at.line, at.column, at.end_line, at.end_column]
}

fn problem(outcome: &Outcome) -> &Problem {
    outcome.problem().expect("a problem")
}

fn place(outcome: &Outcome) -> [u32; 4] {
    problem(outcome).position.map_or([0; 4], numbers)
}

/// A call on the way: the function, the text (`p`, `s0`, `t2`), line and column.
fn way(calls: &[Call]) -> Vec<String> {
    let text = |call: &Call| match (call.setup, call.turn) {
        (Some(setup), _) => format!("s{setup}"),
        (None, Some(turn)) => format!("t{turn}"),
        (None, None) => "p".to_owned(),
    };
    let name = |call: &Call| call.function.clone().unwrap_or_else(|| "?".to_owned());
    calls.iter().map(|c| format!("{} {} {}:{}", name(c), text(c), c.position.line, c.position.column)).collect()
}

fn engine() -> Engine {
    let slow = |_: &lisp_runtime::ToolCall| {
        std::thread::sleep(Duration::from_secs(3));
        Ok(1)
    };
    Engine::builder()
        .limits(Limits::default().with_tool_calls(2).with_heap_bytes(500_000).with_timeout_ms(2_000))
        .tool("bad", |_| Err::<(), _>(ToolError::new("it is bad")))
        .tool("panics", |_| -> Result<(), ToolError> { panic!("no way") })
        .tool("args", |call| call.get::<i64>("n"))
        .grant(Tool::new("shape", |_| Ok("text")).signature("(a :int?) -> :int"))
        .tool("big", |_| Ok(vec![0; 100_000]))
        .tool("ok", |_| Ok(1))
        .grant(Tool::new("slow", slow).detached())
        .build()
        .expect("an engine")
}

/// A call of a tool that fails is where the call stands, whatever stands behind it.
#[test]
fn a_failed_tool_call_is_where_it_stands() {
    let engine = engine();
    for (text, reason) in [
        ("«(tool/bad {})»\n\n(+ 1 2)", Reason::ToolError),
        ("«(tool/panics)»\n\n(+ 1 2)", Reason::ToolError),
        ("(let [x \"é\"]\n  (str x) «(tool/bad {:e x})»\n  (inc x))", Reason::ToolError),
        ("[1 «(tool/args {:m 1})» (+ 1 2)]", Reason::InvalidToolArgs),
        ("[1 «(tool/shape {:b 1})» (+ 1 2)]", Reason::InvalidToolArgs),
        ("[1 «(tool/shape 5)» (+ 1 2)]", Reason::InvalidToolArgs),
        ("[1 «(tool/shape {})» (+ 1 2)]", Reason::ToolError),
        ("(do\n «(tool/big)»)\n(+ 1 2)", Reason::MemoryExceeded),
        ("(tool/ok) (tool/ok) «(tool/ok)»\n(+ 1 2)", Reason::ToolCallLimitExceeded),
        ("(inc «(tool/slow)»)\n(+ 1 2)", Reason::Timeout),
        ("(defn f [x]\n  «(tool/bad {:x x})»)\n(f 1)", Reason::ToolError),
        ("«(map tool/bad [{}])»\n(+ 1 2)", Reason::ToolError),
        ("«(pmap tool/bad [{}])»\n(+ 1 2)", Reason::PmapError),
        ("(pmap «#(tool/bad {:x %})» [1])\n(+ 1 2)", Reason::PmapError),
        ("«(apply tool/bad [{}])» 1", Reason::ToolError),
        ("(println 1)\n«(tool/bad {:x (inc 1)})»", Reason::ToolError),
        // What is no call of a tool.
        ("(tool/ok)\n(inc «(+ 1 nil)»)", Reason::TypeError),
        ("(tool/ok) «(nth 5 (tool/ok))»\n(+ 1 2)", Reason::TypeError),
    ] {
        let (program, wanted) = marked(text);
        let outcome = engine.eval(&program, Input::new());
        assert_eq!(problem(&outcome).reason(), reason, "{program}: {}", problem(&outcome));
        assert_eq!(place(&outcome), wanted, "{program}: {}", problem(&outcome));
    }
}

#[test]
fn a_failed_call_of_a_run_driven_step_by_step_is_where_it_stands() {
    let engine = Engine::builder().grant(Tool::external("ask")).build().expect("an engine");
    let (program, wanted) = marked("[(tool/ask {})\n «(tool/ask {:n 2})»\n 3]");
    let program = engine.compile(&program).expect("a program");
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new()) else { panic!("a call") };
    let Progress::ToolCall(waiting) = waiting.reply(&1) else { panic!("another call") };
    let Progress::Done(outcome) = waiting.fail(ToolError::new("no")) else { panic!("the end") };
    assert_eq!(place(&outcome), wanted);
    // A run that is cancelled, or late, while it waits.
    let cancel = Cancel::new();
    let Progress::ToolCall(waiting) = engine.start(&program, Input::new().cancel_with(&cancel)) else {
        panic!("a call")
    };
    let Progress::ToolCall(waiting) = waiting.reply(&1) else { panic!("another call") };
    cancel.cancel();
    let Progress::Done(outcome) = waiting.poll() else { panic!("the end") };
    assert_eq!((problem(&outcome).reason(), place(&outcome)), (Reason::Cancelled, wanted));
}

#[test]
fn an_error_in_a_function_of_an_earlier_turn_is_in_the_text_of_that_turn() {
    let mut session = engine().session(Input::new());
    assert!(session.eval("1").is_success());
    assert!(session.eval("(nope)").problem().is_some(), "a turn that cannot be loaded counts as a turn");
    let (text, wanted) = marked("(defn bad [x]\n  (let [y (* x 2)]\n    «(+ y \"a\")»))");
    assert!(session.eval(&text).is_success());
    let outcome = session.eval("(println \"a long text that is certainly longer than the function\") (bad 3)");
    assert_eq!((place(&outcome), problem(&outcome).turn, problem(&outcome).setup), (wanted, Some(3), None));
    assert_eq!(way(&problem(&outcome).calls), ["bad p 1:68"]);
    assert!(problem(&outcome).to_string().ends_with("(turn 3, line 3, column 5)"), "{}", problem(&outcome));
    assert!(session.eval("(defn worse [x]\n\n (bad x))").is_success());
    let outcome = session.eval("(map worse [1 2])");
    assert_eq!((place(&outcome), problem(&outcome).turn), (wanted, Some(3)));
    assert_eq!(way(&problem(&outcome).calls), ["bad t5 3:2", "worse p 1:1"]);
    // Errors of the turn itself are of no other.
    let outcome = session.eval("\n(+ 1 nil)");
    assert_eq!((place(&outcome), problem(&outcome).turn), ([2, 1, 2, 10], None));
    // Tools and workers too.
    let (text, wanted) = marked("(defn ask []\n  «(tool/bad {})»)");
    assert!(session.eval(&text).is_success());
    let outcome = session.eval("(pmap (fn [_]\n (ask)) [1])");
    assert_eq!((place(&outcome), problem(&outcome).turn), (wanted, Some(8)));
    assert_eq!(way(&problem(&outcome).calls), ["ask p 2:2", "? p 1:1"]);
}

#[test]
fn an_error_in_a_function_of_a_set_up_program_is_in_that_program() {
    let engine = engine();
    let (text, wanted) = marked("(defn h [x]\n\n «(inc x)»)");
    let setup = |text: &str| engine.compile(text).expect("a program");
    let input = Input::new().setup(&setup("(defn g [f x] (f x))")).setup(&setup(&text));
    let outcome = engine.eval("(h nil)", input.clone());
    assert_eq!((place(&outcome), problem(&outcome).setup, problem(&outcome).turn), (wanted, Some(1), None));
    assert_eq!(way(&problem(&outcome).calls), ["h p 1:1"]);
    let outcome = engine.eval("[1\n (g h nil)]", input.clone());
    assert_eq!(way(&problem(&outcome).calls), ["h s0 1:15", "g p 2:2"]);
    // In the second set-up program, by a function of the first.
    let broken = engine.eval("1", Input::new().setup(&setup(&text)).setup(&setup("\n(h nil)")));
    assert_eq!((place(&broken), problem(&broken).setup), (wanted, Some(0)));
    assert_eq!(way(&problem(&broken).calls), ["h s1 2:1"]);
    let mut session = engine.session(input);
    let outcome = session.eval("(h nil)");
    assert_eq!((place(&outcome), problem(&outcome).setup, problem(&outcome).turn), (wanted, Some(1), None));
    let missing = engine.eval("1", Input::new().setup(&setup("1")).setup(&setup("(tool/nope)")));
    assert_eq!((place(&missing), problem(&missing).setup), ([1, 2, 1, 11], Some(1)));
}

#[test]
fn of_very_many_calls_the_innermost_and_the_outermost_are_shown() {
    let outcome = engine().eval("(defn f [n] (if (zero? n) (inc nil) (inc (f (dec n)))))\n(f 500)", Input::new());
    let calls = way(&problem(&outcome).calls);
    assert_eq!((calls.len(), calls[0].as_str(), calls[7].as_str()), (8, "f p 1:42", "? p 2:1"));
    let straight = engine().eval("(inc nil)", Input::new());
    assert!(problem(&straight).calls.is_empty());
}

#[test]
fn the_element_that_a_function_was_called_for_is_said() {
    let elements = |calls: &[Call]| {
        let said = |call: &Call| call.element.as_ref().map_or_else(String::new, |element| format!(", {element}"));
        way(calls).into_iter().zip(calls).map(|(way, call)| way + &said(call)).collect::<Vec<_>>()
    };
    for (text, wanted) in [
        ("(map inc [1 2 \"a\"])", &["inc p 1:1, in map, element 2"][..]),
        ("(mapv #(inc %) [1 2 \"a\"])", &["? p 1:1, in map, element 2"]),
        (
            "(defn half [x] (/ x 0))\n(reduce (fn [a x] (+ a (half x))) 0 [1])",
            &["half p 2:24", "? p 2:1, in reduce, element 0"],
        ),
        ("(reduce + [1 2 nil])", &["+ p 1:1, in reduce, element 2"]),
        ("(reduce-kv (fn [a k v] (+ a v)) 0 {:a 1 :b nil})", &["? p 1:1, in reduce-kv, element 1"]),
        (
            "(filter (fn [x] (some #(> % 1) x)) [[1] [1 \"a\"]])",
            &["? p 1:17, in some, element 1", "? p 1:1, in filter, element 1"],
        ),
        ("(update-vals {:a 1 :b nil} inc)", &["inc p 1:1, in update-vals, element 1"]),
        ("(group-by #(+ % 1) [1 nil])", &["? p 1:1, in group-by, element 1"]),
        ("(map tool/bad [{} {}])", &["? p 1:1, in map, element 0"]),
        // There is none where nothing is gone through, or nothing is left.
        ("(map inc 1)", &[]),
        ("((fn [x] (inc x)) nil)", &["? p 1:1"]),
    ] {
        let outcome = engine().eval(text, Input::new());
        assert_eq!(elements(&problem(&outcome).calls), wanted, "{text}");
    }
}

#[test]
fn the_values_of_the_locals_are_shown() {
    let shown = |engine: &Engine, text: &str| {
        let outcome = engine.eval(text, Input::new());
        problem(&outcome).locals.iter().map(|local| format!("{} {}", local.name, local.value)).collect::<Vec<_>>()
    };
    for (text, wanted) in [
        ("(inc nil)", &[][..]),
        ("(let [a 1 b [a nil]] (inc b) a)", &["a 1", "b [1 nil]"]),
        // Neither what is not bound yet, nor what is bound no more, nor what is never read.
        ("(let [a 1 b (let [c 2] (inc c)) unused 3 d (inc (str a)) e 4] (+ a b d e))", &["a 1", "b 3"]),
        (
            "(defn f [n & {:keys [k] :or {k :none} :as more}] (/ n 0) [k more])\n(f 1 :k \"v\")",
            &["n 1", "more {:k \"v\"}", "k \"v\""],
        ),
        ("(let [x 1] (let [x (str x)] (inc x)))", &["x \"1\""]),
        ("(let [x 1] (let [x \"inner\"] x) (+ x nil))", &["x 1"]),
        ("(let [x 1 y x] (let [z x] z) (+ x y nil))", &["x 1", "y 1"]),
        // Captured, a placeholder, the parameters of a loop, the element of a `for`.
        ("(let [k 3] (map #(+ % k) [1 \"a\"]))", &["k 3", "% \"a\""]),
        ("(loop [i 0 acc []] (if (< i 3) (recur (inc i) (conj acc i)) (inc acc)))", &["i 3", "acc [0 1 2]"]),
        ("(for [x [1 2] :let [y (* x 2)]] (if (= x 2) (inc (str y)) x))", &["x 2", "y 4"]),
        ("(let [n 7] (pmap (fn [x] (/ x (- n 7))) [1]))", &["n 7", "x 1"]),
        ("(let [n 7] (tool/bad {:n n}))", &["n 7"]),
        // Functions are no values to look at; of very many names those bound last are shown.
        ("(let [f inc g (fn [] 1) s (f (g))] (+ s nil))", &["s 2"]),
        (
            "(let [a 1 b a c b d c e d f e g f h g i h] (+ i nil a b c d e f g h))",
            &["b 1", "c 1", "d 1", "e 1", "f 1", "g 1", "h 1", "i 1"],
        ),
        ("(let [all (zipmap (range 50000) (range))] (+ 1 all))", &["all a large map"]),
        ("(let [t (apply str (repeat 500 \"ab\"))] (inc t))", &[&format!("t \"{}…\"", "ab".repeat(58) + "a")]),
        // What was caught and thrown on is shown where it has its place.
        ("(let [a 1] (try (+ a nil) (catch Exception e (throw e))))", &[]),
        ("(let [a 1] (try (+ a nil) (catch Exception e (+ a (ex-message e)))))", &["a 1", "e"]),
    ] {
        let engine = Engine::builder().tool("bad", |_| Err::<(), _>(ToolError::new("it is bad"))).build();
        let mut wanted: Vec<String> = wanted.iter().map(|&wanted| wanted.to_owned()).collect();
        let mut seen = shown(&engine.expect("an engine"), text);
        if wanted.last().is_some_and(|last| last == "e") {
            wanted.pop();
            seen.pop();
        }
        assert_eq!(seen, wanted, "{text}");
    }
    // The same at a limit; nothing of it costs fuel.
    let spin = "(let [a 1] (loop [i 0] (if (< i 100000) (recur (+ i a)) i)))";
    let few = Engine::builder().limits(Limits::default().with_fuel(1_000).with_loop_iterations(0)).build();
    let few = few.expect("an engine");
    assert_eq!(shown(&few, spin)[0], "a 1");
    assert_eq!(few.eval(spin, Input::new()).usage.fuel, 1_000);
    // A tool with a secret keeps all of them out.
    let secret = Tool::new("login", |_| Ok(1)).redact(["password"]);
    let silent = Engine::builder().grant(secret).build().expect("an engine");
    assert_eq!(shown(&silent, "(let [a 1] (tool/login {:password a}) (+ a nil))"), [""; 0]);
}

#[test]
fn what_else_is_wrong_in_a_program_is_told() {
    let told = |text: &str| {
        let outcome = engine().eval(text, Input::new());
        let problem = problem(&outcome).clone();
        let first = (problem.reason(), problem.position.map_or([0; 4], numbers));
        let more = problem.more.iter().map(|more| (more.error.reason, more.position.map_or([0; 4], numbers)));
        std::iter::once(first)
            .chain(more)
            .map(|(reason, at)| format!("{reason} {}:{}", at[0], at[1]))
            .collect::<Vec<_>>()
    };
    assert_eq!(told("(foo 1)\n(bar (baz 2)) (foo 2)"), ["unbound_var 1:2", "unbound_var 2:2", "unbound_var 2:7"]);
    assert_eq!(
        told("(defn f [x] (let [a] a))\n(if) (f 1) #(%1 #(%2)) (fn [x] (recur 1 2))\n(+ 1 1)"),
        ["invalid_form 1:18", "invalid_arity 2:1", "invalid_form 2:17", "arity_mismatch 2:32"]
    );
    assert_eq!(told("(tool/nope)\n(tool/ok) (tool/neither)"), ["unknown_tool 1:2", "unknown_tool 2:12"]);
    // No more than ten; and what cannot be read has one error.
    assert_eq!(told(&"(if) ".repeat(30)).len(), 10);
    let many: Vec<String> = (0..30).map(|i| format!("(no{i})")).collect();
    assert_eq!(told(&many.concat()).len(), 10);
    assert_eq!(told("(if) (").len(), 1);
    // What a name is taken for is defined.
    let outcome = engine().eval("(defn total [] 1) (totl) (totall)", Input::new());
    let hints = [&problem(&outcome).error, &problem(&outcome).more[0].error].map(|error| error.hint.clone());
    assert_eq!(hints.map(|hint| hint.is_some_and(|hint| hint.contains("did you mean total?"))), [true; 2]);
}
