//! The prompt: what a model must know to write programs, for its system prompt. It lists the differences from Clojure,
//! which models know. A test runs every example in it.

use crate::terms::keys::Keys;
use crate::terms::limits::Limits;
use crate::tools::tool::Tool;
use crate::tools::tool_set::Tools;
use crate::tools::words::{cut, one_line};
use lisp_core::library::BuiltinId;
use std::fmt::Write;

/// A line of the prompt. `{}` stands for the examples, which are also shown.
struct Line {
    text: &'static str,
    /// Programs and their results, for each `{}`; `!` marks the reason of an error.
    shown: &'static [(&'static str, &'static str)],
    /// More programs that prove the line.
    #[cfg_attr(not(test), allow(dead_code, reason = "read by tests only"))]
    also: &'static [(&'static str, &'static str)],
}

const LINES: &[Line] = &[
    Line {
        text: "Write one PTC-Lisp program: a small Clojure; what is not said here is as there. The last form is the result; \
               (return v) ends early, (fail v) as failed.",
        shown: &[],
        also: &[("1 2", "2"), ("(map #(return %) [1 2])", "1"), ("(fail :x)", ":x")],
    },
    Line {
        text: "Define before use, or (declare name); every name is checked before the run. In a session def and defn \
               stay, and *1 is the last result.",
        shown: &[],
        also: &[
            ("(if true 1 (nope))", "!unbound_var"),
            ("(defn f [] (g)) (defn g [] 1) (f)", "!unbound_var"),
            ("(declare g) (defn f [] (g)) (defn g [] 1) (f)", "1"),
            ("*1", "nil"),
        ],
    },
    Line {
        text: "All is eager; a list is a vector: {}, {}. Maps and sets go in key order; sort puts short vectors first. Endless \
               are only (range), iterate, repeat, cycle and what map or filter make of them: {}. Nothing is nil for being empty: \
               & rest, re-seq, keys are [], so test with seq. (contains? v x) asks for an element.",
        shown: &[
            ("(conj (rest [1 2]) 3)", "[2 3]"),
            ("(nth [1] 5)", "nil"),
            ("(take 2 (filter odd? (range)))", "[1 3]"),
        ],
        also: &[
            ("(first #{2 1})", "1"),
            ("(take 2 (filter odd? (map inc (range))))", "[1 3]"),
            ("(count (range))", "!type_error"),
            ("(sort [[2] [1 1]])", "[[2] [1 1]]"),
            ("(first (map inc (iterate inc 1)))", "2"),
            ("[((fn [& xs] xs)) (re-seq #\"x\" \"a\") (keys {}) (seq [])]", "[[] [] [] nil]"),
            ("[(contains? [7 8] 0) (contains? [7 8] 8)]", "[false true]"),
            ("(sort-by - #{1 2})", "[2 1]"),
            ("(keys {:b 1 :a 2})", "[:a :b]"),
        ],
    },
    Line {
        text: "Numbers: {}; nil or text in + is an error; (parse-number x) of text or number is nil if bad. {}. (sort-by :n > \
               rows) sorts down.",
        shown: &[("(/ 6 3)", "2.0"), ("(round 2.567 2)", "2.57")],
        also: &[
            ("(+ 1 nil)", "!type_error"),
            ("(+ 1 \"2\")", "!type_error"),
            ("(map parse-number [\"x\" \"7\" 2.5])", "[nil 7 2.5]"),
            ("(map :n (sort-by :n > [{:n 1} {:n 2}]))", "[2 1]"),
        ],
    },
    Line {
        text: "clojure.string and clojure.set need no require: {}, str/join too. {}; a character is a string: {}. Patterns \
               are raw: #\"\\d+\"; re-find, re-seq, re-matches. Of Java: Math/, Character/, LocalDate, LocalDateTime, Instant, Duration, \
               methods such as (.indexOf s t).",
        shown: &[("(join \", \" [1 2])", "\"1, 2\""), ("(get \"abc\" 1)", "\"b\""), ("(= \\b \"b\")", "true")],
        also: &[
            ("(str/join \", \" [1 2])", "\"1, 2\""),
            ("(union #{1} #{2})", "#{1 2}"),
            (
                "[(Math/round 2.5) (Character/isDigit \\5) (Integer/parseInt \"7\") (.indexOf \"abc\" \"c\")]",
                "[3 true 7 2]",
            ),
            ("(str (.plusDays (LocalDate/parse \"2024-01-31\") 1))", "\"2024-02-01\""),
            (
                "(.toMinutes (Duration/between (Instant/parse \"2024-01-01T00:00:00Z\") (Instant/parse \"2024-01-01T01:00:00Z\")))",
                "60",
            ),
            ("(re-find #\"\\\\\" \"a\\\\b\")", "\"\\\\\""),
            ("[(re-find #\"\\d+\" \"a12b3\") (re-seq #\"\\d+\" \"a12b3\")]", "[\"12\" [\"12\" \"3\"]]"),
        ],
    },
];

