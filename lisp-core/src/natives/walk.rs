//! The rows of functions that call functions and are written in the language; their code is in the prelude.

use crate::builtins::{Builtin, MANY};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::prelude("walk", 3, 3, "(walk inner outer form)").namespace("clojure.walk").doc(
        "Applies inner to each part of the form, then outer to the result.",
        &[("(walk inc identity [1 2])", "[2 3]"), ("(walk 1 2 [1])", "!type_error")],
    ),
    Builtin::prelude("postwalk", 2, 2, "(postwalk f form)").namespace("clojure.walk").doc(
        "Returns the form with f applied to every part, innermost first.",
        &[("(postwalk #(if (number? %) (inc %) %) [1 [2]])", "[2 [3]]"), ("(postwalk 1 [1])", "!not_callable")],
    ),
    Builtin::prelude("prewalk", 2, 2, "(prewalk f form)").namespace("clojure.walk").doc(
        "Returns the form with f applied to every part, the whole first, then its parts.",
        &[("(prewalk #(if (number? %) (inc %) %) [1 [2]])", "[2 [3]]"), ("(prewalk 1 [1])", "!not_callable")],
    ),
    Builtin::prelude("prewalk-replace", 2, 2, "(prewalk-replace smap form)").namespace("clojure.walk").doc(
        "Returns the form with every part that is a key of the map replaced by its value, the whole first.",
        &[("(prewalk-replace {:a [:b] :b 1} [:a :b])", "[[1] 1]"), ("(prewalk-replace 1 [1])", "!type_error")],
    ),
    Builtin::prelude("postwalk-replace", 2, 2, "(postwalk-replace smap form)").namespace("clojure.walk").doc(
        "Returns the form with every part that is a key of the map replaced by its value, innermost first.",
        &[("(postwalk-replace {:a 1} {:k [:a :b]})", "{:k [1 :b]}"), ("(postwalk-replace 1 [1])", "!type_error")],
    ),
    Builtin::prelude("keywordize-keys", 1, 1, "(keywordize-keys form)").namespace("clojure.walk").doc(
        "Returns the form with all string keys of its maps turned into keywords.",
        &[("(keywordize-keys {\"a\" [{\"b\" 1}]})", "{:a [{:b 1}]}"), ("(keywordize-keys)", "!arity_error")],
    ),
    Builtin::prelude("stringify-keys", 1, 1, "(stringify-keys form)").namespace("clojure.walk").doc(
        "Returns the form with all keyword keys of its maps turned into strings.",
        &[("(stringify-keys {:a [{:b 1}]})", "{\"a\" [{\"b\" 1}]}"), ("(stringify-keys)", "!arity_error")],
    ),
    Builtin::prelude("tree-seq", 3, 3, "(tree-seq branch? children root)").doc(
        "Returns all nodes of a tree, a parent before its children.",
        &[("(tree-seq vector? identity [1 [2]])", "[[1 [2]] 1 [2] 2]"), ("(tree-seq 1 2 [1])", "!not_callable")],
    ),
    Builtin::prelude("iteration", 1, MANY, "(iteration step & {:keys [kf vf somef initk]})").doc(
        "Calls step with initk, then with (kf result) each time, and collects (vf result). Stops when (kf result) is nil or (somef result) is not true.",
        &[
            ("(iteration (fn [n] {:n n :next (when (< n 3) (inc n))}) :initk 1 :vf :n :kf :next)", "[1 2 3]"),
            ("(iteration inc :kf)", "!destructure_error"),
        ],
    ),
    Builtin::prelude("run!", 2, 2, "(run! f coll)").doc(
        "Calls f with each element for its side effects, and returns nil.",
        &[("(run! println [1 2])", "nil"), ("(run! 1 [1])", "!not_callable")],
    ),
    Builtin::prelude("trampoline", 1, MANY, "(trampoline f & args)").doc(
        "Calls f, then calls each result as long as it is a function.",
        &[("(trampoline (fn f [n] (if (> n 9) n #(f (inc n)))) 0)", "10"), ("(trampoline 1)", "!not_callable")],
    ),
    Builtin::prelude("comparator", 1, 1, "(comparator pred)").doc(
        "Turns a predicate, which returns whether its first argument comes first, into a comparator for sort.",
        &[("(sort (comparator >) [1 3 2])", "[3 2 1]"), ("(comparator)", "!arity_error")],
    ),
    Builtin::prelude("max-key", 2, MANY, "(max-key f x y & more)").doc(
        "Returns the argument for which f returns the greatest number; of equal ones the last.",
        &[("(max-key count [1] [2])", "[2]"), ("(max-key count [1] [1 2])", "[1 2]"), ("(max-key 1 2 3)", "!not_callable")],
    ),
    Builtin::prelude("min-key", 2, MANY, "(min-key f x y & more)").doc(
        "Returns the argument for which f returns the least; of equal ones the last.",
        &[("(min-key count [1] [2] [3])", "[3]"), ("(min-key count [1] [1 2])", "[1]"), ("(min-key 1 2 3)", "!not_callable")],
    ),
    Builtin::prelude("subset?", 2, 2, "(subset? a b)").namespace("clojure.set").doc(
        "Returns whether all members of the first set are in the second.",
        &[("(subset? #{1} #{1 2})", "true"), ("(subset? #{3} #{1 2})", "false"), ("(subset? 1 #{1})", "!type_error")],
    ),
    Builtin::prelude("superset?", 2, 2, "(superset? a b)").namespace("clojure.set").doc(
        "Returns whether all members of the second set are in the first.",
        &[("(superset? #{1 2} #{1})", "true"), ("(superset? #{1} 1)", "!type_error")],
    ),
    Builtin::prelude("clojure.set/select", 2, 2, "(clojure.set/select pred set)").namespace("clojure.set").doc(
        "Returns the set of the members for which pred is true.",
        &[("(clojure.set/select odd? #{1 2 3})", "#{1 3}"), ("(clojure.set/select odd? 5)", "!type_error")],
    ),
    Builtin::prelude("clojure.set/project", 2, 2, "(clojure.set/project rows keys)").namespace("clojure.set").doc(
        "Returns the set of the rows with these keys only.",
        &[
            ("(clojure.set/project #{{:a 1 :b 2} {:a 1 :b 3}} [:a])", "#{{:a 1}}"),
            ("(clojure.set/project 5 [:a])", "!type_error"),
        ],
    ),
    Builtin::prelude("clojure.set/rename", 2, 2, "(clojure.set/rename rows names)").namespace("clojure.set").doc(
        "Returns the set of the rows with keys renamed.",
        &[("(clojure.set/rename #{{:a 1}} {:a :x})", "#{{:x 1}}"), ("(clojure.set/rename 5 {:a :x})", "!type_error")],
    ),
    Builtin::prelude("clojure.set/index", 2, 2, "(clojure.set/index rows keys)").namespace("clojure.set").doc(
        "Groups the rows by these keys: returns a map from the values under the keys to the set of rows with these values.",
        &[
            ("(clojure.set/index #{{:a 1 :b 2}} [:a])", "{{:a 1} #{{:a 1 :b 2}}}"),
            ("(clojure.set/index 5 [:a])", "!type_error"),
        ],
    ),
    Builtin::prelude("clojure.set/join", 2, 3, "(clojure.set/join rows others keys)").namespace("clojure.set").doc(
        "Merges each pair of rows whose values are equal under the keys that both have. With keys, such as {:id :ref}, \
         merges the pairs in which :id of the first row equals :ref of the second.",
        &[
            ("(clojure.set/join #{{:id 1 :n \"a\"}} #{{:id 1 :x 2} {:id 2 :x 3}})", "#{{:id 1 :n \"a\" :x 2}}"),
            ("(clojure.set/join #{{:id 1}} #{{:ref 1 :x 2}} {:id :ref})", "#{{:id 1 :ref 1 :x 2}}"),
            ("(clojure.set/join #{{:id 1}} 5)", "!type_error"),
        ],
    ),
    Builtin::prelude("clojure.string/escape", 2, 2, "(clojure.string/escape s cmap)").namespace("clojure.string").doc(
        "Returns the string with each character replaced by what a map or function returns for it; nil leaves it as it is.",
        &[
            ("(clojure.string/escape \"a<b\" {\\< \"&lt;\"})", "\"a&lt;b\""),
            ("(clojure.string/escape 1 {})", "!type_error"),
        ],
    ),
];
