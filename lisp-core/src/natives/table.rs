//! The rows of the functions that call functions, and of those that make functions.

use super::FrameOp;
use crate::builtins::{Builtin, BuiltinId, MANY};
use crate::heap::{Compose, Heap, Res, Value};

fn composed<'h>(h: &'h Heap, kind: Compose, parts: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(parts.len() as u64)?;
    h.composed(kind, parts)
}

fn functions<'h>(h: &'h Heap, name: &str, kind: Compose, parts: &[Value<'h>]) -> Res<Value<'h>> {
    for &f in parts {
        if !f.is_callable() {
            super::function(name, f)?;
        }
    }
    composed(h, kind, parts)
}

fn partial<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    composed(h, Compose::Partial, args)
}

fn comp<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args {
        [only] => Ok(*only),
        [] => Ok(BuiltinId::by_name("identity").map_or(Value::Nil, Value::Builtin)),
        _ => composed(h, Compose::Comp, args),
    }
}

fn juxt<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    composed(h, Compose::Juxt, args)
}

fn complement<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    functions(h, "complement", Compose::Complement, args)
}

fn constantly<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    composed(h, Compose::Constantly, args)
}

fn fnil<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args.first() {
        Some(&(Value::Set(_) | Value::Keyword(..))) => {
            Err(super::not_function("fnil", args[0], "wrap the look-up: #(get m %)"))
        }
        Some(&f) => {
            super::function("fnil", f)?;
            composed(h, Compose::Fnil, args)
        }
        None => Ok(Value::Nil),
    }
}

fn every_pred<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    functions(h, "every-pred", Compose::EveryPred, args)
}

