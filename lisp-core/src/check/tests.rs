use super::*;
use crate::json;
use crate::syntax::ReadLimits;
use crate::vm::{Ending, Grant, Machine, Settings, Step};

const ORDERS: &str = r#"[{"id": "o1", "status": "paid", "total": 120.5, "items": [{"sku": "A1", "qty": 2}]},
    {"id": "o2", "status": "open", "total": 80, "note": null, "items": []}]"#;

const MIXED: &str = r#"[{"id": "m1", "price": 5, "note": "a", "tags": []}, {"id": "m2", "price": "7", "tags": [1]}]"#;

const TREE: &str = r#"{"name": "a", "children": [{"name": "b", "children": [{"name": "c", "children": []}]}]}"#;

fn tool(name: &str) -> Option<ToolShape> {
    let parameter =
        |name: &str, types, is_required| Parameter { name: name.into(), shape: Shape::of(types), is_required };
    (name == "search").then(|| ToolShape {
        parameters: vec![
            parameter("query", Types::STRING, true),
            parameter("max_results", Types::INT | Types::NIL, false),
        ],
        is_open: false,
        result: Shape::listed([("hits".into(), Shape::list(Shape::UNKNOWN), true)]),
    })
}

/// A machine with data and a program.
fn loaded(source: &str, settings: Settings) -> (Machine, Arc<Program>, Forms) {
    let grant = Grant::build(usize::MAX, |h, b| {
        let wide: Vec<String> = (0..40).map(|n| format!("\"k{n}\": 1")).collect();
        let wide = format!("[{{\"v\": 5}}, {{\"v\": \"51\", {}}}]", wide.join(", "));
        for (name, text) in [
            ("orders", ORDERS),
            ("n", "3"),
            ("by_id", r#"{"o1": {"total": 1}}"#),
            ("tree", TREE),
            ("mixed", MIXED),
            ("by_number", r#"{"7": 1, "8": 2}"#),
            ("none", "[]"),
            ("nothing", "null"),
            ("spelt", r#"{"order_id": "A1"}"#),
            ("address", r#"{"line1": "a", "price_min": 1, "date": 2, "item": 3, "status": "x"}"#),
            ("wide", &wide),
        ] {
            b.data(name, json::read(h, text).map_err(|_| ()).expect("JSON"));
        }
        Ok(())
    })
    .expect("a grant");
    let (program, forms) = Program::compile_unless(source, &ReadLimits::default(), &|| false).expect("a program");
    let mut machine = Machine::new(vec![Arc::new(grant)], settings);
    let program = Arc::new(program);
    machine.load(program.clone()).expect("the names");
    (machine, program, forms)
}

fn found(source: &str) -> Vec<Finding> {
    let (machine, program, forms) = loaded(source, Settings::default());
    machine.check(0, Some((&*program, &forms)), &tool, &|| false)
}

/// The notes about a run in slices of this fuel, which compacts its heap this often.
fn noted(source: &str, slice: u64, compact_every: Option<u64>) -> Vec<Finding> {
    let settings = Settings { notes: true, compact_every, heap_bytes: 0, ..Settings::default() };
    let (mut machine, program, forms) = loaded(source, settings);
    let found = machine.check(0, Some((&*program, &forms)), &tool, &|| false);
    let ending = loop {
        if let Step::Done(ending) = machine.resume(slice) {
            break ending;
        }
    };
    assert!(matches!(ending, Ending::Value), "{source}: {ending:?}");
    machine.notes(0, Some((&*program, &forms)), &found, &|| false)
}

fn repairs(source: &str) -> Vec<(FindingKind, String)> {
    let repair = |finding: Finding| (finding.kind, finding.repair.unwrap_or_default());
    found(source).into_iter().map(repair).collect()
}

/// Programs with one mistake, and its repair.
#[test]
fn mistakes_are_found() {
    let keys = [
        ("(map :totl data/orders)", "write :total"),
        ("(reduce + (map :totals data/orders))", "write :total"),
        ("(:statsu (first data/orders))", "write :status"),
        ("(for [o data/orders] (get o \"totl\"))", "write \"total\""),
        ("(mapv (fn [{:keys [id totl]}] [id totl]) data/orders)", "write :total"),
        ("(defn f [o] (:totl o)) (map f data/orders)", "write :total"),
        ("(->> data/orders (filter #(= (:status %) \"paid\")) (sort-by :totl))", "write :total"),
        ("(->> data/orders (group-by :status) (map (fn [[k os]] [k (map :totl os)])))", "write :total"),
        ("(mapcat (fn [o] (map :quty (:items o))) data/orders)", "write :qty"),
        ("(get-in data/orders [0 :totl])", "write :total"),
        ("(map (juxt :id :totl) data/orders)", "write :total"),
        ("(map #(or (:totl %) 0) data/orders)", "write :total"),
        ("(let [ks [:id :totl]] (map #(mapv % ks) data/orders))", "write :total"),
        ("(map (fn [o] (map #(get o %) [:id :totl])) data/orders)", "write :total"),
        ("(sort (fn [a b] (compare (:id a) (:totl b))) data/orders)", "write :total"),
        ("(set/project data/orders [:id :totl])", "write :total"),
        ("(map #(if (:totl %) (:totl %) (:id %)) data/orders)", "write :total"),
        ("(map (comp inc :totl) data/orders)", "write :total"),
        ("(reduce (fn [m o] (assoc m (:id o) (:totl o))) {} data/orders)", "write :total"),
        ("(let [m {:count 1 :sum 2}] (:cuont m))", "write :count"),
        ("(map #(select-keys % [:id :totl]) data/orders)", "write :total"),
        ("(loop [os data/orders n 0] (if (empty? os) n (recur (rest os) (+ n (:totl (first os))))))", "write :total"),
        ("(:hit (tool/search {:query \"x\"}))", "write :hits"),
        ("(sum-by :totl data/orders)", "write :total"),
        ("(max-by :totl data/orders)", "write :total"),
        ("(apply max (map :totl data/orders))", "write :total"),
    ];
    for (source, repair) in keys {
        assert_eq!(repairs(source), [(FindingKind::UnknownKey, repair.to_owned())], "{source}");
    }
    let never = [
        ("(filter #(= (:status %) :paid) data/orders)", "write \"paid\""),
        ("(filter (fn [o] (= :paid (:status o))) data/orders)", "write \"paid\""),
        ("(filter (comp #{:paid :open} :status) data/orders)", "write \"paid\", without the colon"),
        ("(filter #(contains? #{:paid} (:status %)) data/orders)", "write \"paid\", without the colon"),
        ("(map #(case (:status %) :paid 1 :open 2 0) data/orders)", "write \"paid\", without the colon"),
        ("(filter #(= (:id %) 1) data/orders)", "write \"1\""),
        ("(= data/n \"3\")", "write 3"),
    ];
    for (source, repair) in never {
        assert_eq!(repairs(source), [(FindingKind::NeverEqual, repair.to_owned())], "{source}");
    }
    let tools = [
        ("(tool/search {:qurey \"x\" :query \"y\"})", FindingKind::UnknownArgument, "write :query"),
        ("(tool/search {})", FindingKind::MissingArgument, "add :query to the arguments"),
        ("(map #(tool/search {:query 1 :max-results %}) [1])", FindingKind::WrongArgument, "convert it: (str n)"),
        ("(tool/search {:text \"x\"})", FindingKind::UnknownArgument, "write :query"),
        ("(tool/search)", FindingKind::MissingArgument, "add :query to the arguments"),
        ("(tool/search \"x\")", FindingKind::WrongArgument, "write (tool/search {:query ...})"),
        ("(tool/search \"x\" 5)", FindingKind::WrongArgument, "write (tool/search {:query ...})"),
    ];
    for (source, kind, repair) in tools {
        assert_eq!(repairs(source), [(kind, repair.to_owned())], "{source}");
    }
}

/// Programs with an operand of a wrong type, a test that goes one way, or a result that is no value.
#[test]
fn what_fails_or_does_not_decide_is_found() {
    use FindingKind::{ConstantTest, FunctionResult, UnknownData, UnknownKey, WrongType};
    for (source, kind, repair) in [
        ("(reduce + 0 (map :note data/orders))", WrongType, "give nil a value: (or x 0)"),
        ("(map (fn [o] (+ 1 (:id o))) data/orders)", WrongType, "convert it: (parse-double s)"),
        ("(map #(inc (:price %)) data/mixed)", WrongType, "convert it: (parse-double s)"),
        ("(reduce + (map :price data/mixed))", WrongType, "convert it: (parse-double s)"),
        ("(apply + (map :price data/mixed))", WrongType, "convert it: (parse-double s)"),
        ("(sum-by :price data/mixed)", WrongType, "convert it: (parse-double s)"),
        ("(sort-by :price data/mixed)", WrongType, "convert them: (parse-double s), or (str n)"),
        ("(sort (map :price data/mixed))", WrongType, "convert them: (parse-double s), or (str n)"),
        ("(reduce (fn [n o] (+ n (:price o))) 0 data/mixed)", WrongType, "convert it: (parse-double s)"),
        ("(for [o data/mixed] (* 2 (:price o)))", WrongType, "convert it: (parse-double s)"),
        (
            "(for [[k os] (group-by :id data/mixed)] [k (reduce + 0 (map :price os))])",
            WrongType,
            "convert it: (parse-double s)",
        ),
        ("(map (fn [{:keys [note]}] (str/upper-case note)) data/mixed)", WrongType, "give nil a value: (or s \"\")"),
        ("(if (keys (first data/orders)) 1 2)", ConstantTest, "write (seq ...) around it"),
        (
            "(when-let [paid (filter #(= (:status %) \"x\") data/orders)] (count paid))",
            ConstantTest,
            "write (seq ...) around it",
        ),
        ("(defn f [& more] (if more 1 2)) (f)", ConstantTest, "write (seq ...) around it"),
        ("(cond (re-seq #\"x\" (:id (first data/orders))) 1 :else 2)", ConstantTest, "write (seq ...) around it"),
        ("(if even? 1 2)", ConstantTest, "call it, as in (even? n)"),
        ("(int? (/ data/n 2))", ConstantTest, "write (zero? (mod a b))"),
        ("(contains? [\"a\"] 0)", ConstantTest, "compare with the length: (< index (count list))"),
        ("(map :id)", FunctionResult, "call it, or pass the list that it lacks: (map f list)"),
        ("(:total data/orders)", UnknownKey, "map over it: (map f list), or take one element: (first list)"),
        (
            "(map #(:sku (:items %)) data/orders)",
            UnknownKey,
            "map over it: (map f list), or take one element: (first list)",
        ),
        ("(map #(:total (:id %)) data/orders)", UnknownKey, ""),
        ("(get data/by_number 7)", UnknownKey, "write \"7\""),
        ("(map :id data/ordesr)", UnknownData, "write data/orders"),
        ("(defn later [o] (tool/search {:qurey \"x\"}))", FindingKind::UnknownArgument, "write :query"),
    ] {
        assert_eq!(repairs(source), [(kind, repair.to_owned())], "{source}");
    }
}

/// What fails only in a branch, after a test, or not at all, is no finding.
#[test]
fn what_may_not_fail_is_no_finding() {
    for source in [
        "(map #(if (number? (:price %)) (inc (:price %)) 0) data/mixed)",
        "(reduce + (filter number? (map :price data/mixed)))",
        "(some #(> (:price %) 1) data/mixed)",
        "(map #(+ 1 (or (:note %) 0)) data/mixed)",
        "(try (reduce + (map :price data/mixed)) (catch Exception e 0))",
        "(reduce (fn [n o] (if (string? (:price o)) (reduced n) (+ n (:price o)))) 0 data/mixed)",
        "(doseq [o data/mixed] (when (string? (:price o)) (return 1))) (reduce + (map :price data/mixed))",
        "(if (> data/n 5) (reduce + (map :price data/mixed)) 0)",
        "(for [o data/mixed t (:tags o)] (+ 1 (:price o)))",
        "(map (fn [o] (map (fn [t] (+ 1 (:price o))) (:tags o))) data/mixed)",
        "(reduce + (map :price [(first data/mixed)]))",
        "(reduce + [\"a\"])",
        "(sum-by :note data/orders)",
        "(sort-by :note data/mixed)",
        "(map (fn [[k os]] (reduce + (map :price os))) (group-by :id data/mixed))",
        "(map (fn [[k os]] (sort-by :price os)) (group-by :id data/mixed))",
        "(map #(+ 1 %) [])",
        "(for [x []] (+ 1 \"a\"))",
        "(and (> data/n 5) (+ 1 (:note (first data/mixed))))",
        "(if (seq (keys (first data/orders))) 1 2)",
        "(or (:items data/orders) data/orders)",
        "(if (:items data/orders) 1 data/orders)",
        "(defn all [x] (if (vector? x) (map all x) (:id x))) (all data/orders)",
        "(get data/by_number \"7\")",
        "(contains? [1 2] 0)",
        "(defn f [g x] (if g (g x) x)) (f inc 1)",
        "(get [1 2] 0)",
        "(map :id data/other)",
    ] {
        assert_eq!(found(source), [], "{source}");
    }
}

/// Programs that run right, although the facts about them are easily mistaken.
#[test]
fn facts_are_certain() {
    for source in [
        "(when-let [n (not-empty (:id (first data/orders)))] (tool/search {:query n}))",
        "(doseq [[k v] data/none] (tool/search {:query k}))",
        "(doseq [p data/none] (tool/search {:query (first p)}))",
        "(reduce (fn [n [k v]] (tool/search {:query k})) 0 data/none)",
        "(doseq [k (keys data/nothing)] (tool/search {:query k}))",
        "(doseq [p data/none] (tool/search {:query 1}))",
        "(tool/search {:query (peek [1 \"a\"])})",
        "(tool/search {:query (get (into {} [{\"x\" \"s\"}]) \"x\")})",
        "(tool/search {:query ({\"a\" 1} (str \"b\") \"none\")})",
        "(= ({\"a\" \"x\"} (str \"b\") :none) :none)",
        "(tool/search {:query (:order-id (select-keys data/spelt [:order-id]))})",
        "(update data/spelt :order-id (fn [id] (tool/search {:query id})))",
        "(let [m (assoc data/spelt :order-id 5)] (= (get m \"order_id\") 5))",
        "(let [m (merge data/spelt {:order-id 5})] (= (get m \"order_id\") 5))",
        "(def cur 0) (doseq [o data/orders] (when (not= cur 0) (tool/search {:query cur})) (def cur (:id o)))",
        "(def x 0) (dotimes [i 3] (when (= x \"5\") 1) (def x \"5\"))",
        "(let [v (:note (last data/orders) 0)] (if (nil? v) (:total (first data/orders)) (inc v)))",
        "(let [{:keys [note] :or {note \"q\"}} (last data/orders)] (if (nil? note) 1 2))",
        "(count (filter #(= (:v %) \"51\") data/wide))",
        "(tool/search {:query (get {:a 1 \"a\" \"5\"} \"a\")})",
        "(defn mk [v] (fn g [h] (when h (h nil)) (= v \"7\"))) (let [a (mk 7) b (mk \"7\")] (b a))",
        "(str (:line1 data/address) (:line2 data/address))",
        "(- (:price_max data/address 100) (:price_min data/address))",
        "(:rate data/address)",
        "(:hits2 (tool/search {:query \"x\"}))",
        "(if (nil? (:other (tool/search {:query \"x\"}))) 1 2)",
        "(doseq [o data/orders] (tool/search (dissoc {:query \"a\" :junk 1} :junk)))",
        "(tool/search (cond-> {:query \"a\"} (> data/n 5) (assoc :priority 1)))",
        "(let [a {:query \"a\"} a (if (> data/n 5) (assoc a :urgent true) a)] (tool/search a))",
        "(doseq [o data/orders :when (:email o)] (tool/search {:query (:email o)}))",
        "(doseq [o data/orders :let [e (:email o)] :when e] (tool/search {:query e}))",
        "(doseq [o (filter :email data/orders)] (tool/search {:query (:email o)}))",
        "(doseq [o data/orders] (when-not (str/blank? (:email o)) (tool/search {:query (:email o)})))",
        "(if (= (:status data/address) \"cart\") (count (:items data/address)) 1)",
    ] {
        assert_eq!(found(source), [], "{source}");
    }
}

/// Each function that is said to refuse a type fails with every value of it.
#[test]
fn what_is_refused_fails() {
    let samples: &[(Types, &[&str])] = &[
        (Types::NIL, &["nil"]),
        (Types::BOOL, &["true", "false"]),
        (Types::INT, &["0", "7"]),
        (Types::FLOAT, &["1.5"]),
        (Types::STRING, &["\"\"", "\"7\""]),
        (Types::KEYWORD, &[":a"]),
        (Types::LIST, &["[]", "[1]"]),
        (Types::MAP, &["{}", "{:a 1}"]),
        (Types::SET, &["#{}", "#{1}"]),
    ];
    let mut tried = 0;
    for row in crate::library::all() {
        let Some((_, refused, count)) = operands::refused(row.name) else { continue };
        for (types, values) in samples.iter().filter(|(types, _)| types.is_within(refused)) {
            for value in *values {
                let forms = match row.name {
                    "sum-by" | "avg-by" => vec![format!("({} identity [1 {value}])", row.name)],
                    "quot" | "rem" | "mod" => {
                        vec![format!("({} {value} 2)", row.name), format!("({} 2 {value})", row.name)]
                    }
                    "inc" | "dec" => vec![format!("({} {value})", row.name)],
                    "split" => vec![format!("(split {value} #\",\")")],
                    "starts-with?" | "ends-with?" => vec![format!("({} {value} \"a\")", row.name)],
                    _ if count == 1 => vec![format!("({} {value})", row.name)],
                    _ => vec![
                        format!("({} {value} 2)", row.name),
                        format!("({} 2 {value})", row.name),
                        format!("({} 1 2 {value})", row.name),
                        format!("({} {value})", row.name),
                    ],
                };
                for form in forms {
                    let (mut machine, ..) = loaded(&form, Settings::default());
                    let Step::Done(Ending::Error(error)) = machine.resume(u64::MAX) else {
                        panic!("{form}: {types:?}")
                    };
                    assert_eq!(error.reason, crate::Reason::TypeError, "{form}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

/// Programs that may be right.
#[test]
fn what_may_be_meant_is_no_finding() {
    for source in [
        "(map :discount data/orders)",
        "(map :note data/orders)",
        "(map :totl [])",
        "(or (:totals (first data/orders)) (:total (first data/orders)))",
        "(map (fn [o] (:totals o (:total o))) data/orders)",
        "(defn f [o] (:totl o)) (f {:totl 1}) (map f data/orders)",
        "(map #(get data/by_id %) [\"o2\"])",
        "(update {:total 1} :totals (fnil inc 0))",
        "(reduce (fn [m o] (update m (:status o) (fnil inc 0))) {} data/orders)",
        "(:o2 data/by_id)",
        "(filter #(= (:note %) :x) data/orders)",
        "(if (string? data/n) (= data/n :x) 1)",
        "(tool/search {:query \"x\" :max-results 3})",
        "(tool/search (into {} [[:query \"x\"]]))",
        "(defn walk-tree [n] (cons (:id n) (mapcat walk-tree (:children n)))) (walk-tree {:id 1 :children [{:id 2}]})",
        "(defn walk-tree [n] (cons (:ids n) (mapcat walk-tree (:id n)))) (walk-tree {:id [{:ids 2}]})",
        "((fn [f] (f {:totl 1})) :totl)",
        "(map (fn [k] (map k data/orders)) [:id :total])",
        "(sort > [1 2])",
        "(if (contains? (first data/orders) :totals) (:totals (first data/orders)) 0)",
        "(map #(or (get % :totals) (:total %)) data/orders)",
        "(map #(if-let [t (:totals %)] t (:total %)) data/orders)",
        "(map #(if (nil? (:totals %)) (:total %) (:totals %)) data/orders)",
        "(map #(cond (:totals %) 1 :else (:total %)) data/orders)",
        "(map #(select-keys % [:totals :total]) data/orders)",
        "(filter #(or (= (:status %) :paid) (= (:status %) \"paid\")) data/orders)",
    ] {
        assert_eq!(found(source), [], "{source}");
    }
}

/// A run that is over at its deadline is not checked to the end.
#[test]
fn a_check_can_be_stopped() {
    let source = "(map :totl [{:total 1}])".repeat(2_000);
    let program = Program::compile(&source, &ReadLimits::default()).expect("a program");
    let mut machine = Machine::new(Vec::new(), Settings::default());
    machine.load(Arc::new(program)).expect("the names");
    assert_eq!(machine.check(0, None, &tool, &|| false).len(), MAX_FINDINGS);
    assert_eq!(machine.check(0, None, &tool, &|| true), []);
}

/// A check ends soon, whatever the program is.
#[test]
fn the_work_is_bounded() {
    let nested = format!("(let [o (first data/orders)] {}(:totl o){})", "(+ 1 ".repeat(50), ")".repeat(50));
    let loops = format!("{}1{}", "(loop [x {:a 1}] (if (:b x) (recur {:a x}) ".repeat(25), "))".repeat(25));
    let calls = "(defn f [g] (g g)) (f (fn [g] (f (fn [h] (g h) (h g)))))";
    let doubling = format!(
        "(let [a0 {{:x 1}}{}] a20)",
        (0..20).map(|n| format!(" a{} {{:l a{n} :r a{n}}}", n + 1)).collect::<String>()
    );
    for source in [&*nested, &*loops, calls, &*doubling] {
        let started = std::time::Instant::now();
        found(source);
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{source:.80}");
    }
}

/// Programs with a mistake that shows only when they run: the position, the message, the repair.
#[test]
fn what_a_run_reads_in_vain_is_noted() {
    let key = |name: &str, times: &str, meant: &str| {
        (FindingKind::KeyNeverFound, format!(":{name} was read {times} and never found; these maps have :{meant}"))
    };
    for (source, at, (kind, message)) in [
        (
            "(defn names [n] (cons (:nmae n) (mapcat names (:children n)))) (names data/tree)",
            "(:nmae n)",
            key("nmae", "3 times", "name"),
        ),
        (
            "(defn names [n] (cons (:name n) (mapcat names (:childern n)))) (names data/tree)",
            "(:childern n)",
            key("childern", "1 time", "children"),
        ),
        (
            "(->> (tree-seq :children :childen data/tree) (mapv :name))",
            "(tree-seq :children :childen data/tree)",
            key("childen", "1 time", "children"),
        ),
        (
            "(let [by (group-by :id data/orders)] (get-in by [\"o1\" 0 :toatl]))",
            "(get-in by [\"o1\" 0 :toatl])",
            key("toatl", "1 time", "total"),
        ),
        (
            "(let [o (nth data/orders (dec (count [1 2])))] (for [n (range 5)] (:Total o)))",
            "(:Total o)",
            key("Total", "5 times", "total"),
        ),
        (
            "(let [os (json/parse-string \"[{\\\"unit_price\\\": 1}, {\\\"unit_price\\\": 2}]\")] (sort-by :unit-prize os))",
            "(sort-by :unit-prize os)",
            key("unit-prize", "2 times", "unit_price"),
        ),
        (
            "(let [os (json/parse-string \"[{\\\"a b\\\": 1, \\\"users\\\": 2}]\")] (map (fn [{:keys [user]}] user) os))",
            "user",
            key("user", "1 time", "users"),
        ),
        (
            "(let [o (json/parse-string \"{\\\"x\\\": \\\"role\\\"}\")] (if (= (:x o) :role) 1 2))",
            "(= (:x o) :role)",
            (
                FindingKind::KeywordForString,
                "the keyword :role and the string \"role\" were compared 1 time: they are not equal".to_owned(),
            ),
        ),
    ] {
        let notes = noted(source, u64::MAX, None);
        let told: Vec<_> = notes.iter().map(|note| (note.kind, note.message.clone())).collect();
        assert_eq!(told, [(kind, message)], "{source}");
        let span = notes[0].span;
        assert_eq!(&source[span.start as usize..span.end as usize], at, "{source}");
        assert!(notes[0].repair.as_ref().is_some_and(|repair| repair.starts_with("write ")), "{source}");
        for (slice, compact_every) in [(1, None), (7, None), (100, Some(1)), (u64::MAX, Some(3))] {
            assert_eq!(noted(source, slice, compact_every), notes, "{source}, {slice}, {compact_every:?}");
        }
    }
}

/// A key may be absent, and what a check before the run says is not said twice.
#[test]
fn what_may_be_right_is_not_noted() {
    let rows =
        "(let [rows (json/parse-string \"[{\\\"total\\\": 1, \\\"id\\\": 1}, {\\\"total\\\": 2, \\\"id\\\": 2}]\")] ";
    for body in [
        "(map :note rows)",
        "(map :totals [{:total 1} {:totals 2}])",
        "(map #(or (:totals %) (:total %)) rows)",
        "(map #(if-let [t (:totals %)] t (:total %)) rows)",
        "(map #(let [a (:totals %) b (:total %)] (or a b)) rows)",
        "(map (fn [{:keys [totals total]}] (or totals total)) rows)",
        "(map #(get % :totals (:total %)) rows)",
        "(map #(cond (:totals %) 1 :else (:total %)) rows)",
        "(map (juxt :totals :total) rows)",
        "(map (fn [r] (some r [:totals :total])) rows)",
        "(map (fn [r] [(:totals r) (:total r)]) rows)",
        "(map #(select-keys % [:totals :total]) rows)",
        "(map #(if (contains? % :totals) (:totals %) 0) rows)",
        "(map #(assoc % :totals (inc (or (:totals %) 0))) rows)",
        "(reduce (fn [m k] (assoc m k (inc (get m k 0)))) {} (map keyword [\"total\" \"totals\"]))",
        "(map #(update % :totals (fnil inc 0)) rows)",
        "(map #(dissoc % :totals) rows)",
        "(map #(get % \"totals\") rows)",
        "(filter (fn [_] (or (= (name :total) :total) (= (name :total) \"total\"))) rows)",
        "(= (first (keys (first rows))) :x)",
        "(map :totl [{:total 1}])",
    ] {
        let source = format!("{rows}{body})");
        assert_eq!(noted(&source, u64::MAX, None), [], "{body}");
    }
}

/// At most so many names are noted, and of many similar names none is said to be meant.
#[test]
fn few_names_are_noted() {
    const WORDS: &str = "total status customer region address country quantity price invoice payment delivery product warehouse \
        supplier category discount currency employee department manager";
    let reads: String = WORDS.split_whitespace().map(|word| format!("(:{word}x (into {{}} [[:{word} 1]]))")).collect();
    assert_eq!(noted(&format!("(dotimes [_ 100] {reads})"), 1_000, None).len(), MAX_NOTES);
    let keys: String = (0..30).map(|n| format!("[:name{n} {n}] ")).collect();
    assert_eq!(noted(&format!("(:namex (into {{}} [{keys}]))"), 1_000, None), []);
}