/// How data keys are written, for each setting.
const STRINGS: Line = Line {
    text: "data/NAME reads data. JSON's keys are strings, which keywords read and write: {}, {}, in get-in, {:keys [..]}, merge \
           too. But {}: with k from (keys row) write (= k \"id\").",
    shown: &[("(:id {\"id\" 7})", "7"), ("(update {\"n\" 1} :n inc)", "{\"n\" 2}"), ("(= :n \"n\")", "false")],
    also: &[
        ("(map :id data/rows)", "[1 2]"),
        ("(get-in {\"a\" {\"b\" 1}} [:a :b])", "1"),
        ("(let [{:keys [id]} {\"id\" 7}] id)", "7"),
        ("(merge {\"n\" 1} {:n 2})", "{\"n\" 2}"),
        ("(keys (first data/rows))", "[\"id\"]"),
    ],
};
const KEYWORDS: Line = Line {
    text: "data/NAME reads data. JSON's keys are keywords, in results of tools too: (:id r), (= k :id) for k of (keys r). \
           (json/parse-string s) makes strings of them: {}, {}; but {}.",
    shown: &[("(:id {\"id\" 7})", "7"), ("(update {\"n\" 1} :n inc)", "{\"n\" 2}"), ("(= :n \"n\")", "false")],
    also: &[
        ("(map :id data/rows)", "[1 2]"),
        ("(keys (first data/rows))", "[:id]"),
        ("(json/parse-string \"{\\\"id\\\": 7}\")", "{\"id\" 7}"),
    ],
};

/// Names of Clojure that do not exist.
const ABSENT: &[&str] = &["atom", "swap!", "defmacro", "defrecord", "defprotocol", "rand", "slurp"];

/// Other syntax of Clojure that does not exist, with programs that use it.
const ABSENT_ELSE: &str = "@, 1/2";
#[cfg(test)]
const ABSENT_ELSE_USED: &[(&str, &str)] = &[("@x", "!parse_error"), ("1/2", "!unbound_var")];

/// Functions that Clojure does not have.
const BEYOND: &[&str] = &[
    "sum",
    "avg",
    "sum-by",
    "avg-by",
    "min-by",
    "max-by",
    "distinct-by",
    "zip",
    "json/parse-string",
    "json/generate-string",
    "describe",
];

/// A model program.
const EXAMPLE: &str = "(->> data/orders (filter #(= \"paid\" (:status %))) (group-by :country) \
                       (map (fn [[c os]] {:country c :total (sum-by :total os)})) (sort-by :total >))";

