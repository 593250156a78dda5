//! What the hints of errors say to write, followed to the letter: the mended program is right.

use crate::common;

/// A program with a mistake that models make, what its hint says to write, the program that writes it, and its value.
const FOLLOWED: &[(&str, &str, &str, &str)] = &[
    (
        "(let [x (atom 0)] (doseq [i [1 2]] (swap! x + i)) @x)",
        "write the name without `@`; keep state in loop, reduce or def",
        "(def x 0) (doseq [i [1 2]] (def x (+ x i))) x",
        "3",
    ),
    ("(def x (atom 0)) x", "reduce", "(reduce + 0 [1 2])", "3"),
    (
        "(sort (keys {:env 1 \"db\" 2}))",
        "sort by a number, string",
        "(sort-by name (keys {:env 1 \"db\" 2}))",
        "[\"db\" :env]",
    ),
    (
        "(loop [i 0 s 0] (if (= i 5000) s (recur (inc i) (+ s i))))",
        "use map, filter or reduce over the collection",
        "(reduce + (range 5000))",
        "12497500",
    ),
    (
        "(defn from [n] (lazy-seq (cons n (from (inc n))))) (take 3 (from 1))",
        "(take 3 (iterate #(* 2 %) 1))",
        "(take 3 (iterate inc 1))",
        "[1 2 3]",
    ),
    ("(.intValue 5.7)", "write (int n)", "(int 5.7)", "5"),
    ("(.longValue 5.7)", "write (long n)", "(long 5.7)", "5"),
    ("(.doubleValue 5)", "write (double n)", "(double 5)", "5.0"),
    ("(var? 1)", "ask for the type of a value", "(type 1)", ":number"),
    ("(read-string \"#'a\")", "write the name alone: it is read as a symbol", "(read-string \"a\")", "'a"),
    ("(read-string \"#(inc %)\")", "such as (inc n): it is read as a vector", "(read-string \"(inc n)\")", "['inc 'n]"),
    ("(read-string \"#\\\"a\\\"\")", "(re-pattern s) makes a pattern", "(re-find (re-pattern \"a\") \"ba\")", "\"a\""),
    ("(StringBuilder.)", "(str \"a\" 1)", "(str \"a\" 1)", "\"a1\""),
    ("(UUID/randomUUID)", "ids come from data or a tool", "(parse-uuid \"x\")", "nil"),
    (
        "(LocalDatetime/parse \"2024-01-31T10:00\")",
        "did you mean LocalDateTime?",
        "(str (LocalDateTime/parse \"2024-01-31T10:00\"))",
        "\"2024-01-31T10:00\"",
    ),
    ("(medley/update-vals {:a 1} inc)", "update-vals is a core function", "(update-vals {:a 1} inc)", "{:a 2}"),
    (
        "(json/read-str \"[1]\" :value-fn inc)",
        "(json/read-str s :key-fn keyword)",
        "(json/read-str \"[1]\" :key-fn keyword)",
        "[1]",
    ),
    (
        "(.adjustInto (Instant/parse \"2024-01-01T10:11:12Z\") 1)",
        ".truncatedTo",
        "(str (.truncatedTo (Instant/parse \"2024-01-01T10:11:12Z\") ChronoUnit/HOURS))",
        "\"2024-01-01T10:00:00Z\"",
    ),
    (
        "(let [d (Duration/ofMinutes 5)] (.multipliedBy d 2))",
        ".plus,",
        "(let [d (Duration/ofMinutes 5)] (str (.plus d d)))",
        "\"PT10M\"",
    ),
    (
        "(.toEpochMilli (LocalDate/parse \"2024-01-31\"))",
        ".toEpochDay",
        "(.toEpochDay (LocalDate/parse \"2024-01-31\"))",
        "19753",
    ),
    ("(.keySet {:a 1})", "write (keys m)", "(keys {:a 1})", "[:a]"),
    ("(percentile [1 2] 50)", "(percentile p coll)", "(percentile 50 [1 2])", "1.5"),
    ("(with-out-str (print \"x\"))", "(str \"a\" 1)", "(str \"x\")", "\"x\""),
    ("(print \"x\")", "(println \"a\" 1)", "(println \"x\")", "nil"),
    (
        "(map #(map #(inc %) %) [[1]])",
        "write the inner one as (fn [x] ...)",
        "(map #(map (fn [x] (inc x)) %) [[1]])",
        "[[2]]",
    ),
    ("(reduce + (map :n [{:n 1} {}]))", "(or x 0)", "(reduce + (map (fn [r] (or (:n r) 0)) [{:n 1} {}]))", "1"),
    ("(update {} :n inc)", "(fnil inc 0)", "(update {} :n (fnil inc 0))", "{:n 1}"),
    ("(filter [1 2 3] even?)", "write (filter f coll)", "(filter even? [1 2 3])", "[2]"),
    ("(group-by [{:a 1}] :a)", "write (group-by f coll)", "(group-by :a [{:a 1}])", "{1 [{:a 1}]}"),
    ("(reduce [1 2] +)", "write (reduce f coll)", "(reduce + [1 2])", "3"),
    ("(inc 1 2)", "write (inc x)", "(inc 1)", "2"),
    ("(update {:a 1} :a)", "write (update m k f & args)", "(update {:a 1} :a inc)", "{:a 2}"),
    ("(map inc (range))", "(take 10 s)", "(take 10 (map inc (range)))", "[1 2 3 4 5 6 7 8 9 10]"),
    (
        "(json/generate-string {:a (range)})",
        "(take 10 s)",
        "(json/generate-string {:a (take 2 (range))})",
        r#""{\"a\":[0,1]}""#,
    ),
    (
        "(json/generate-string ##NaN)",
        "(if (NaN? x) nil x)",
        "(let [x ##NaN] (json/generate-string (if (NaN? x) nil x)))",
        r#""null""#,
    ),
    ("(json/generate-string #\"a\")", "write (str x)", "(json/generate-string (str #\"a\"))", r#""\"a\"""#),
    ("(count (iterate inc 0))", "(take 10 s)", "(count (take 10 (iterate inc 0)))", "10"),
    ("(fliter odd? [1 2])", "did you mean filter?", "(filter odd? [1 2])", "[1]"),
    ("(str/uppercase \"a\")", "did you mean str/upper-case?", "(str/upper-case \"a\")", "\"A\""),
    ("(json/parse \"[1]\")", "json/parse-string", "(json/parse-string \"[1]\")", "[1]"),
    ("(str/map inc [1])", "map is a core function: write map", "(map inc [1])", "[2]"),
    ("(require '[clojure.test :as t]) 1", "delete it", "1", "1"),
    ("(require '[clojure.data.avl :as t]) 1", "delete it", "1", "1"),
    ("(< (:n {:n \"3\"}) 5)", "parse-long", "(< (parse-long (:n {:n \"3\"})) 5)", "true"),
    ("(max \"4\" \"5\")", "parse-long", "(max (parse-long \"4\") (parse-long \"5\"))", "5"),
    ("(defn f x (inc x)) (f 1)", "(defn name [parameters] body ...)", "(defn f [x] (inc x)) (f 1)", "2"),
    ("(let [a] a)", "(let [name value ...] body)", "(let [a 1] a)", "1"),
    ("(cond true)", "(cond test result ... :else default)", "(cond false 1 :else 2)", "2"),
    ("{:a 1 :a 2}", "keep one of the two", "{:a 2}", "{:a 2}"),
    ("(/ 6 0)", "test the divisor with zero? first", "(let [d 0] (if (zero? d) nil (/ 6 d)))", "nil"),
    ("(assoc-in {:a 1} [:a :b] 2)", "end the path at that key", "(assoc-in {:a 1} [:a] 2)", "{:a 2}"),
    ("(loop [i 0] (+ 1 (recur (inc i))))", "collect with reduce", "(reduce (fn [n _] (+ 1 n)) 0 [1 2])", "2"),
    ("(recur 1)", "write (loop", "(loop [i 0] (if (< i 3) (recur (inc i)) i))", "3"),
    ("(loop [] (doseq [x [1]] (recur)))", "use reduce", "(reduce + 0 [1])", "1"),
    ("(pcalls inc 5)", "pass a function", "(pcalls (fn [] 1) (fn [] 5))", "[1 5]"),
    ("(group-by 5 [1])", "a keyword, map, set or vector", "(group-by {1 :a} [1])", "{:a [1]}"),
    ("(var inc)", "#'name", "(#'inc 1)", "2"),
    ("(binding [x 1] x)", "pass what changes as an argument", "(defn f [x] x) (f 1)", "1"),
    ("(defmacro twice [x] x)", "(defn twice [f x]", "(defn twice [f x] (f (f x))) (twice inc 1)", "3"),
    ("(str \"a", "add `\"`", "(str \"a\")", "\"a\""),
    ("(inc 1", "add `)`", "(inc 1)", "2"),
    ("(inc 1))", "delete it", "(inc 1)", "2"),
    (
        "(sort-by \"n\" [{\"n\" 2} {\"n\" 1}])",
        "(sort-by [\"key\"] coll)",
        "(map :n (sort-by [\"n\"] [{\"n\" 2} {\"n\" 1}]))",
        "[1 2]",
    ),
    (
        "(reduce-kv (fn [a i v] (conj a [i v])) [] [:x])",
        "(zipmap (range) v)",
        "(reduce-kv (fn [a i v] (conj a [i v])) [] (zipmap (range) [:x]))",
        "[[0 :x]]",
    ),
    ("(let [{:keys [a]} 5] a)", "test it with map? first", "(let [x 5] (if (map? x) (:a x) :none))", ":none"),
    ("(let [{:keys [a]} [1]] a)", "by position: [a b & more]", "(let [[a] [1]] a)", "1"),
    ("(let [[a] {:k 1}] a)", "{:keys [a b]}", "(let [{:keys [k]} {:k 1}] k)", "1"),
    ("(let [[a] #{1}] a)", "(vec s)", "(let [[a] (vec #{1})] a)", "1"),
    ("(let [[a b] (iterate inc 1)] b)", "(take 2 s)", "(let [[a b] (take 2 (iterate inc 1))] b)", "2"),
    ("((fn [& {:keys [a]}] a) :a)", "(f {:a 1})", "((fn [& {:keys [a]}] a) {:a 1})", "1"),
    (
        "(first (take-while pos? (iterate inc 1)))",
        "(take-while f (take 1000 s))",
        "(first (take-while pos? (take 1000 (iterate inc 1))))",
        "1",
    ),
    (
        "(project #{{:a 1 :b 2}} [:a])",
        "write clojure.set/project",
        "(clojure.set/project #{{:a 1 :b 2}} [:a])",
        "#{{:a 1}}",
    ),
    ("(escape \"a\" {})", "write clojure.string/escape", "(clojure.string/escape \"a\" {})", "\"a\""),
    ("(floor-div 7 2)", "write clojure.math/floor-div", "(clojure.math/floor-div 7 2)", "3"),
    (
        "(str/replace \"a\" \"a\")",
        "(clojure.string/replace s pattern replacement)",
        "(clojure.string/replace \"a\" \"a\" \"b\")",
        "\"b\"",
    ),
    (
        "(str (.plus (LocalDate/of 2024 1 1) (Duration/ofDays 3)))",
        "(.plus date 3 ChronoUnit/DAYS)",
        "(str (.plus (LocalDate/of 2024 1 1) 3 ChronoUnit/DAYS))",
        "\"2024-01-04\"",
    ),
    (
        "(throw (MyException. \"a\"))",
        "(IllegalArgumentException. message)",
        "(try (throw (IllegalArgumentException. \"a\")) (catch Exception e :caught))",
        ":caught",
    ),
    (
        "(throw (AssertionError. \"a\"))",
        "(catch Throwable e ...)",
        "(try (throw (AssertionError. \"a\")) (catch Throwable e :caught))",
        ":caught",
    ),
    (
        "(throw (IlegalStateException. \"a\"))",
        "did you mean IllegalStateException?",
        "(try (throw (IllegalStateException. \"a\")) (catch Exception e :caught))",
        ":caught",
    ),
    (
        "(throw (SecurityException. \"a\"))",
        "throw (ex-info message data)",
        "(try (throw (ex-info \"a\" {})) (catch Exception e :caught))",
        ":caught",
    ),
    ("(= (class 1) Exception)", "(instance? Exception x)", "(instance? Exception 1)", "false"),
    (
        "(try (inc nil) (catch Exception e (.getLocalizedMessage e)))",
        "(.getMessage e)",
        "(try (throw (Exception. \"a\")) (catch Exception e (.getMessage e)))",
        "\"a\"",
    ),
    (
        "(pmap (fn [x] (throw (ex-info \"a\" {:x x}))) [1])",
        "catch it inside the function",
        "(pmap (fn [x] (try (throw (ex-info \"a\" {:x x})) (catch Exception e (ex-data e)))) [1])",
        "[{:x 1}]",
    ),
    ("(+ 1 2) ``` (* 2 3)", "delete the mark", "(+ 1 2) (* 2 3)", "6"),
    ("(instance? java.util.Map$Entry [1 2])", "vector?", "(vector? [1 2])", "true"),
    (
        "(update {} :k clojure.set/union #{1})",
        "(or s #{})",
        "(update {} :k #(clojure.set/union (or % #{}) #{1}))",
        "{:k #{1}}",
    ),
];

#[test]
fn a_hint_followed_mends_the_program() {
    let mut wrong = Vec::new();
    for (program, says, mended, value) in FOLLOWED {
        let hint = match common::refusal(program) {
            Some(error) => error.hint.unwrap_or_default(),
            None => {
                wrong.push(format!("{program}\n  no error"));
                continue;
            }
        };
        if !hint.contains(says) {
            wrong.push(format!("{program}\n  the hint does not say {says:?}: {hint:?}"));
        }
        let (came, _) = common::run(mended, 100_000);
        wrong.extend(common::difference(&came, value).map(|difference| format!("{mended}\n{difference}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A walk that takes a number of elements is not told to take some.
#[test]
fn a_walk_that_is_bounded_has_the_hint_of_its_limit() {
    for (program, says) in [("(take-while pos? (iterate inc 1))", true), ("(take 1000000000 (iterate inc 1))", false)] {
        let hint = common::refusal(program).and_then(|error| error.hint).unwrap_or_default();
        assert_eq!(hint.contains("an endless sequence"), says, "{program}: {hint}");
        assert!(hint.contains("raise the limit"), "{program}: {hint}");
    }
}

/// What a hint names as being there is there.
#[test]
fn a_list_of_classes_names_those_that_have_something() {
    let hint = common::refusal("(Nope/of 1)").and_then(|error| error.hint).unwrap_or_default();
    assert!(hint.contains("LocalDate, LocalDateTime") && !hint.contains("Period"), "{hint}");
}

#[test]
fn a_wrong_number_of_arguments_is_named_with_its_noun() {
    for (program, message) in [
        ("((fn f ([a] a) ([a b] a)) 1 2 3)", "f takes the arguments [a] or [a b], got 3 arguments"),
        ("((fn f ([] 0) ([a b] a)) 1)", "f takes the arguments [] or [a b], got 1 argument"),
        ("((fn f [a] a))", "f takes 1 argument [a], got 0"),
        ("((fn f [a & more] a))", "f takes at least 1 argument [a & more], got 0"),
        ("(count)", "count takes 1 argument, got 0"),
        ("(name 1 2)", "name takes 1 argument, got 2"),
        ("(hash-map 1)", "hash-map expects keys and values in pairs, got 1 argument"),
        ("(get {})", "get takes 2 to 3 arguments, got 1"),
        ("({} 1 2 3)", "a map called as a function takes a key and a default, got 3 arguments"),
    ] {
        let error = common::refusal(program).expect(program);
        assert_eq!(error.message, message, "{program}");
    }
}

/// A message is about the argument that is wrong, and not about one that was not given.
#[test]
fn a_message_is_about_what_the_program_says() {
    for (program, message) in [
        (
            "(.substring \"abc\" 9)",
            ".substring: the start 9 is not from 0 to 3, the length of the string in UTF-16 units",
        ),
        ("(.substring \"abc\" 1 9)", ".substring: the part from 1 to 9 is not inside a string of 3 UTF-16 units"),
        ("(LocalDate/of 2024 13 1)", "LocalDate/of: there is no month 13: write 1 to 12"),
        ("(LocalDateTime/of 2024 0 1 0 0)", "LocalDateTime/of: there is no month 0: write 1 to 12"),
        ("(LocalDate/of 2024 2 30)", "LocalDate/of: there is no day 30 in month 2 of 2024"),
        ("(inc (recur 1))", "recur needs a loop or a function directly around it"),
        ("(loop [x 1] (inc (recur x)))", "recur must be the last thing its loop or function does"),
    ] {
        let error = common::refusal(program).expect(program);
        assert_eq!(error.message, message, "{program}");
    }
}