fn some_fn<'h>(h: &'h Heap, args: &[Value<'h>]) -> Res<Value<'h>> {
    functions(h, "some-fn", Compose::SomeFn, args)
}

/// The functions done by frames, and those that make functions of others.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin::frame("apply", 2, MANY, "(apply f a b coll)", FrameOp::Apply).doc(
        "Calls f with the elements of coll as its last arguments.",
        &[("(apply + 1 [2 3])", "6"), ("(apply + 1)", "!type_error")],
    ),
    Builtin::frame("map", 2, 4, "(map f coll) (map f c1 c2) (map f c1 c2 c3)", FrameOp::Map).aliases(&["mapv"]).doc(
        "The results of f for each element.",
        &[("(map inc [1 2])", "[2 3]"), ("(map + [1 2] [10 20])", "[11 22]"), ("(map 1 [1])", "!type_error")],
    ),
    Builtin::frame("pmap", 2, 4, "(pmap f coll) (pmap f c1 c2 ...)", FrameOp::Pmap).doc(
        "The results of f for each element, in order; the calls run in parallel.",
        &[("(pmap inc [1 2])", "[2 3]"), ("(pmap inc [nil])", "!pmap_error")],
    ),
    Builtin::frame("pcalls", 0, MANY, "(pcalls f1 f2 ...)", FrameOp::Pcalls).doc(
        "The results of calling each function without arguments, in order; the calls run in parallel.",
        &[("(pcalls #(+ 1 2) #(* 2 3))", "[3 6]"), ("(pcalls #(/ 1 0))", "!pcalls_error")],
    ),
    Builtin::frame("map-indexed", 2, 2, "(map-indexed f coll)", FrameOp::MapIndexed).doc(
        "The results of f for each index and element.",
        &[("(map-indexed vector [:a :b])", "[[0 :a] [1 :b]]"), ("(map-indexed 1 [1])", "!type_error")],
    ),
    Builtin::frame("mapcat", 2, 2, "(mapcat f coll)", FrameOp::Mapcat).doc(
        "The collections that f answers for each element, one after the other.",
        &[("(mapcat #(vector % %) [1 2])", "[1 1 2 2]"), ("(mapcat inc [1])", "!runtime_error")],
    ),
    Builtin::frame("filter", 2, 2, "(filter pred coll)", FrameOp::Filter).aliases(&["filterv"]).doc(
        "The elements for which pred is true.",
        &[("(filter odd? [1 2 3])", "[1 3]"), ("(filter 1 [1])", "!type_error")],
    ),
    Builtin::frame("remove", 2, 2, "(remove pred coll)", FrameOp::Remove).doc(
        "The elements for which pred is not true.",
        &[("(remove odd? [1 2 3])", "[2]"), ("(remove 1 [1])", "!type_error")],
    ),
    Builtin::frame("keep", 2, 2, "(keep f coll)", FrameOp::Keep).doc(
        "The results of f that are not nil.",
        &[("(keep :a [{:a 1} {}])", "[1]"), ("(keep 1 [1])", "!type_error")],
    ),
    Builtin::frame("keep-indexed", 2, 2, "(keep-indexed f coll)", FrameOp::KeepIndexed).doc(
        "The results of f for each index and element that are not nil.",
        &[("(keep-indexed (fn [i x] (when (odd? i) x)) [:a :b])", "[:b]"), ("(keep-indexed 1 [1])", "!type_error")],
    ),
    Builtin::frame("some", 2, 2, "(some pred coll)", FrameOp::Some).doc(
        "The first true result of pred, or nil.",
        &[("(some #(when (> % 1) %) [1 2 3])", "2"), ("(some 1 [1])", "!type_error")],
    ),
    Builtin::frame("every?", 2, 2, "(every? pred coll)", FrameOp::Every)
        .doc("Is pred true for every element?", &[("(every? odd? [1 3])", "true"), ("(every? 1 [1])", "!type_error")]),
    Builtin::frame("not-any?", 2, 2, "(not-any? pred coll)", FrameOp::NotAny)
        .doc("Is pred true for no element?", &[("(not-any? odd? [2 4])", "true"), ("(not-any? 1 [1])", "!type_error")]),
    Builtin::frame("not-every?", 2, 2, "(not-every? pred coll)", FrameOp::NotEvery).doc(
        "Is there an element for which pred is not true?",
        &[("(not-every? odd? [1 2])", "true"), ("(not-every? 1 [1])", "!type_error")],
    ),
    Builtin::frame("take-while", 2, 2, "(take-while pred coll)", FrameOp::TakeWhile).doc(
        "The elements before the first for which pred is not true.",
        &[("(take-while odd? [1 3 4 5])", "[1 3]"), ("(take-while 1 [1])", "!type_error")],
    ),
    Builtin::frame("drop-while", 2, 2, "(drop-while pred coll)", FrameOp::DropWhile).doc(
        "The elements from the first on for which pred is not true.",
        &[("(drop-while odd? [1 3 4 5])", "[4 5]"), ("(drop-while 1 [1])", "!type_error")],
    ),
    Builtin::frame("split-with", 2, 2, "(split-with pred coll)", FrameOp::SplitWith).doc(
        "What take-while and drop-while answer.",
        &[("(split-with odd? [1 3 4 5])", "[[1 3] [4 5]]"), ("(split-with 1 [1])", "!type_error")],
    ),
    Builtin::frame("partition-by", 2, 2, "(partition-by f coll)", FrameOp::PartitionBy).doc(
        "Runs of elements for which f answers the same.",
        &[("(partition-by odd? [1 3 2 5])", "[[1 3] [2] [5]]"), ("(partition-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("group-by", 2, 2, "(group-by f coll)", FrameOp::GroupBy).doc(
        "A map from what f answers to the elements it answers that for.",
        &[("(group-by odd? [1 2 3])", "{false [2] true [1 3]}"), ("(group-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("distinct-by", 2, 2, "(distinct-by f coll)", FrameOp::DistinctBy).doc(
        "The first element for each answer of f.",
        &[("(distinct-by odd? [1 2 3])", "[1 2]"), ("(distinct-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("update-vals", 2, 2, "(update-vals m f)", FrameOp::UpdateVals).doc(
        "The map with f applied to every value.",
        &[("(update-vals {:a 1} inc)", "{:a 2}"), ("(update-vals {:a 1} 1)", "!type_error")],
    ),
    Builtin::frame("update-keys", 2, 2, "(update-keys m f)", FrameOp::UpdateKeys).doc(
        "The map with f applied to every key.",
        &[("(update-keys {:a 1} name)", "{\"a\" 1}"), ("(update-keys {:a 1} 1)", "!type_error")],
    ),
    Builtin::frame("sum-by", 2, 2, "(sum-by f coll)", FrameOp::SumBy).doc(
        "The sum of what f answers; nil counts nothing.",
        &[("(sum-by :n [{:n 1} {} {:n 2}])", "3"), ("(sum-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("avg-by", 2, 2, "(avg-by f coll)", FrameOp::AvgBy).doc(
        "The mean of what f answers; nil counts nothing.",
        &[("(avg-by :n [{:n 1} {:n 2}])", "1.5"), ("(avg-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("min-by", 2, MANY, "(min-by f coll)", FrameOp::MinBy).doc(
        "The element for which f answers the least.",
        &[("(min-by :n [{:n 2} {:n 1}])", "{:n 1}"), ("(min-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("max-by", 2, MANY, "(max-by f coll)", FrameOp::MaxBy).doc(
        "The element for which f answers the most.",
        &[("(max-by :n [{:n 2} {:n 1}])", "{:n 2}"), ("(max-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("reduce", 2, 3, "(reduce f coll) (reduce f init coll)", FrameOp::Reduce).doc(
        "Combines the elements from the left.",
        &[("(reduce + [1 2 3])", "6"), ("(reduce conj [] [1 2])", "[1 2]"), ("(reduce 1 [1 2])", "!type_error")],
    ),
    Builtin::frame("reduce-kv", 3, 3, "(reduce-kv f init m)", FrameOp::ReduceKv).doc(
        "Combines the entries of a map: f gets what is combined, a key and a value.",
        &[("(reduce-kv (fn [a k v] (+ a v)) 0 {:a 1 :b 2})", "3"), ("(reduce-kv 1 0 {})", "!type_error")],
    ),
    Builtin::frame("merge-with", 1, MANY, "(merge-with f m1 m2 ...)", FrameOp::MergeWith).doc(
        "Merges maps; f combines the values of a key that several have. nil counts as empty.",
        &[
            ("(merge-with + {:a 1} {:a 2 :b 3})", "{:a 3 :b 3}"),
            ("(merge-with + nil {:a 1})", "{:a 1}"),
            ("(merge-with + nil [1])", "!type_error"),
        ],
    ),
    Builtin::frame("sort", 1, 2, "(sort coll) (sort comparator coll)", FrameOp::Sort).doc(
        "The elements in order.",
        &[("(sort [3 1 2])", "[1 2 3]"), ("(sort > [3 1 2])", "[3 2 1]"), ("(sort [1 \"a\"])", "!type_error")],
    ),
    Builtin::frame("sort-by", 2, 3, "(sort-by f coll) (sort-by f comparator coll)", FrameOp::SortBy).doc(
        "The elements in the order of what f answers for them.",
        &[("(sort-by :n [{:n 2} {:n 1}])", "[{:n 1} {:n 2}]"), ("(sort-by 1 [1])", "!type_error")],
    ),
    Builtin::frame("update", 3, MANY, "(update m k f & args)", FrameOp::Update).doc(
        "The map with f applied to the value at a key.",
        &[("(update {:a 1} :a + 10)", "{:a 11}"), ("(update {:a 1} :a 1)", "!type_error")],
    ),
    Builtin::frame("update-in", 3, MANY, "(update-in m path f & args)", FrameOp::UpdateIn).doc(
        "The map with f applied to the value at a path of keys.",
        &[("(update-in {:a {:b 1}} [:a :b] inc)", "{:a {:b 2}}"), ("(update-in {:a 1} [:a] 1)", "!type_error")],
    ),
    Builtin::native("partial", 1, MANY, "(partial f arg1 ...)", partial).doc(
        "A function that calls f with these arguments in front.",
        &[("((partial + 1) 2)", "3"), ("((partial 1) 2)", "!not_callable")],
    ),
    Builtin::native("comp", 0, MANY, "(comp f g ...)", comp).doc(
        "A function that calls the last, and each other with the result of the one behind it.",
        &[("((comp inc #(* 2 %)) 5)", "11"), ("((comp inc 1) 2)", "!not_callable")],
    ),
    Builtin::native("juxt", 1, MANY, "(juxt f g ...)", juxt).doc(
        "A function that answers a vector of what each function answers.",
        &[("((juxt inc dec) 5)", "[6 4]"), ("((juxt 1) 2)", "!not_callable")],
    ),
    Builtin::native("complement", 1, 1, "(complement f)", complement).doc(
        "A function that answers the opposite of f.",
        &[("((complement odd?) 2)", "true"), ("(complement 1)", "!type_error")],
    ),
    Builtin::native("constantly", 1, 1, "(constantly x)", constantly)
        .doc("A function that always answers x.", &[("((constantly 7) 1 2)", "7"), ("(constantly)", "!arity_error")]),
    Builtin::native("fnil", 2, 2, "(fnil f default)", fnil).doc(
        "A function that calls f with a default in place of a nil first argument.",
        &[("((fnil inc 0) nil)", "1"), ("(fnil 1 0)", "!type_error")],
    ),
    Builtin::native("every-pred", 1, MANY, "(every-pred p1 p2 ...)", every_pred).doc(
        "A function that asks whether all predicates are true for all arguments.",
        &[("((every-pred odd? pos?) 3)", "true"), ("(every-pred 1)", "!type_error")],
    ),
    Builtin::native("some-fn", 1, MANY, "(some-fn f1 f2 ...)", some_fn).doc(
        "A function that answers the first true result.",
        &[("((some-fn :a :b) {:b 2})", "2"), ("(some-fn 1)", "!type_error")],
    ),
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
        "The argument for which f answers the most; of equal ones the first.",
        &[("(max-key count [1] [1 2])", "[1 2]"), ("(max-key 1 2 3)", "!not_callable")],
    ),
    Builtin::prelude("min-key", 2, MANY, "(min-key f x y & more)").doc(
        "The argument for which f answers the least; of equal ones the first.",
        &[("(min-key count [1] [1 2])", "[1]"), ("(min-key 1 2 3)", "!not_callable")],
    ),
];
