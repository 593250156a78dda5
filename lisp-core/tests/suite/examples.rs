//! Every example of every built-in is run; every name of the language is there.

use lisp_core::builtins::java::CONSTANTS;
use lisp_core::compile::{SPECIAL_FORMS, SpecialForm};
use lisp_core::library::{self, BuiltinId};

fn answer(source: &str) -> crate::common::Answer {
    crate::common::run(source, 10_000).0
}

#[test]
fn examples_answer_what_they_say() {
    let mut wrong = Vec::new();
    for (source, want) in library::all().iter().flat_map(|row| row.examples) {
        wrong.extend(
            crate::common::difference(&answer(source), want).map(|difference| format!("{source}\n{difference}")),
        );
    }
    assert!(wrong.is_empty(), "{} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rows_are_complete() {
    for row in library::all() {
        assert!(row.doc.ends_with(['.', '?']), "{} has no line that says what it does", row.name);
        assert!(row.doc.len() <= 200, "what is said of {} is too long", row.name);
        assert!(row.usage.contains(row.name), "the usage of {} does not name it", row.name);
        assert!(row.examples.iter().any(|(_, want)| !want.starts_with('!')), "{} has no good example", row.name);
    }
    for form in SPECIAL_FORMS {
        assert!(form.doc.ends_with('.') && form.usage.contains(form.name), "{}", form.name);
    }
    assert!(CONSTANTS.iter().all(|constant| constant.doc.ends_with('.')));
}

#[test]
fn special_forms_are_no_functions() {
    for form in SPECIAL_FORMS {
        assert!(BuiltinId::by_name(form.name).is_none(), "{} is both", form.name);
        let call = answer(&format!("({})", form.name));
        assert_ne!(call.err().map(|e| e.0), Some("unbound_var"), "{} is unknown", form.name);
        assert_eq!(answer(form.name).err().map(|e| e.0), Some("unbound_var"), "{}", form.name);
    }
    for constant in CONSTANTS {
        assert!(answer(constant.name).is_ok(), "{}", constant.name);
    }
}

#[test]
fn every_name_of_the_language_is_there() {
    let there = |name: &str| {
        BuiltinId::by_name(name).is_some()
            || SpecialForm::by_name(name).is_some()
            || CONSTANTS.iter().any(|constant| constant.name == name)
    };
    let missing: Vec<&str> = NAMES.iter().copied().filter(|name| !there(name)).collect();
    assert!(missing.is_empty(), "these are missing: {missing:?}");
    assert_eq!(NAMES.len(), 333);
}

/// The names that programs may rely on.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "def", "defn", "defonce", "fn", "let", "loop", "recur", "case", "cond", "condp", "if", "if-let", "if-not",
    "if-some", "when", "when-first", "when-let", "when-not", "when-some", "->", "->>", "as->", "cond->", "cond->>",
    "some->", "some->>", "and", "comment", "do", "or", "doseq", "for", "*", "*'", "+", "+'", "-", "-'", "/", "<",
    "<=", "=", "==", ">", ">=", "NaN?", "apply", "array-map", "assoc", "assoc-in", "associative?", "avg", "avg-by",
    "boolean", "boolean?", "butlast", "char?", "coll?", "combinations", "comp", "compare", "complement", "concat",
    "conj", "cons", "constantly", "count", "counted?", "dec", "dec'", "decimal?", "dedupe", "describe", "dissoc",
    "distinct", "distinct-by", "distinct?", "double?", "drop", "drop-last", "drop-while", "empty", "empty?",
    "entries", "even?", "every-pred", "every?", "false?", "ffirst", "filter", "filterv", "find", "first", "flatten",
    "float?", "fn?", "fnext", "fnil", "frequencies", "get", "get-in", "group-by", "hash-map", "identity", "ifn?",
    "inc", "inc'", "indexed?", "infinite?", "int?", "integer?", "interleave", "interpose", "into", "keep",
    "keep-indexed", "key", "keys", "keyword", "keyword?", "last", "list", "map", "map-entry?", "map-indexed",
    "map?", "mapcat", "mapv", "max-by", "max-key", "merge", "merge-with", "min-by", "min-key", "mod", "nat-int?",
    "neg-int?", "neg?", "next", "nfirst", "nil?", "nnext", "not", "not-any?", "not-empty", "not-every?", "not=",
    "nth", "nthnext", "nthrest", "number?", "odd?", "partial", "partition", "partition-all", "partition-by", "peek",
    "pop", "pos-int?", "pos?", "postwalk", "prewalk", "println", "quote", "range", "ratio?", "rational?", "reduce",
    "reduce-kv", "rem", "remove", "rest", "reverse", "reversible?", "second", "select-keys", "seq", "seq?",
    "seqable?", "sequential?", "some", "some-fn", "some?", "sort", "sort-by", "sorted?", "split-at", "split-with",
    "string?", "subvec", "sum", "sum-by", "symbol?", "take", "take-last", "take-while", "tree-seq", "true?", "type",
    "update", "update-in", "update-keys", "update-vals", "val", "vals", "vector?", "walk", "zero?", "zip", "zipmap",
    "juxt", "pcalls", "pmap", "fail", "return", "blank?", "downcase", "ends-with?", "extract", "extract-int",
    "format", "includes?", "index-of", "join", "last-index-of", "lower-case", "name", "parse-boolean",
    "parse-double", "parse-int", "parse-long", "pr-str", "replace", "split", "split-lines", "starts-with?", "str",
    "subs", "trim", "trim-newline", "triml", "trimr", "upcase", "upper-case", "contains?", "difference", "disj",
    "hash-set", "intersection", "set", "set?", "union", "vec", "vector", "re-find", "re-matches", "re-pattern",
    "re-seq", "re-split", "regex?", "abs", "bit-and", "bit-and-not", "bit-clear", "bit-flip", "bit-not", "bit-or",
    "bit-set", "bit-shift-left", "bit-shift-right", "bit-test", "bit-xor", "ceil", "double", "float", "floor",
    "int", "max", "min", "pow", "quot", "round", "sqrt", "trunc", ".after", ".before", ".contains", ".endsWith",
    ".getTime", ".indexOf", ".isAfter", ".isBefore", ".lastIndexOf", ".length", ".minusDays", ".plusDays",
    ".startsWith", ".substring", ".toDays", ".toEpochDay", ".toEpochMilli", ".toMillis", ".trim",
    "Boolean/parseBoolean", "Double/NEGATIVE_INFINITY", "Double/NaN", "Double/POSITIVE_INFINITY",
    "Double/parseDouble", "Duration/between", "Float/parseFloat", "Instant/parse", "Integer/parseInt",
    "LocalDate/parse", "Long/parseLong", "Math/abs", "Math/ceil", "Math/floor", "Math/max", "Math/min", "Math/pow",
    "Math/round", "Math/sqrt", "System/currentTimeMillis", "java.util.Date.", "json/generate-string",
    "json/parse-lines", "json/parse-string", "apropos", "dir", "doc", "export-meta", "source", "program",
];