/// Returns the prompt for these tools, limits and keys. The lines of tools take at most `tools_bytes`.
pub(crate) fn card(tools: &Tools, limits: &Limits, keys: Keys, tools_bytes: usize) -> String {
    let mut out = String::new();
    let (first, others) = LINES.split_at(1);
    for line in first.iter().chain([data_line(keys)]).chain(others) {
        let mut parts = line.text.split("{}");
        out.push_str(parts.next().unwrap_or_default());
        for (part, (program, answer)) in parts.zip(line.shown) {
            // Writing to a string cannot fail.
            let _ = write!(out, "{program} => {answer}{part}");
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "Absent: {}, {ABSENT_ELSE}. (try .. (catch Exception e ..)): e is a map with :reason :message :data :code; a limit of the run is \
         not caught.",
        ABSENT.join(", ")
    );
    let usages: Vec<&str> =
        BEYOND.iter().filter_map(|name| BuiltinId::by_name(name)).map(|id| usage(id.row().usage)).collect();
    let _ = writeln!(out, "Also: {}.", usages.join(" "));
    if limits.loop_iterations > 0 {
        let _ =
            writeln!(out, "loop and recur go round {} times at most; prefer map, for, reduce.", limits.loop_iterations);
    }
    let _ = writeln!(out, "Example: {EXAMPLE}");
    tool_lines(tools, tools_bytes, &mut out);
    out
}

/// Writes a line for each tool, as many as fit: with their whole descriptions as far as there is room for those too.
fn tool_lines(tools: &Tools, max: usize, out: &mut String) {
    let count = tools.all().count();
    if count == 0 {
        return;
    }
    let search = tools.get("search");
    let mut left = max;
    let (mut lines, mut some_tagged, mut some_cut) = (Vec::new(), false, false);
    // The search tool is always shown.
    let first = search.into_iter();
    for tool in first.chain(tools.all().filter(|tool| tool.name() != "search")) {
        let line = tool_line(tool, false);
        let Some(rest) = left.checked_sub(line.len() + 1).or((lines.is_empty() && search.is_some()).then_some(0))
        else {
            break;
        };
        left = rest;
        some_tagged |= tool.treatment.tagged;
        lines.push((line, tool));
    }
    let shown = lines.len();
    for (line, tool) in &mut lines {
        let whole = tool_line(tool, true);
        match left.checked_sub(whole.len() - line.len()) {
            Some(rest) => (left, *line) = (rest, whole),
            None => some_cut = true,
        }
    }
    lines.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    out.push_str("Tools, called as (tool/NAME {:param value})");
    if some_tagged {
        out.push_str("; a tagged one returns {:ok result} or {:error {:message ..}}");
    }
    out.push_str(":\n");
    for (line, _) in lines {
        out.push_str(&line);
        out.push('\n');
    }
    if some_cut {
        out.push_str("(doc tool/NAME) prints what is cut here.\n");
    }
    if shown < count {
        let how = if search.is_some() { "; (tool/search {:words \"..\"}) finds the others" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{shown} of {count} tools are shown{how}.");
    }
}

/// Returns the signature of a tool, and the first sentence of its description or all that is known of it.
fn tool_line(tool: &Tool, is_whole: bool) -> String {
    const ABOUT: usize = 120;
    let mut line = one_line(&format!("tool/{} {}", tool.name(), tool.signature_text()));
    if tool.treatment.tagged {
        line.push_str(" ; tagged");
    }
    let about = one_line(tool.contract.description.as_deref().unwrap_or_default());
    if is_whole {
        let notes = tool.contract.schemas.as_deref().map(|schemas| schemas.notes()).unwrap_or_default();
        let notes = notes.lines().map(|note| note.trim().trim_end_matches('.'));
        for text in [about.as_str()].into_iter().filter(|about| !about.is_empty()).chain(notes) {
            let _ = write!(line, " ; {text}");
        }
    } else if !about.is_empty() {
        let sentence = first_sentence(&about);
        let more = if sentence.len() < about.len() && sentence.len() <= ABOUT { " .." } else { "" };
        let _ = write!(line, " ; {}{more}", cut(sentence, ABOUT));
    }
    if let Some(remark) = tool.remark() {
        let _ = write!(line, " ; {remark}");
    }
    line
}

/// Returns the text up to a full stop before a capital letter: no other ends a sentence for certain.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(end, _)| end);
    let end = ends.into_iter().find(|&end| text[end + 2..].starts_with(char::is_uppercase));
    end.map_or(text, |end| &text[..=end])
}

fn data_line(keys: Keys) -> &'static Line {
    match keys {
        Keys::Strings => &STRINGS,
        Keys::Keywords => &KEYWORDS,
    }
}

