//! The keys of an object keep their order from JSON in to JSON out.

use lisp_runtime::{Engine, Input, Keys, Session};
use proptest::prelude::*;
use serde_json::Value;

fn value(program: &str, data: &str, keys: Keys) -> String {
    let outcome = Engine::default().eval(program, Input::new().json("x", data.to_owned()).json_keys(keys));
    outcome.json().unwrap_or_else(|| panic!("{program}: {:?}", outcome.problem())).to_owned()
}

const ORDER: &str = r#"{"total":5,"id":1,"by":{"name":"Ann","age":7},"at":null}"#;

#[test]
fn what_adds_takes_or_changes_entries_keeps_it() {
    for (program, expected) in [
        ("data/x", ORDER),
        (r#"(assoc data/x "id" 2)"#, r#"{"total":5,"id":2,"by":{"name":"Ann","age":7},"at":null}"#),
        (r#"(assoc data/x "a" 2)"#, r#"{"total":5,"id":1,"by":{"name":"Ann","age":7},"at":null,"a":2}"#),
        (
            r#"(assoc data/x "z" 1 "y" 2 "a" 3)"#,
            r#"{"total":5,"id":1,"by":{"name":"Ann","age":7},"at":null,"z":1,"y":2,"a":3}"#,
        ),
        (r#"(update-in data/x ["by" "age"] inc)"#, r#"{"total":5,"id":1,"by":{"name":"Ann","age":8},"at":null}"#),
        (r#"(dissoc data/x "id")"#, r#"{"total":5,"by":{"name":"Ann","age":7},"at":null}"#),
        (r#"(dissoc data/x "total" "at")"#, r#"{"id":1,"by":{"name":"Ann","age":7}}"#),
        (r#"(select-keys data/x ["id" "at" "total"])"#, r#"{"id":1,"at":null,"total":5}"#),
        (r#"(merge data/x {"n" 1 "id" 3})"#, r#"{"total":5,"id":3,"by":{"name":"Ann","age":7},"at":null,"n":1}"#),
        (r#"(merge {"z" 1} data/x)"#, r#"{"z":1,"total":5,"id":1,"by":{"name":"Ann","age":7},"at":null}"#),
        (r#"(conj {"z" 1} data/x)"#, r#"{"z":1,"total":5,"id":1,"by":{"name":"Ann","age":7},"at":null}"#),
        ("(update-vals data/x some?)", r#"{"total":true,"id":true,"by":true,"at":false}"#),
        ("(update-keys data/x keyword)", ORDER),
        ("(map identity [data/x])", &format!("[{ORDER}]")),
        ("(pmap #(assoc % :b 1) [{:c 1 :a 2}])", r#"[{"c":1,"a":2,"b":1}]"#),
        // What is written in a program.
        ("{:z 1 :a 2}", r#"{"z":1,"a":2}"#),
        ("(let [n 1] {:z n :a 2})", r#"{"z":1,"a":2}"#),
        ("(let [k :z] {k 1 :a 2})", r#"{"z":1,"a":2}"#),
        (r#"(rename-keys data/x {"id" "key"})"#, r#"{"total":5,"key":1,"by":{"name":"Ann","age":7},"at":null}"#),
        (
            r#"(rename-keys data/x {"id" "total" "total" "id"})"#,
            r#"{"id":5,"total":1,"by":{"name":"Ann","age":7},"at":null}"#,
        ),
        (r#"(rename-keys data/x {:id "at" :none 1})"#, r#"{"total":5,"at":1,"by":{"name":"Ann","age":7}}"#),
        ("(keywordize-keys data/x)", ORDER),
        ("(stringify-keys (keywordize-keys data/x))", ORDER),
        ("(hash-map :z 1 :a 2)", r#"{"z":1,"a":2}"#),
        ("(zipmap [:z :a] [1 2])", r#"{"z":1,"a":2}"#),
        ("(into {} [[:z 1] [:a 2] [:m 3]])", r#"{"z":1,"a":2,"m":3}"#),
        ("(assoc {} :z 1 :a 2)", r#"{"z":1,"a":2}"#),
        ("(reduce (fn [m k] (assoc m k 1)) {} [:z :a :m])", r#"{"z":1,"a":1,"m":1}"#),
        ("{2 :a 10 :b 1 :c}", r#"{"2":"a","10":"b","1":"c"}"#),
        ("((fn [& {:as all}] all) :z 1 :a 2)", r#"{"z":1,"a":2}"#),
        (r#"(json/parse-string "{\"z\":1,\"a\":2}")"#, r#"{"z":1,"a":2}"#),
        // What was found first, whatever is assigned later.
        (r#"(json/parse-string "{\"z\":1,\"a\":2,\"z\":3}")"#, r#"{"z":3,"a":2}"#),
    ] {
        assert_eq!(value(program, ORDER, Keys::Strings), expected, "{program}");
    }
    assert_eq!(value("(assoc data/x :n 1)", r#"{"b":1,"a":2}"#, Keys::Keywords), r#"{"b":1,"a":2,"n":1}"#);
}

/// Programs see keys in order, and what is made of what they see is in order; equal values are equal.
#[test]
fn programs_do_not_see_it() {
    for (program, expected) in [
        ("(keys data/x)", r#"["at","by","id","total"]"#),
        ("(str data/x)", r#""{\"at\" nil \"by\" {\"age\" 7 \"name\" \"Ann\"} \"id\" 1 \"total\" 5}""#),
        ("(json/generate-string {:z 1 :a 2})", r#""{\"a\":2,\"z\":1}""#),
        ("(into {} data/x)", r#"{"at":null,"by":{"name":"Ann","age":7},"id":1,"total":5}"#),
        ("(into (sorted-map) {:z 1 :a 2})", r#"{"a":2,"z":1}"#),
        ("(sorted-map :z 1 :a 2)", r#"{"a":2,"z":1}"#),
        ("(frequencies [:z :a :z])", r#"{"a":1,"z":2}"#),
        ("(group-by :k [{:k 2} {:k 1}])", r#"{"1":[{"k":1}],"2":[{"k":2}]}"#),
        ("(= {:z 1 :a 2} {:a 2 :z 1})", "true"),
        // Two keys that stand for the same one of another map: the last in key order counts.
        (r#"(merge {"a_b" 1} {"a_b" -3 :a_b -2})"#, r#"{"a_b":-3}"#),
        (r#"(merge {"a_b" 1} {:a_b -2 "a_b" -3})"#, r#"{"a_b":-3}"#),
        (r#"(merge {"a_b" 1 "z" 0} {:x 1 :a-b -2 :c 0 :a_b -3})"#, r#"{"a_b":-3,"z":0,"c":0,"x":1}"#),
        (r#"(conj {"a_b" 1} {"a_b" -3 :a_b -2} {:q 1 :p 1})"#, r#"{"a_b":-3,"q":1,"p":1}"#),
        ("(count (set [{:z 1 :a 2} {:a 2 :z 1}]))", "1"),
        ("(get {{:z 1 :a 2} :found} {:a 2 :z 1})", r#""found""#),
    ] {
        assert_eq!(value(program, ORDER, Keys::Strings), expected, "{program}");
    }
}

/// Large objects are trees, whose roots have the list of the keys.
#[test]
fn large_objects_keep_it() {
    let object = |keys: &mut dyn Iterator<Item = usize>| {
        let fields: Vec<String> = keys.map(|n| format!(r#""k{n:03}":{n}"#)).collect();
        format!("{{{}}}", fields.join(","))
    };
    for count in [31, 32, 33, 70, 500] {
        let (down, up) = (object(&mut (0..count).rev()), object(&mut (0..count)));
        for data in [&down, &up] {
            for program in [
                "data/x",
                r#"(assoc data/x "k007" 7)"#,
                r#"(update data/x "k030" identity)"#,
                "(update-vals data/x identity)",
                "(update-keys data/x identity)",
                "(merge {} data/x)",
                "(merge data/x {})",
                r#"(assoc (dissoc data/x "k005") "k005" 5)"#,
                "(select-keys data/x (keys data/x))",
                // A small heap is compacted again and again.
                "(reduce (fn [x _] (update-vals x identity)) data/x (range 100))",
            ] {
                // Keys that are added come last; among many, at their place.
                if program.contains("dissoc") && (count <= 33 || data == &up)
                    || program.contains("select-keys") && data == &down
                {
                    continue;
                }
                assert_eq!(&value(program, data, Keys::Strings), data, "{count}: {program}");
            }
        }
        let last = format!(r#"{},"a":0}}"#, down.trim_end_matches('}'));
        assert_eq!(value(r#"(assoc data/x "a" 0)"#, &down, Keys::Strings), last, "{count}");
        assert_eq!(value(r#"(merge data/x {"a" 0})"#, &down, Keys::Strings), last, "{count}");
        assert_eq!(value("(update-keys data/x #(str % %))", &down, Keys::Strings), {
            let doubled: Vec<String> = (0..count).rev().map(|n| format!(r#""k{n:03}k{n:03}":{n}"#)).collect();
            format!("{{{}}}", doubled.join(","))
        });
        assert_eq!(value("(keywordize-keys data/x)", &down, Keys::Strings), down, "{count}");
        // As many as it takes to make the list of keys short again, and the tree an array map.
        for left in [count - 1, count / 2, count / 5, 3] {
            let some: Vec<String> = (left..count).map(|n| format!(r#""k{n:03}""#)).collect();
            let program = format!("(reduce dissoc data/x [{}])", some.join(" "));
            assert_eq!(value(&program, &down, Keys::Strings), object(&mut (0..left).rev()), "{count}: {left}");
        }
    }
    // Keys that are added one by one to a large map come last, in key order.
    let grown =
        value("(reduce #(assoc %1 %2 0) data/x [:z :y :x :c :b :a])", &object(&mut (0..40).rev()), Keys::Strings);
    assert!(grown.ends_with(r#""k000":0,"a":0,"b":0,"c":0,"x":0,"y":0,"z":0}"#), "{grown}");
    // One that was in key order stays so.
    let sorted = value(r#"(assoc data/x "a" 0)"#, &object(&mut (0..40)), Keys::Strings);
    assert!(sorted.starts_with(r#"{"a":0,"k000":0"#), "{sorted}");
}

/// Turns, saved sessions and definitions keep it.
#[test]
fn sessions_keep_it() {
    let engine = Engine::default();
    let mut session: Session = engine.session(Input::new());
    session.eval("(def m {:z 1 :a 2})");
    let expected = Some(r#"{"z":1,"a":2,"b":3}"#);
    assert_eq!(session.eval("(assoc m :b 3)").json(), expected);
    let saved = session.save().expect("a saved session");
    let mut restored = engine.load_session(&saved, Input::new()).expect("a session");
    assert_eq!(restored.eval("*1").json(), expected);
    assert_eq!(restored.eval("(assoc m :b 3)").json(), expected);
}

/// JSON in any order, of any depth.
fn objects() -> impl Strategy<Value = String> {
    let leaf = (0..100_i32).prop_map(|n| n.to_string());
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop::collection::vec(("[a-f]{1,2}", inner), 0..6).prop_map(|fields| {
            let mut seen = std::collections::HashSet::new();
            let fields: Vec<String> = fields
                .into_iter()
                .filter(|(key, _)| seen.insert(key.clone()))
                .map(|(key, value)| format!("\"{key}\":{value}"))
                .collect();
            format!("{{{}}}", fields.join(","))
        })
    })
}

proptest! {
    #[test]
    fn what_comes_in_comes_out(objects in prop::collection::vec(objects(), 0..6)) {
        let text = format!("[{}]", objects.join(","));
        prop_assert_eq!(value("data/x", &text, Keys::Strings), text.clone());
        prop_assert_eq!(value("(vec (reverse (reverse data/x)))", &text, Keys::Keywords), text.clone());
        // A small heap is compacted again and again.
        let churn = "(reduce (fn [x _] (mapv identity x)) data/x (range 300))";
        prop_assert_eq!(value(churn, &text, Keys::Strings), text.clone());
        let parsed: Value = serde_json::from_str(&text).unwrap();
        let again: Value = serde_json::from_str(&value("(mapv #(into {} %) (filter map? data/x))", &text, Keys::Strings)).unwrap();
        let maps: Vec<Value> = parsed.as_array().unwrap().iter().filter(|value| value.is_object()).cloned().collect();
        prop_assert_eq!(again, Value::Array(maps));
    }
}
