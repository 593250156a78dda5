//! The rows of functions that call functions and are written in the language: their code is in the prelude.

use crate::builtins::{Builtin, MANY};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::prelude("walk", 3, 3, "(walk inner outer form)").namespace("clojure.walk").doc(
        "outer of the form with inner applied to each of its parts.",
        &[("(walk inc identity [1 2])", "[2 3]"), ("(walk 1 2 [1])", "!type_error")],
    ),
    Builtin::prelude("postwalk", 2, 2, "(postwalk f form)").namespace("clojure.walk").doc(
        "The form with f applied to every part, innermost first.",
        &[("(postwalk #(if (number? %) (inc %) %) [1 [2]])", "[2 [3]]"), ("(postwalk 1 [1])", "!not_callable")],
    ),
    Builtin::prelude("prewalk", 2, 2, "(prewalk f form)").namespace("clojure.walk").doc(
        "The form with f applied to every part, the whole first, then what it holds.",
        &[("(prewalk #(if (number? %) (inc %) %) [1 [2]])", "[2 [3]]"), ("(prewalk 1 [1])", "!not_callable")],
    ),
    Builtin::prelude("tree-seq", 3, 3, "(tree-seq branch? children root)").doc(
        "All nodes of a tree, a parent before its children.",
        &[("(tree-seq vector? identity [1 [2]])", "[[1 [2]] 1 [2] 2]"), ("(tree-seq 1 2 [1])", "!not_callable")],
    ),
    Builtin::prelude("max-key", 2, MANY, "(max-key f x y & more)").doc(
        "The argument for which f returns the most; of equal ones the first.",
        &[("(max-key count [1] [1 2])", "[1 2]"), ("(max-key 1 2 3)", "!not_callable")],
    ),
    Builtin::prelude("min-key", 2, MANY, "(min-key f x y & more)").doc(
        "The argument for which f returns the least; of equal ones the first.",
        &[("(min-key count [1] [1 2])", "[1]"), ("(min-key 1 2 3)", "!not_callable")],
    ),
];
