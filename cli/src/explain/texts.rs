//! Explanations of the error reasons and of the kinds of warnings, in the order of their lists.

use lisp_runtime::Reason;
use lisp_runtime::outcome::WarningKind;

/// The subject of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A reason of an error.
    Error(Reason),
    /// A kind of warning.
    Warning(WarningKind),
}

impl Subject {
    /// Returns the name that answers use.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Subject::Error(reason) => reason.name(),
            Subject::Warning(kind) => kind.name(),
        }
    }
}

/// The explanation of a reason or a kind.
#[derive(Debug)]
pub(super) struct Explanation {
    pub(super) of: Subject,
    pub(super) means: &'static str,
    pub(super) why: &'static str,
    pub(super) mend: &'static str,
    pub(super) example: Example,
}

/// What causes the error or the warning.
#[derive(Clone, Copy, Debug)]
pub(super) enum Example {
    /// A program that ends with it, under limits if needed, and a corrected program.
    Program { wrong: &'static str, limits: &'static str, right: &'static str },
    /// A description, for errors that only a host can cause.
    Words(&'static str),
}

const fn program(wrong: &'static str, right: &'static str) -> Example {
    Example::Program { wrong, limits: "", right }
}

const fn limited(wrong: &'static str, limits: &'static str, right: &'static str) -> Example {
    Example::Program { wrong, limits, right }
}

const fn explain(
    reason: Reason,
    means: &'static str,
    why: &'static str,
    mend: &'static str,
    example: Example,
) -> Explanation {
    Explanation { of: Subject::Error(reason), means, why, mend, example }
}

const fn warn(
    kind: WarningKind,
    means: &'static str,
    why: &'static str,
    mend: &'static str,
    example: Example,
) -> Explanation {
    Explanation { of: Subject::Warning(kind), means, why, mend, example }
}

/// An explanation for every reason.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    explain(
        Reason::ParseError,
        "The text cannot be read.",
        "A bracket or a string is not closed, a bracket closes another kind than the one that is open, a map has a key without a value, \
        or there is a character that cannot start anything.",
        "Look at the position that the error shows; for an unclosed bracket that is where it opens. ptcl check FILE checks a program without \
        running it.",
        program("(+ 1 2", "(+ 1 2)"),
    ),
    explain(
        Reason::InvalidForm,
        "A special form has the wrong syntax.",
        "let, loop, fn, defn, for, case and others take their parts in a fixed order: a vector of names and values, a vector of \
        parameters, a body. One of them is missing or is something else.",
        "ptcl doc NAME shows how the form is written.",
        program("(let [a 1 b] a)", "(let [a 1 b 2] (+ a b))"),
    ),
    explain(
        Reason::InvalidArity,
        "A special form has too many or too few parts.",
        "if takes a test and one or two results, def a name and a value; this one has more or fewer.",
        "Put several expressions into one with (do ...), or use when or cond. ptcl doc NAME shows how the form is written.",
        program("(if true 1 2 3)", "(if true (do 1 2) 3)"),
    ),
    explain(
        Reason::InvalidPlaceholder,
        "A placeholder such as % or %1 is outside of #(), or its number is not from 1 to 20.",
        "Placeholders are the arguments of a short function: this one is outside of any, or the function has no such argument.",
        "Write #(...) around the whole call, or a function with names: (fn [x] ...).",
        program("(map (inc %) [1 2])", "(map #(inc %) [1 2])"),
    ),
    explain(
        Reason::InvalidThreadForm,
        "A threading form such as -> or ->> has the wrong syntax.",
        "There is no value to start with, a step is (), the name of as-> is a pattern, or the last test of cond-> has no step.",
        "Start with the value, and write each step as a call without it: (-> value (f 1) g).",
        program("(->)", "(-> [1 2 3] (conj 4) count)"),
    ),
    explain(
        Reason::InvalidCondForm,
        "cond has a test without a result.",
        "cond takes tests and results in turn, and their number is odd.",
        "Give the last test a result; write the default as :else.",
        program("(cond (> 1 2) :a :b)", "(cond (> 1 2) :a :else :b)"),
    ),
    explain(
        Reason::InvalidKeywordCall,
        "A keyword is called with a number of arguments that it does not take.",
        "A keyword looks itself up in a map: it takes the map and, optionally, a default.",
        "Write (:key map) or (:key map default).",
        program("(:a)", "(:a {:a 1})"),
    ),
    explain(
        Reason::UnsupportedPattern,
        "A destructuring pattern of an unknown kind.",
        "A binding takes a name, a vector of patterns, or a map of patterns with :keys, :strs, :or and :as; \
        this is something else.",
        "Bind the value to a name and destructure it in the body.",
        program("(let [(a b) [1 2]] a)", "(let [[a b] [1 2]] a)"),
    ),
    explain(
        Reason::DuplicateKey,
        "A literal map or set has the same key twice.",
        "One of the two values would be lost silently.",
        "Remove one of them, or build the map with assoc or merge when the later value is meant to win.",
        program("{:a 1 :a 2}", "(assoc {:a 1} :a 2)"),
    ),
    explain(
        Reason::ProgramTooLarge,
        "The source is longer than the limit program_bytes.",
        "Usually because the program contains its data.",
        "Pass the data separately and read it as data/NAME (ptcl run --data FILE), or have the host raise program_bytes.",
        limited("(+ 1 2 3 4)", "program_bytes=10", "(+ 1 2)"),
    ),
    explain(
        Reason::SymbolLimitExceeded,
        "The source has more distinct symbols and keywords than the limit symbols.",
        "Usually because the program contains its data, with a keyword for each row.",
        "Pass the data separately and read it as data/NAME, use strings as keys, or have the host raise symbols.",
        limited("[:a :b :c]", "symbols=2", "[\"a\" \"b\" \"c\"]"),
    ),
    explain(
        Reason::UnboundVar,
        "A name is not defined.",
        "The name is misspelt, is defined further down, or exists in Clojure only. All names are resolved before \
        anything runs, also those in a branch that is never taken.",
        "The hint names similar names, or what to write instead. Define a function before you use it, or declare it with declare.",
        program("(fliter odd? [1 2 3])", "(filter odd? [1 2 3])"),
    ),
    explain(
        Reason::TypeError,
        "A value of the wrong type.",
        "A function got a value that it does not accept. Very often it is nil, from a missing key.",
        "Check where the value comes from; (or x 0) or a default for get replaces nil.",
        program("(count 5)", "(count [5])"),
    ),
    explain(
        Reason::ArithmeticError,
        "A number that the operation does not accept.",
        "A divisor is zero, or an integer would have too many digits.",
        "Test the divisor first, and use floats for very large numbers.",
        program("(/ 1 0)", "(let [n 0] (if (zero? n) 0 (/ 1 n)))"),
    ),
    explain(
        Reason::ArityError,
        "A built-in function is called with the wrong number of arguments.",
        "There are too many or too few arguments, often because a bracket closes too early or too late.",
        "ptcl doc NAME shows how the function is called.",
        program("(count)", "(count [1 2])"),
    ),
    explain(
        Reason::ArityMismatch,
        "A function of the program is called with the wrong number of arguments.",
        "Its parameters and the arguments of the call differ in number. map over two collections passes two arguments, reduce passes two.",
        "Change the call or the parameters; & more accepts any number of further arguments.",
        program("((fn [a b] a) 1)", "((fn [a & more] a) 1)"),
    ),
    explain(
        Reason::NotCallable,
        "A value that is not a function is called.",
        "The first form in parentheses is called; here it is a number, a string, a boolean or nil, or a vector without that index. Often there is one \
        pair of parentheses too many.",
        "Remove the parentheses, or write a vector: [1 2 3]. Functions, keywords, maps, sets and vectors can be called.",
        program("(1 2 3)", "[1 2 3]"),
    ),
    explain(
        Reason::DestructureError,
        "A destructuring pattern does not match its value.",
        "A vector pattern needs a sequence and a map pattern needs a map; the value is something else.",
        "Print the type with (println (type x)), or bind the value to a name.",
        program("(let [[a b] 5] a)", "(let [[a b] [5 6]] a)"),
    ),
    explain(
        Reason::RuntimeError,
        "Any other error while the program runs.",
        "Usually a built-in function called by map, update and others does not accept an element, such as nil.",
        "The message says what was expected.",
        program("(map name [1])", "(map str [1])"),
    ),
    explain(
        Reason::UncaughtException,
        "An exception that the program threw and did not catch.",
        "(throw ...) was evaluated, and no catch around it handles it.",
        "Catch it where the program can continue, or end with (fail value), which is not an error.",
        program(
            "(throw (ex-info \"no stock\" {:sku 1}))",
            "(try (throw (ex-info \"no stock\" {:sku 1})) (catch Exception e (ex-message e)))",
        ),
    ),
    explain(
        Reason::LoopLimitExceeded,
        "A loop or recur ran more often than the limit loop_iterations, 1,000 by default.",
        "The loop never ends, or it goes over a lot of data.",
        "Make sure that each round gets closer to the end. For data use reduce, map, for or range, which have no such limit.",
        program("(loop [i 0] (recur (inc i)))", "(reduce + (range 100000))"),
    ),
    explain(
        Reason::MemoryExceeded,
        "The program holds more memory than its budget heap_bytes.",
        "A collection grows too large, or a function calls itself too deeply.",
        "Keep only the data you need, early (filter, select-keys, take), use recur or reduce instead of deep recursion, or have the \
        host raise heap_bytes.",
        program("(defn deeper [n] (inc (deeper n))) (deeper 0)", "(reduce (fn [n _] (inc n)) 0 (range 1000))"),
    ),
    explain(
        Reason::Timeout,
        "The deadline has passed: the run took longer than timeout_ms.",
        "The program does too much, or a tool took too long. Set-up and compilation count too.",
        "Work on less data, do not go over the same data again and again (group-by once instead of filter in a loop), or have the host raise \
        timeout_ms.",
        limited(
            "(reduce + (map inc (range 10000000)))",
            "timeout_ms=20,fuel=0,heap_bytes=0",
            "(reduce + (range 1000))",
        ),
    ),
    explain(
        Reason::FuelExhausted,
        "The fuel is used up: the program did more work than the limit fuel.",
        "Fuel measures work, the same on every machine: here it was used by a lot of data, or by nested loops.",
        "Use less data or fewer passes over it, or have the host raise fuel.",
        limited("(reduce + (range 10000))", "fuel=1000", "(reduce + (range 10))"),
    ),
    explain(
        Reason::Cancelled,
        "The host cancelled the run.",
        "Ctrl-C was pressed, a client disconnected, or the service shut down.",
        "The program is fine: run it again.",
        Example::Words("Ctrl-C while ptcl run is running."),
    ),
    explain(
        Reason::ResultLimitExceeded,
        "The result, or the arguments of a tool call, are larger than the limit result_bytes.",
        "The program returns all data instead of a part or a summary.",
        "Return counts, sums or the first rows: (take 20 rows). Or have the host raise result_bytes.",
        limited("(range 1000)", "result_bytes=100", "(take 5 (range 1000))"),
    ),
    explain(
        Reason::ToolCallLimitExceeded,
        "The program called tools, or one tool, more often than it may.",
        "A tool is called for each element of a large collection, or in a loop that does not end.",
        "Call for distinct arguments only, ask the tool for many things at once, or have the host raise tool_calls or the maximum calls of \
        that tool.",
        Example::Words(
            "(map #(tool/price {:sku %}) skus), with more SKUs than the limit; (map #(tool/price {:sku %}) (distinct skus)) calls less.",
        ),
    ),
    explain(
        Reason::RecordLimitExceeded,
        "The record of the run, or a value in it, is larger than allowed.",
        "A recorded run keeps every tool result; these are too many or too large.",
        "Have tools return less, or have the host raise the limits of the record.",
        Example::Words("ptcl run --record FILE, for a program that calls a tool very often."),
    ),
    explain(
        Reason::ReplayDiverged,
        "A replayed run does something that its record does not have.",
        "The program, its data, its tools or their arguments are not those of the recorded run.",
        "Replay with the program and data of the recorded run; the message shows what the record has and what happened.",
        Example::Words("ptcl replay FILE after FILE was edited."),
    ),
    explain(
        Reason::UnknownCall,
        "A tool call had started when an earlier process of the run ended; whether it was made is unknown.",
        "Making the call again could repeat its effect, so the run stops.",
        "Find out whether it was made, and settle it in the record. For later runs, declare tools that only read as such: their calls are made \
        again.",
        Example::Words("The service was killed while a tool was sending a letter."),
    ),
    explain(
        Reason::SessionLimitExceeded,
        "A session has more definitions or programs than its limits allow, or is too large when it is saved.",
        "Each turn adds definitions, and functions keep the programs that define them.",
        "Define fewer names, or put large values into fewer names; start a new session; or have the host raise the limit that the message \
        names.",
        Example::Words("A session in which every turn defines a new name, after 1,000 of them."),
    ),
    explain(
        Reason::UnknownTool,
        "A tool that the host has not granted.",
        "The name after tool/ is misspelt, or the run has no such tool. ptcl run has no tools.",
        "The hint lists the tools of the run. A host grants tools; a request of ptcl batch may have scripted ones.",
        program("(tool/price {:sku 1})", "(get {1 9.5} 1)"),
    ),
    explain(
        Reason::ToolDenied,
        "The host's policy, or the person it asked, does not allow a call.",
        "The message says why. Nothing was done.",
        "Write a program without the call, or ask the approver. The same call will be denied again.",
        Example::Words("A policy that refuses (tool/refund {:amount 5000}) above an amount."),
    ),
    explain(
        Reason::ApprovalRequired,
        "The host's policy requires approval for a call, and this run has no approver.",
        "The run was started in a way that cannot wait for an answer: a session, a batch, a plain run.",
        "Run it where a call can be approved: as a durable run, over MCP, or in a host with approvals of its own.",
        Example::Words("A tool whose policy is \"ask\", called in a session of the service."),
    ),
    explain(
        Reason::BudgetExceeded,
        "The budget that the run shares with others is empty.",
        "All runs of a tenant share one budget of runs, fuel, calls or bytes; together they used it up.",
        "Wait until it is refilled, or have the host raise it. The program is fine.",
        Example::Words("A tenant of the service with budget = { runs = 10 }, at its eleventh run."),
    ),
    explain(
        Reason::ToolError,
        "A tool was called, and failed.",
        "The tool reported the error: what it was asked for does not exist, or something that it depends on does not work.",
        "Read the message; it comes from the tool. A program may catch the error and continue without the result.",
        Example::Words("(try (tool/price {:sku 1}) (catch Exception e nil)) is nil when the tool fails."),
    ),
    explain(
        Reason::InvalidToolArgs,
        "A tool is called with arguments that it does not accept.",
        "An argument is missing, misspelt or unknown, or has the wrong type. The tool was not called.",
        "(doc tool/NAME) prints what the tool accepts. Arguments are one map: (tool/price {:sku 1}).",
        Example::Words("(tool/price \"KB-01\") where (tool/price {:sku \"KB-01\"}) is meant."),
    ),
    explain(
        Reason::CheckFailed,
        "A check before the run found calls of tools that would fail.",
        "An argument is missing, misspelt, unknown or of the wrong type. The run did not start, so no tool was called.",
        "Write what the message says; (doc tool/NAME) prints what a tool accepts. The host decides whether such a run is refused.",
        Example::Words("(tool/price {:skuu 1}) where the tool takes :sku, in a host with Check::Refuse."),
    ),
    explain(
        Reason::ValidationError,
        "The result does not fit the signature that the host asked for.",
        "A field is missing or has another type; the message says which.",
        "Return what the signature says. ptcl run --signature TEXT tries it.",
        Example::Words("ptcl run -e '{:total \"5\"}' --signature '() -> {total :float}'; {:total 5.0} fits."),
    ),
    explain(
        Reason::ParallelCapacityExceeded,
        "pmap or pcalls are nested deeper than parallel_workers allows, 8 levels by default.",
        "Each level of nested calls holds a worker while it waits for the level inside it. The number of elements does not matter.",
        "Use pmap at the outer level, and map inside it; or have the host raise parallel_workers.",
        limited(
            "(pmap (fn [row] (pmap inc row)) [[1 2]])",
            "parallel_workers=1",
            "(pmap (fn [row] (map inc row)) [[1 2]])",
        ),
    ),
    explain(
        Reason::PmapError,
        "A worker of pmap failed.",
        "The function ended with an error for one of the elements. The message is that of the error; with --json, details.index is the index of \
        the element, from 0.",
        "Fix the function for that element, or catch the error in it.",
        program("(pmap #(/ 1 %) [1 0])", "(pmap #(if (zero? %) 0 (/ 1 %)) [1 0])"),
    ),
    explain(
        Reason::PcallsError,
        "A worker of pcalls failed.",
        "One of the functions ended with an error. The message is that of the error; with --json, details.index is the index of the function, \
        from 0.",
        "Fix that function, or catch the error in it.",
        program("(pcalls #(/ 1 0))", "(pcalls #(/ 1 2))"),
    ),
    explain(
        Reason::UnsupportedMethod,
        "An unknown Java method.",
        "The language has some methods of strings and dates, such as .length and .toUpperCase, but not this one.",
        "Use a function of the language: upper-case, subs, split, includes?. (apropos \"text\") and ptcl doc help to find one.",
        program("(.nosuch \"x\")", "(.toUpperCase \"x\")"),
    ),
    explain(
        Reason::UnsupportedJavaMember,
        "An unknown member of a Java class.",
        "The class exists here (Math, Integer, LocalDate, ...), but has no such method or constant.",
        "Use a function of the language, or another member; the hint lists them.",
        program("(Math/nosuch 1)", "(Math/abs -1)"),
    ),
    explain(
        Reason::UnsupportedJavaClass,
        "An unknown Java class.",
        "Only a few classes have members here: those of numbers, strings, dates and times.",
        "Use functions of the language instead of Java.",
        program("(java.util.UUID/randomUUID)", "(str \"row-\" 1)"),
    ),
    explain(
        Reason::JavaArityError,
        "A Java method is called with the wrong number of arguments.",
        "There are too many or too few arguments.",
        "The message says how many it takes, the object included.",
        program("(.substring \"abc\")", "(.substring \"abc\" 1)"),
    ),
    explain(
        Reason::JavaTypeError,
        "A Java method is called with a value of the wrong type.",
        "Java methods accept exactly their declared types, and never nil.",
        "Convert the value first, or use a function of the language, which usually accepts more.",
        program("(.substring \"abc\" \"1\")", "(.substring \"abc\" 1)"),
    ),
    explain(
        Reason::JavaDomainError,
        "A Java method is called with a value outside of its domain.",
        "An index is outside of the string, a month does not exist, or a string is not a number or date.",
        "Test the value first, or use a function of the language: subs never fails, parse-long returns nil.",
        program("(.substring \"abc\" 9)", "(subs \"abc\" 9)"),
    ),
    explain(
        Reason::InvalidJavaString,
        "A string that is not a valid Java string.",
        "A method counts in units of UTF-16, and cut a character in half.",
        "Use the functions of the language, which count whole characters: subs, index-of, count.",
        program("(.substring \"👍\" 1)", "(subs \"👍\" 1)"),
    ),
    explain(
        Reason::HostFault,
        "An internal error: a bug of the interpreter or of its host. It is contained: nothing else is affected.",
        "This should not happen.",
        "Please report it with the program, its input and the message. ptcl run --record FILE makes a record that repeats it.",
        Example::Words("No program should end with this."),
    ),
];

