//! What has a name and is no function: the special forms and the Java constants, described for `doc`, `apropos` and
//! "did you mean".

/// A special form or a constant.
pub struct SpecialForm {
    /// Its name.
    pub name: &'static str,
    /// How it is written, for people: `(if test then else?)`.
    pub usage: &'static str,
    /// One line: what it does.
    pub doc: &'static str,
}

const fn form(name: &'static str, usage: &'static str, doc: &'static str) -> SpecialForm {
    SpecialForm { name, usage, doc }
}

/// The special forms. The analyzer knows each by its name.
pub const SPECIAL_FORMS: &[SpecialForm] = &[
    form("def", "(def name value), (def name docstring value)", "Gives a value a name for the rest of the program."),
    form(
        "defn",
        "(defn name [parameters] body ...), (defn name docstring [parameters] body ...)",
        "Defines a function; it may call itself by its name.",
    ),
    form(
        "defonce",
        "(defonce name value), (defonce name docstring value)",
        "Gives a value a name unless the name has a value from an earlier program.",
    ),
    form(
        "fn",
        "(fn [parameters] body ...), (fn name [parameters] body ...)",
        "A function; parameters may be patterns, and & collects the rest. Short form: #(+ % 1).",
    ),
    form(
        "let",
        "(let [name value ...] body ...)",
        "Names values for the body; a name may be a pattern such as [a & more] or {:keys [a b] :or {b 0}}.",
    ),
    form(
        "loop",
        "(loop [name value ...] body ...)",
        "Names values for the body, which recur runs again with new ones.",
    ),
    form("recur", "(recur value ...)", "Runs the loop or function around it again; it must be the last thing done."),
    form(
        "case",
        "(case value constant result ... default?)",
        "The result behind the literal equal to the value, else the default or nil. Several literals: (:a :b).",
    ),
    form("cond", "(cond test result ... :else result)", "The result behind the first true test, else nil."),
    form(
        "condp",
        "(condp f value test result ... default?)",
        "The result behind the first test for which (f test value) is true, else the default or nil.",
    ),
    form("if", "(if test then else?)", "One of two values; only nil and false count as false."),
    form("if-let", "(if-let [name value] then else)", "Names the value for then if it is true, else does else."),
    form("if-not", "(if-not test then else?)", "As if, with the test turned round."),
    form("if-some", "(if-some [name value] then else)", "Names the value for then if it is not nil, else does else."),
    form("when", "(when test body ...)", "The body's value if the test is true, else nil."),
    form(
        "when-first",
        "(when-first [name coll] body ...)",
        "Names the first element for the body; nil if there is none.",
    ),
    form("when-let", "(when-let [name value] body ...)", "Names the value for the body if it is true, else nil."),
    form("when-not", "(when-not test body ...)", "The body's value if the test is false or nil, else nil."),
    form("when-some", "(when-some [name value] body ...)", "Names the value for the body if it is not nil, else nil."),
    form("->", "(-> value step ...)", "Puts the value into each step as its first argument, one step after the other."),
    form(
        "->>",
        "(->> value step ...)",
        "Puts the value into each step as its last argument, one step after the other.",
    ),
    form("as->", "(as-> value name form ...)", "Names the value, then each form's result anew, for the next form."),
    form("cond->", "(cond-> value test step ...)", "As ->, leaving out the steps whose test is not true."),
    form("cond->>", "(cond->> value test step ...)", "As ->>, leaving out the steps whose test is not true."),
    form("some->", "(some-> value step ...)", "As ->, with nil as the answer as soon as a step answers nil."),
    form("some->>", "(some->> value step ...)", "As ->>, with nil as the answer as soon as a step answers nil."),
    form("and", "(and x ...)", "The first value that is nil or false, else the last; true without any."),
    form("or", "(or x ...)", "The first value that is neither nil nor false, else the last; nil without any."),
    form("comment", "(comment ...)", "Leaves out what it holds, and answers nil."),
    form("do", "(do form ...)", "Does the forms in turn; the value is that of the last."),
    form("program", "(program form ...)", "Does the forms in turn, as a whole program; the value is that of the last."),
    form(
        "for",
        "(for [name coll ...] body ...)",
        "The body's value for each element, as a vector; also :when test, :while test and :let [name value].",
    ),
    form(
        "doseq",
        "(doseq [name coll ...] body ...)",
        "Does the body for each element and answers nil; also :when test, :while test and :let [name value].",
    ),
    form("quote", "(quote symbol)", "The symbol itself, unevaluated. Short form: 'symbol."),
    form("return", "(return value)", "Ends the whole program with the value, from any depth."),
    form("fail", "(fail value)", "Ends the whole program as failed, with the value as the reason, from any depth."),
];

/// The constants.
pub const CONSTANTS: &[SpecialForm] = &[
    form("Double/NaN", "Double/NaN", "What is not a number, ##NaN; equal to nothing."),
    form("Double/POSITIVE_INFINITY", "Double/POSITIVE_INFINITY", "More than every number, ##Inf."),
    form("Double/NEGATIVE_INFINITY", "Double/NEGATIVE_INFINITY", "Less than every number, ##-Inf."),
];
