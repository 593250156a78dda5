//! The reasons, in the order of their list.

use lisp_runtime::Reason;

/// What is said of a reason.
#[derive(Debug)]
pub(super) struct Explanation {
    pub(super) reason: Reason,
    pub(super) means: &'static str,
    pub(super) why: &'static str,
    pub(super) mend: &'static str,
    pub(super) example: Example,
}

/// How the error comes about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Example {
    /// A program that ends with it, under limits if any are needed, and a program that does not.
    Program { wrong: &'static str, limits: &'static str, right: &'static str },
    /// What only a host can cause.
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
    Explanation { reason, means, why, mend, example }
}

/// Every reason.
pub(super) const EXPLANATIONS: &[Explanation] = &[
    explain(
        Reason::ParseError,
        "The text cannot be read.",
        "A bracket or a string is not closed, a bracket closes another kind than the one that is open, a map has a key without a value, \
        or a character stands there that begins nothing.",
        "Look at the place that the error shows: for something open it is where that begins. ptcl check FILE reads a program without \
        running it, and ptcl fmt shows by the indentation where a bracket is missing, once the text can be read.",
        program("(+ 1 2", "(+ 1 2)"),
    ),
    explain(
        Reason::InvalidForm,
        "A special form is not written as its grammar says.",
        "let, loop, fn, defn, for, case and their like want their parts in an order: a vector of names and values, a vector of parameters, \
        a body. One is missing, or is of another kind.",
        "ptcl doc NAME shows how the form is written.",
        program("(let [a 1 b] a)", "(let [a 1 b 2] (+ a b))"),
    ),
    explain(
        Reason::InvalidArity,
        "A special form has too many or too few parts.",
        "if takes a test and one or two results, def a name and a value; there were more or fewer.",
        "Put several expressions into one with (do ...), or use when or cond. ptcl doc NAME shows how the form is written.",
        program("(if true 1 2 3)", "(if true (do 1 2) 3)"),
    ),
    explain(
        Reason::InvalidPlaceholder,
        "A placeholder such as % or %1 is outside of #(), or its number is not from 1 to 20.",
        "Placeholders are the arguments of a short function: there is none around this one, or it has no such argument.",
        "Write #(...) around the whole call, or a function with names: (fn [x] ...).",
        program("(map (inc %) [1 2])", "(map #(inc %) [1 2])"),
    ),
    explain(
        Reason::InvalidThreadForm,
        "A threading form such as -> or ->> is not written as it must be.",
        "There is no value to begin with, or a step is neither a call nor a name.",
        "Begin with the value, and write each step as a call without it: (-> value (f 1) g).",
        program("(->)", "(-> [1 2 3] (conj 4) count)"),
    ),
    explain(
        Reason::InvalidCondForm,
        "cond has a test without a result.",
        "cond takes tests and results in turn, and their number is odd.",
        "Give the last test a result; the default is written :else.",
        program("(cond (> 1 2) :a :b)", "(cond (> 1 2) :a :else :b)"),
    ),
    explain(
        Reason::InvalidKeywordCall,
        "A keyword is called with a number of arguments that it does not take.",
        "A keyword looks itself up in a map: it takes the map, and a default if one is wanted.",
        "Write (:key map) or (:key map default).",
        program("(:a)", "(:a {:a 1})"),
    ),
    explain(
        Reason::UnsupportedPattern,
        "A pattern of a kind that the language does not have.",
        "Where a name is bound there may be a name, a vector of patterns, or a map of patterns with :keys, :strs, :or and :as; \
        something else stood there.",
        "Bind the value to a name and take it apart in the body.",
        program("(let [(a b) [1 2]] a)", "(let [[a b] [1 2]] a)"),
    ),
    explain(
        Reason::DuplicateKey,
        "A literal map or set has the same key twice.",
        "One of the two values would be lost without a word.",
        "Take one of them out, or make the map with assoc or merge when the later value is meant to win.",
        program("{:a 1 :a 2}", "(assoc {:a 1} :a 2)"),
    ),
    explain(
        Reason::ProgramTooLarge,
        "The source is longer than the limit program_bytes.",
        "Mostly because data stands in the program itself.",
        "Give the data apart from the program and read it as data/NAME (ptcl run --data FILE), or have the host raise program_bytes.",
        limited("(+ 1 2 3 4)", "program_bytes=10", "(+ 1 2)"),
    ),
    explain(
        Reason::SymbolLimitExceeded,
        "The source has more distinct symbols and keywords than the limit symbols.",
        "Mostly because data stands in the program itself, with a keyword for each row.",
        "Give the data apart from the program and read it as data/NAME, use strings as keys, or have the host raise symbols.",
        limited("[:a :b :c]", "symbols=2", "[\"a\" \"b\" \"c\"]"),
    ),
    explain(
        Reason::UnboundVar,
        "A name that nothing defines.",
        "The name is misspelt, it is defined further down, or it is of Clojure and not of this language. All names are looked up before \
        anything runs, so a branch that is never taken counts too.",
        "The hint names what is spelt alike, or what to write instead. Define a function before its use, or announce it with declare.",
        program("(fliter odd? [1 2 3])", "(filter odd? [1 2 3])"),
    ),
    explain(
        Reason::TypeError,
        "A value of the wrong type.",
        "A function got a value of a kind that it does not take. Very often it is nil, from a key that is not there.",
        "Look where the value comes from; (or x 0) or a default of get stands in for nil.",
        program("(count 5)", "(count [5])"),
    ),
    explain(
        Reason::ArithmeticError,
        "A number that the operation cannot take.",
        "A divisor is zero, or an integer would have too many digits.",
        "Test the divisor first, and use floats for magnitudes.",
        program("(/ 1 0)", "(let [n 0] (if (zero? n) 0 (/ 1 n)))"),
    ),
    explain(
        Reason::ArityError,
        "A built-in function is called with the wrong number of arguments.",
        "There are too many or too few arguments, mostly because a bracket closes too early or too late.",
        "ptcl doc NAME shows how the function is called.",
        program("(count)", "(count [1 2])"),
    ),
    explain(
        Reason::ArityMismatch,
        "A function of the program is called with the wrong number of arguments.",
        "Its parameters and the arguments of the call differ in number. map over two collections passes two arguments, reduce passes two.",
        "Change the call or the parameters; & more takes any number of further arguments.",
        program("((fn [a b] a) 1)", "((fn [a & more] a) 1)"),
    ),
    explain(
        Reason::NotCallable,
        "A value that is not a function is called.",
        "What stands first in round brackets is called; a number, a text or nil stood there. Often there is one pair of brackets too many.",
        "Take the brackets away, or write a vector: [1 2 3]. Functions, keywords, maps, sets and vectors can be called.",
        program("(1 2 3)", "[1 2 3]"),
    ),
    explain(
        Reason::DestructureError,
        "A pattern does not fit the value that it is to take apart.",
        "A vector of names wants a sequence, a map of keys wants a map; another kind of value came.",
        "Look what the value is, with (println (type x)), or bind it to a name.",
        program("(let [[a b] 5] a)", "(let [[a b] [5 6]] a)"),
    ),
    explain(
        Reason::RuntimeError,
        "Any other fault of the program while it runs.",
        "Mostly a built-in function that map, update and their like call for each element cannot take what it gets, such as nil.",
        "The message and the hint say what was expected.",
        program("(map name [1])", "(map str [1])"),
    ),
    explain(
        Reason::UncaughtException,
        "An exception that the program threw and did not catch.",
        "(throw ...) was evaluated, and no catch around it takes it.",
        "Catch it where the program can go on, or end with (fail value) when it cannot: that is no error.",
        program(
            "(throw (ex-info \"no stock\" {:sku 1}))",
            "(try (throw (ex-info \"no stock\" {:sku 1})) (catch Exception e (ex-message e)))",
        ),
    ),
    explain(
        Reason::LoopLimitExceeded,
        "A loop or recur went round more often than the limit loop_iterations, 1,000 as a rule.",
        "The loop does not come to its end, or it goes over much data.",
        "See that each round comes nearer to the end. Over data use reduce, map, for or range, which have no such limit.",
        program("(loop [i 0] (recur (inc i)))", "(reduce + (range 100000))"),
    ),
    explain(
        Reason::MemoryExceeded,
        "The program holds more memory than its budget heap_bytes.",
        "A collection grows too large, or a function calls itself too deeply.",
        "Take what is needed of the data early (filter, select-keys, take), use recur or reduce instead of deep recursion, or have the \
        host raise heap_bytes.",
        program("(defn deeper [n] (inc (deeper n))) (deeper 0)", "(reduce (fn [n _] (inc n)) 0 (range 1000))"),
    ),
    explain(
        Reason::Timeout,
        "The deadline has passed: the run took longer than timeout_ms.",
        "The program does too much, or a tool took too long; set-up and compiling count too.",
        "Work on less data, do not walk the same data again and again (group-by once instead of filter in a loop), or have the host raise \
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
        "Fuel is work, counted the same on every machine: here walks over much data, or loops in loops.",
        "As with timeout: less data, fewer walks, or a higher limit.",
        limited("(reduce + (range 10000))", "fuel=1000", "(reduce + (range 10))"),
    ),
    explain(
        Reason::Cancelled,
        "The host cancelled the run.",
        "Somebody pressed Ctrl-C, a client went away, or the service was shut down.",
        "The program is not at fault: run it again.",
        Example::Words("Ctrl-C while ptcl run is at work."),
    ),
    explain(
        Reason::ResultLimitExceeded,
        "The result, or the arguments of a tool call, are larger than the limit result_bytes.",
        "The program returns data in full where a part or a summary was wanted.",
        "Return counts, sums or the first rows: (take 20 rows). Or have the host raise result_bytes.",
        limited("(range 1000)", "result_bytes=100", "(take 5 (range 1000))"),
    ),
    explain(
        Reason::ToolCallLimitExceeded,
        "The program called tools, or one tool, more often than it may.",
        "A tool is called for each element of a large collection, or in a loop that does not end.",
        "Call for distinct arguments only, ask the tool for many things at once, or have the host raise tool_calls or the most calls of \
        that tool.",
        Example::Words(
            "(map #(tool/price {:sku %}) skus), with more SKUs than the limit; (map #(tool/price {:sku %}) (distinct skus)) calls less.",
        ),
    ),
    explain(
        Reason::RecordLimitExceeded,
        "The record of the run, or a value in it, takes more than it may.",
        "A run that is recorded keeps every result of a tool; these are too many or too large.",
        "Have tools return less, or have the host give the record more room.",
        Example::Words("ptcl run --record FILE, for a program that calls a tool very often."),
    ),
    explain(
        Reason::ReplayDiverged,
        "A run that is replayed does something else than its record says.",
        "The program, its data, its tools or their arguments are not those of the recorded run.",
        "Replay with what the run was recorded with; the message says what the record has there and what came.",
        Example::Words("ptcl replay FILE after FILE was edited."),
    ),
    explain(
        Reason::UnknownCall,
        "A tool call had begun when an earlier process of the run ended; whether it was made is not known.",
        "To make it again could do twice what should be done once, so nothing is done.",
        "Find out whether it was made, and settle it in the record; or declare the tool as one that only reads, or that may be called \
        twice.",
        Example::Words("A service that was killed while the tool that sends a letter was at work."),
    ),
    explain(
        Reason::SessionLimitExceeded,
        "A session has more definitions or programs than its limits, or its text is longer.",
        "Each turn leaves definitions behind, and functions keep the programs that they stand in.",
        "Define fewer names, or large values in fewer of them; begin a new session; or have the host raise the limit that the message \
        names.",
        Example::Words("A session in which every turn defines a new name, after 1,000 of them."),
    ),
    explain(
        Reason::UnknownTool,
        "A tool that the host has not granted.",
        "The name after tool/ is misspelt, or the run has no such tool. ptcl run has none.",
        "The hint names the tools that are there. A host grants tools; scripted ones can stand in a request of ptcl batch.",
        program("(tool/price {:sku 1})", "(get {1 9.5} 1)"),
    ),
    explain(
        Reason::ToolDenied,
        "The host's policy, or the person it asked, does not allow a call.",
        "The message says why. Nothing was done.",
        "Do without the call, or ask whoever decides. The same call will be denied again.",
        Example::Words("A policy that refuses (tool/refund {:amount 5000}) above an amount."),
    ),
    explain(
        Reason::ApprovalRequired,
        "The host's policy wants a call approved, and the run has nobody to ask.",
        "The run was started in a way that cannot wait for an answer: a session, a batch, a plain run.",
        "Run it where somebody can approve: as a durable run, over MCP, or with approvals of the host's own.",
        Example::Words("A tool whose policy is \"ask\", called in a session of the service."),
    ),
    explain(
        Reason::BudgetExceeded,
        "The budget that the run shares with others is empty.",
        "Runs of one tenant draw from one budget of runs, fuel, calls or bytes; together they used it up.",
        "Wait until it is filled again, or have the host give more. The program is not at fault.",
        Example::Words("A tenant of the service with budget = { runs = 10 }, at its eleventh run."),
    ),
    explain(
        Reason::ToolError,
        "A tool was called, and failed.",
        "The tool itself says so: what it was asked for is not there, or what it depends on does not work.",
        "Read the message, which is the tool's own. A program may catch the error and go on without the result.",
        Example::Words("(try (tool/price {:sku 1}) (catch Exception e nil)) is nil when the tool fails."),
    ),
    explain(
        Reason::InvalidToolArgs,
        "A tool is called with arguments that it does not take.",
        "A name is missing, misspelt or too much, or a value is of the wrong type. The tool was not called.",
        "(doc tool/NAME) prints what the tool takes. Arguments are one map: (tool/price {:sku 1}).",
        Example::Words("(tool/price \"KB-01\") where (tool/price {:sku \"KB-01\"}) is meant."),
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
        "No parallel worker is free.",
        "pmap or pcalls inside of others want more workers than parallel_workers lets live at once.",
        "Use pmap at one level only, and map inside it; or have the host raise parallel_workers.",
        Example::Words(
            "(pmap (fn [x] (pmap f x)) rows) with many rows; (pmap (fn [x] (map f x)) rows) takes fewer workers.",
        ),
    ),
    explain(
        Reason::PmapError,
        "A worker of pmap failed.",
        "The function ended with an error for one of the elements; the message says for which, and with which error.",
        "Mend the function for that element, or catch the error in it.",
        program("(pmap #(/ 1 %) [1 0])", "(pmap #(if (zero? %) 0 (/ 1 %)) [1 0])"),
    ),
    explain(
        Reason::PcallsError,
        "A worker of pcalls failed.",
        "One of the functions ended with an error; the message says which, and with which error.",
        "Mend that function, or catch the error in it.",
        program("(pcalls #(/ 1 0))", "(pcalls #(/ 1 2))"),
    ),
    explain(
        Reason::UnsupportedMethod,
        "A Java method that the language does not have.",
        "The language knows some methods of strings and dates, such as .length and .toUpperCase; this is none of them.",
        "Use a function of the language: upper-case, subs, split, includes?. (apropos \"text\") and ptcl doc help to find one.",
        program("(.nosuch \"x\")", "(.toUpperCase \"x\")"),
    ),
    explain(
        Reason::UnsupportedJavaMember,
        "A member of a Java class that the language does not have.",
        "The class is known (Math, Integer, LocalDate, ...), and has no such method or constant here.",
        "Use a function of the language, or a member that is there; the hint names those that are spelt alike.",
        program("(Math/nosuch 1)", "(Math/abs -1)"),
    ),
    explain(
        Reason::UnsupportedJavaClass,
        "A Java class that the language does not have.",
        "Only a few classes have members here: those of numbers, texts, dates and times.",
        "Use functions of the language instead of Java.",
        program("(java.util.UUID/randomUUID)", "(str \"row-\" 1)"),
    ),
    explain(
        Reason::JavaArityError,
        "A Java method is called with the wrong number of arguments.",
        "There are too many or too few arguments behind the object.",
        "Look at the message, which says how many there must be.",
        program("(.substring \"abc\")", "(.substring \"abc\" 1)"),
    ),
    explain(
        Reason::JavaTypeError,
        "A Java method is called with a value of the wrong type.",
        "Java methods take exactly the types that they are declared with, nil not among them.",
        "Convert the value first, or use a function of the language, which mostly takes more.",
        program("(.substring \"abc\" \"1\")", "(.substring \"abc\" 1)"),
    ),
    explain(
        Reason::JavaDomainError,
        "A Java method is called with a value outside of its domain.",
        "A position lies outside of the text, a month is no month, a text is no number or date.",
        "Test the value first, or use a function of the language: subs never fails, parse-long returns nil.",
        program("(.substring \"abc\" 9)", "(subs \"abc\" 9)"),
    ),
    explain(
        Reason::InvalidJavaString,
        "A text that is not a valid Java string.",
        "A method counts in units of UTF-16, and cut a character in half.",
        "Use the functions of the language, which count whole characters: subs, index-of, count.",
        program("(.substring \"👍\" 1)", "(subs \"👍\" 1)"),
    ),
    explain(
        Reason::HostFault,
        "A bug of the interpreter or of its host, contained: nothing else was harmed.",
        "Something came to pass that should not be possible.",
        "Please report it with the program, its input and the message. ptcl run --record FILE makes a record that repeats it.",
        Example::Words("There is no program that should end with this."),
    ),
];