/// An explanation for every kind of warning. The tool of the examples is (tool/price (sku :string, quantity :int?) -> :float).
pub(super) const WARNINGS: &[Explanation] = &[
    warn(
        WarningKind::NullInValue,
        "A part of the value has no JSON form: it is null there, or a string if it is a key.",
        "JSON has neither NaN nor infinities. They come from divisions by 0.0, and from Math functions outside of their domain.",
        "Return nil or a string instead. `text` of an answer, and the output of ptcl run, have the exact value.",
        program("[(/ 0.0 0.0)]", "(let [x (/ 0.0 0.0)] [(if (NaN? x) nil x)])"),
    ),
    warn(
        WarningKind::NullInMemory,
        "A part of a definition has no JSON form: it is null there, or a string if it is a key.",
        "JSON has neither NaN nor infinities. Later programs get definitions as JSON, except the turns of a session, which share the values.",
        "Define nil or a string instead.",
        program("(def ratio (/ 0.0 0.0)) :done", "(def ratio (let [x (/ 0.0 0.0)] (if (NaN? x) nil x))) :done"),
    ),
    warn(
        WarningKind::CodeFence,
        "The program is in a Markdown code fence, whose lines are skipped.",
        "A model wrote the program as part of a text.",
        "Send the program without the lines of the fence.",
        program("```clojure\n(+ 1 2)\n```", "(+ 1 2)"),
    ),
    warn(
        WarningKind::DoubledBackslash,
        "A pattern literal has two backslashes where probably one is meant.",
        "A pattern literal is raw: \\\\d is a backslash and the letter d. In a string, two backslashes are needed.",
        "Write one backslash in a pattern literal.",
        program(r#"(re-seq #"\\d" "a1")"#, r#"(re-seq #"\d" "a1")"#),
    ),
    warn(
        WarningKind::UnknownKey,
        "A key is read that none of the maps here has, while they have one with a similar name; or a key is read of a list, a string or a number.",
        "The key is misspelt, so that its value is nil in silence. A check knows the keys in the data, in literals and in the results of tools.",
        "Write the key that the warning names. If the key may be absent, read both: (or (:totals row) (:total row)) has no warning. Of a list, \
        take an element, or map over it: (map :id rows).",
        program("(map :totl [{:total 9}])", "(map :total [{:total 9}])"),
    ),
    warn(
        WarningKind::NeverEqual,
        "A comparison is never true, whatever the data is.",
        "A keyword is compared with strings, or a number with strings. Data from JSON has strings, and a keyword does not equal the string of its \
        name.",
        "Write a string in place of the keyword, or convert one side: (parse-long s), (keyword s).",
        program(
            "(filter #(= (:status %) :paid) [{:status \"paid\"}])",
            "(filter #(= (:status %) \"paid\") [{:status \"paid\"}])",
        ),
    ),
    warn(
        WarningKind::UnknownArgument,
        "An argument is passed that the tool does not have.",
        "The argument is misspelt, or belongs to another tool. The call would fail with invalid_tool_args. The tool of the example is (sku :string, quantity :int?) -> :float.",
        "Write the argument that the warning names; (doc tool/NAME) prints those that a tool accepts.",
        program("(tool/price {:sku \"A1\" :quantiy 2})", "(tool/price {:sku \"A1\" :quantity 2})"),
    ),
    warn(
        WarningKind::MissingArgument,
        "A tool is called without an argument that it requires.",
        "The call would fail with invalid_tool_args. The tool of the example is (sku :string, quantity :int?) -> :float.",
        "Add the argument; (doc tool/NAME) prints those that a tool requires.",
        program("(tool/price {:quantity 2})", "(tool/price {:sku \"A1\" :quantity 2})"),
    ),
    warn(
        WarningKind::WrongArgument,
        "An argument has a type that the tool does not take.",
        "A number is passed for a string, for example. The call would fail with invalid_tool_args. The tool of the example is (sku :string, quantity :int?) -> :float.",
        "Convert the value: (str n), (parse-long s); (doc tool/NAME) prints the types.",
        program("(tool/price {:sku 7})", "(tool/price {:sku (str 7)})"),
    ),
    warn(
        WarningKind::WrongType,
        "A function gets a value of a type with which it fails.",
        "Arithmetic takes numbers, and functions of strings take strings. In some rows of the data the value is of another type, or nil. It is \
        reported only if the call always runs, for every row.",
        "Convert the value, give nil another one, or leave such rows out: (parse-double s), (or x 0), (filter (comp number? :total) rows).",
        program(
            "(let [order {:total \"7\"}] (+ 1 (:total order)))",
            "(let [order {:total \"7\"}] (+ 1 (parse-double (:total order))))",
        ),
    ),
    warn(
        WarningKind::ConstantTest,
        "A test always goes the same way.",
        "A list is true even if it is empty, and so is a function. A quotient is never an integer: / returns a float. contains? looks for an \
        element of a list, not for an index.",
        "Write what the warning names: (seq list) is nil if the list is empty.",
        program("(if (keys {}) :some :none)", "(if (seq (keys {})) :some :none)"),
    ),
    warn(
        WarningKind::FunctionResult,
        "The result of the program is a function.",
        "A function such as map was called without its list, or a function was named and not called.",
        "Call it, or pass the list.",
        program("(map :id)", "(map :id [{:id 1}])"),
    ),
    warn(
        WarningKind::UnknownData,
        "The program reads data that is not given, while other data with a similar name is.",
        "The name is misspelt, so that the data is nil in silence. The example is given data/orders.",
        "Write the name of the data that is given.",
        program("(count data/order)", "(count data/orders)"),
    ),
    warn(
        WarningKind::KeyNeverFound,
        "A key was read and never found, while the maps that it was looked up in had one with a similar name.",
        "The key is misspelt, so that its value was nil in silence. It was found out by the run: a check before it does not follow every function.",
        "Write the key that the warning names. A key that may be absent has no warning if the program also tests it, \
        or also reads the similar key, as in (or (:totals row) (:total row)).",
        program(
            "(defn f [n] (cons (:nmae n) (mapcat f (:kids n)))) (f {:name \"a\" :kids [{:name \"b\"}]})",
            "(defn f [n] (cons (:name n) (mapcat f (:kids n)))) (f {:name \"a\" :kids [{:name \"b\"}]})",
        ),
    ),
    warn(
        WarningKind::KeywordForString,
        "A keyword was compared with a string of the same name: they are not equal.",
        "Data from JSON has strings, and a keyword does not equal the string of its name. It was found out by the run: a check before it does not \
        follow every function.",
        "Write a string in place of the keyword, or convert one side: (keyword s), (name k).",
        program(
            "(defn f [s n] (if (= n 0) (= s :paid) (f s (dec n)))) (f (str \"pa\" \"id\") 2)",
            "(defn f [s n] (if (= n 0) (= s \"paid\") (f s (dec n)))) (f (str \"pa\" \"id\") 2)",
        ),
    ),
    warn(
        WarningKind::CheckIncomplete,
        "A check was not finished: the program is too much work. There may be more to find.",
        "A check follows each call of a function of the program, so that functions that call others several times, level by level, are much \
        work. What it does is bounded.",
        "Check the parts alone, or call each function in fewer places.",
        program(
            "(defn f0 [n] (fail n))\n(defn f1 [n] (f0 n) (f0 n) (f0 n) (f0 n) (f0 n) (f0 n) (f0 n) (f0 n) (f0 n) (f0 n))\n(defn f2 [n] (f1 n) (f1 n) (f1 n) (f1 n) (f1 n) (f1 n) (f1 n) (f1 n) (f1 n) (f1 n))\n(defn f3 [n] (f2 n) (f2 n) (f2 n) (f2 n) (f2 n) (f2 n) (f2 n) (f2 n) (f2 n) (f2 n))\n(defn f4 [n] (f3 n) (f3 n) (f3 n) (f3 n) (f3 n) (f3 n) (f3 n) (f3 n) (f3 n) (f3 n))\n(defn f5 [n] (f4 n) (f4 n) (f4 n) (f4 n) (f4 n) (f4 n) (f4 n) (f4 n) (f4 n) (f4 n))\n(f5 1)",
            "(defn f0 [n] (inc n))\n(defn f1 [n] (f0 (f0 n)))\n(f1 1)",
        ),
    ),
];