/// Returns the first of several usages.
fn usage(all: &'static str) -> &'static str {
    all.split_inclusive(')').next().unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Input, Tool};

    /// Runs a program. Returns the result as text, or `!` and the reason.
    fn answer(program: &str) -> String {
        answer_with(Keys::Strings, program)
    }

    fn answer_with(keys: Keys, program: &str) -> String {
        let input = Input::new().json("rows", r#"[{"id": 1}, {"id": 2}]"#).json(
            "orders",
            r#"[{"status": "paid", "country": "SE", "total": 2}, {"status": "paid", "country": "DE", "total": 9}]"#,
        );
        let engine = Engine::builder().json_keys(keys).grant(Tool::echo("rate")).build().expect("an engine");
        let outcome = engine.eval(program, input);
        match outcome.problem() {
            Some(problem) => format!("!{}", problem.reason().name()),
            None => outcome.text().unwrap_or_default().to_owned(),
        }
    }

    #[test]
    fn what_the_card_says_is_so() {
        let checks = LINES.iter().flat_map(|line| line.shown.iter().chain(line.also)).chain(ABSENT_ELSE_USED);
        for (program, want) in checks {
            assert_eq!(answer(program), *want, "{program}");
        }
        for keys in [Keys::Strings, Keys::Keywords] {
            let line = data_line(keys);
            for (program, want) in line.shown.iter().chain(line.also) {
                assert_eq!(answer_with(keys, program), *want, "{keys:?}: {program}");
            }
        }
        for line in LINES.iter().chain([&STRINGS, &KEYWORDS]) {
            assert_eq!(line.text.matches("{}").count(), line.shown.len(), "{}", line.text);
        }
        for name in ABSENT {
            assert_eq!(answer(&format!("({name} 1 2)")), "!unbound_var", "{name}");
        }
        for name in BEYOND {
            assert!(BuiltinId::by_name(name).is_some(), "{name}");
        }
        assert_eq!(answer(EXAMPLE), r#"[{:country "DE" :total 9} {:country "SE" :total 2}]"#);
        assert_eq!(answer("[((fnil inc 0) nil) (or nil 1) (some-> nil inc)]"), "[1 1 nil]");
        assert_eq!(answer("(loop [i 0] (when (< i 1000) (recur (inc i))))"), "nil");
        assert_eq!(answer("(loop [i 0] (when (<= i 1000) (recur (inc i))))"), "!loop_limit_exceeded");
        assert_eq!(answer("(tool/rate {:from \"EUR\"})"), r#"{"from" "EUR"}"#);
    }

    #[test]
    fn the_card_is_short() {
        for (keys, says) in [(Keys::Strings, "keys are strings"), (Keys::Keywords, "keys are keywords")] {
            let card = Engine::builder().json_keys(keys).build().expect("an engine").prompt();
            assert!(card.len() <= 2_000, "{} bytes:\n{card}", card.len());
            assert!(card.contains("(sum-by f coll)") && card.contains(says) && !card.contains("Tools"), "{card}");
        }
    }

    #[test]
    fn tools_are_on_the_card() {
        let engine = Engine::builder()
            .grant(Tool::external("search").signature("(query :string,\n limit :int?) -> [:map]"))
            .grant(Tool::external("now"))
            .build()
            .expect("an engine");
        let card = engine.prompt();
        let lines: Vec<&str> = card.lines().rev().take(3).collect();
        let wanted = [
            "tool/search (query :string, limit :int?) -> [:map]",
            "tool/now",
            "Tools, called as (tool/NAME {:param value}):",
        ];
        assert_eq!(lines, wanted);
    }
}
