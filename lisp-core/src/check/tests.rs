use super::*;
mod results;
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
    if name == "pay" {
        let amount = parameter("amount", Types::INT, true);
        let parameters = vec![parameter("to", Types::STRING, true), amount, parameter("note", Types::STRING, false)];
        return Some(ToolShape { parameters, is_open: false, result: Shape::of(Types::BOOL) });
    }
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
            ("units", r#"[{"unit-price": "5", "id": 1}, {"unit_price": 5, "id": 2}]"#),
            ("camel", r#"[{"minPrice": 1, "posX": 1, "releaseName": "a", "a": null, "text": "b c"}]"#),
            ("address", r#"{"line1": "a", "price_min": 1, "date": 2, "item": 3, "status": "x"}"#),
            ("wide", &wide),
            ("rows", r#"[{"order_id": 1, "total": 5, "tags": ["a"], "status": "paid"}]"#),
            ("page", r#"[{"rows": []}]"#),
            ("flag", "false"),
            ("empty", "{}"),
            ("recs", r#"{"o1": [{"sku": "A"}]}"#),
            ("path", r#"["o1", 0]"#),
            ("maybe", r#"[{"id": 1, "shipping": {"a": 1}}, {"id": 2}]"#),
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
        ("(tool/search \"x\")", FindingKind::WrongArgument, ""),
        ("(tool/search \"x\" 5)", FindingKind::WrongArgument, ""),
        ("(tool/search :query)", FindingKind::WrongArgument, ""),
        ("(tool/search :query \"x\" :max-results)", FindingKind::WrongArgument, ""),
        ("(tool/pay :to \"a\" :amuont 5)", FindingKind::UnknownArgument, "write :amount"),
        ("(tool/pay :to \"a\" :amount \"5\")", FindingKind::WrongArgument, "convert it: (parse-long s)"),
        ("((partial tool/pay :to \"a\") :amuont 5)", FindingKind::UnknownArgument, "write :amount"),
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
        ("(map #(if (keys %) 1 2) data/orders)", ConstantTest, "write (seq ...) around it"),
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
        ("(count data/other)", UnknownData, ""),
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
        "(map :id (or data/other []))",
        "(if data/other (map :id data/other) 0)",
        "(when-let [others data/other] (map :id others))",
        "(if (nil? data/other) 0 (count data/other))",
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
        // Rows that spell a key in two ways.
        "(map #(= (:unit-price %) 5) data/units)",
        "(let [r (first (filter #(= (:id %) 2) data/units))] (tool/pay {:to \"a\" :amount (:unit-price r)}))",
        // A call changes no variable of another one.
        "(defn g [v f] (if f (do (f) (= v :k)) (fn [] v))) (let [c (g \"a\" nil)] (g :k c))",
        "(defn mk [v] (fn [] (let [c (mk :k)] (if (= v \"a\") 1 2)))) ((mk \"a\"))",
        "(defn mk [v] (fn [] (let [c (mk 7)] (tool/pay {:to v :amount 5})))) ((mk \"a\"))",
        // Nil for an empty list.
        "(= (or (when-first [z data/none] \"a\") :none) :none)",
        "(mapv (fn [o] (tool/pay {:to (or (when-first [i (:items o)] 5) \"none\") :amount 5})) data/orders)",
        "(tool/pay {:to (or (apply concat (:a (first data/camel)) data/none) \"none\") :amount 5})",
        "(tool/pay (apply concat {:to \"a\" :amount 5} data/none))",
        // What ends the run before.
        "(do (when-not (:a (first data/camel)) (return :none)) (tool/pay {:to \"a\" :amount (:a (first data/camel))}))",
        "(defn f [x] (if (nil? x) (return :none)) (tool/pay {:to \"a\" :amount x})) (f (:a (first data/camel)))",
        "(do (when-not (string? data/n) (fail \"no\")) (tool/pay {:to data/n :amount 5}))",
        // Functions that change in a loop.
        "(loop [a (fn [] \"x\") b (fn [] \"y\") c (fn [] \"q\") d (fn [] :z) n 0]
           (if (< n 3) (recur b c d d (inc n)) (if (= (a) :z) 1 2)))",
        // Other things, by names in camel case.
        "(mapv (fn [r] [(:maxPrice r) (:posY r) (:releaseDate r)]) data/camel)",
    ] {
        assert_eq!(found(source), [], "{source}");
    }
}

/// What a repair says to write is what a program can have.
#[test]
fn repairs_are_code() {
    for (source, repair) in [
        ("(= (keyword (:text (first data/camel))) \"in progress\")", "write (keyword \"in progress\")"),
        ("(= (keyword (:text (first data/camel))) \"a\\\"b\")", "write (keyword \"a\\\"b\")"),
        ("(= data/n \"00123\")", "write 123"),
        ("(= data/n \".5\")", "write 0.5"),
        ("(= data/n \"3\")", "write 3"),
        ("(= (:text (first data/camel)) :ok)", "write \"ok\""),
    ] {
        assert_eq!(repairs(source), [(FindingKind::NeverEqual, repair.to_owned())], "{source}");
    }
    assert_eq!(names::string_shown("a\u{1b}\u{202e}\u{301}\"\\"), r#""a\u001b\u202e\u0301\"\\""#);
    let control = found("(tool/pay {:to \"a\" :amount 5 (keyword \"x\") 1 :am\u{301}ount 2})");
    assert!(control.iter().all(|finding| !finding.message.contains('\u{301}')), "{control:?}");
}

/// Copies of many keys or arguments are paid for.
#[test]
fn copies_are_paid_for() {
    let keys: String = (0..190).map(|n| format!("\"{}{n:03}\" 1 ", "a-".repeat(50))).collect();
    let merges = format!("(def m {{{keys}}}) {}", "(merge m m) ".repeat(300));
    let ones = "1 ".repeat(5_000);
    let partial =
        format!("(defn f [& xs] 1) (def j (juxt {})) (def p (partial j {ones})) (p)(p)(p)", "f ".repeat(3_000));
    for source in [&merges, &partial] {
        let kinds: Vec<FindingKind> = found(source).iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [FindingKind::Incomplete], "{source:.60}");
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

/// Programs that run right, by what they are easily taken for.
#[test]
fn what_runs_right_is_no_finding() {
    let row = "(let [o (first data/rows)] ";
    for (at, programs) in [
        // Arguments by name.
        "(tool/pay :to \"a\" :amount 5)|(apply tool/pay [:to \"a\" :amount 5])|(apply tool/pay :to \"a\" [:amount 5])
         ((partial tool/pay :to \"a\") :amount 5)|(tool/pay (first [:to]) \"a\" :amount 5)",
        // A string with hyphens.
        "(map #(get % \"order-id\") data/rows)|(get-in data/rows [0 \"order-id\"])|((first data/rows) \"order-id\")
         (map (fn [{:strs [order-id]}] order-id) data/rows)|(map (fn [{x \"order-id\"}] x) data/rows)
         (get o \"order-id\" 0)|(get {:order_id 1} \"order-id\")|(tool/pay {:to (if (get o \"order-id\") \"a\" 5) :amount 5})",
        // Lists that may be nil.
        "(let [dirs (butlast (str/split \"file\" #\"/\")) p (if dirs (str/join \"/\" dirs) :root)] (if (= p :root) \"root\" p))
         (tool/pay {:to (or (butlast [\"x\"]) \"none\") :amount 1})|(tool/pay {:to (or (take-last 1 []) \"none\") :amount 1})
         (tool/pay {:to (or (vals (:meta o)) \"none\") :amount 1})|(tool/pay {:to (or (vec (:note o)) \"none\") :amount 1})
         (tool/pay {:to (or (rseq []) \"none\") :amount 1})|(mapv #(if (keys (:shipping %)) \"ship\" \"none\") data/maybe)
         (if (keys nil) 1 2)|(if (concat nil) 1 2)|(tool/pay (concat {:to \"a\" :amount 1}))
         (tool/pay (apply concat [{:to \"a\" :amount 1}]))
         (mapv #(if-let [ks (keys (:shipping %))] (count ks) 0) data/maybe)",
        // A pad.
        "(mapv (fn [p] (if (= :end (second p)) [(first p)] p)) (partition 2 2 [:end] [\"a\" \"b\" \"c\"]))
         (tool/pay {:to (second (first (partition 2 2 [\"pad\"] [1]))) :amount 1})",
        // Tests of the type.
        "(defn ids [x] (if (sequential? x) (mapv :id x) [(:id x)])) (ids data/rows)
         (defn ids [x] (if (vector? x) (mapv :id x) [(:id x)])) (ids data/rows)
         (defn ids [x] (if-not (sequential? x) [(:id x)] (mapv :id x))) (ids data/rows)
         (defn ids [x] (cond (sequential? x) (mapv :id x) :else (:id x))) (ids data/rows)
         (let [s (:status o)] (if (coll? s) (:name s) s))|(let [s (:status o)] (if (string? s) s (:name s)))
         (let [s (:status o)] (if (or (nil? s) (string? s)) s (:name s)))
         (let [s (:status o)] (if (and (string? s) (seq s)) s (:name s)))
         (let [x data/rows] (case (type x) :vector (map :id x) :map (:id x) nil))
         (let [x data/rows] (condp = (type x) :vector (map :id x) :map (:id x) nil))
         (if (vector? data/tree) (map :id data/tree) (:name data/tree))
         (let [x data/rows] (if (and (map? x) (:id x)) (:id x) (count x)))
         (let [x data/rows] (get x :rows x))|(let [x data/rows] (:name x x))|(get-in o [:status :name] (:status o))
         (nil? (:x data/rows))|(some? (:x data/rows))|(not (:error data/rows))|(filter :x [data/rows])
         (when-not (:error data/rows) 1)|(remove :x [data/rows])|(some :x [data/rows])",
        // Alternatives.
        "(map (fn [{:keys [totals total]}] (or totals total)) data/rows)
         (let [a (:totals o) b (:total o)] (or a b))|(let [a (:totals o) b (:total o)] (if (some? a) a b))
         (get o :totals (get o :total))|(get o \"totals\" (get o \"total\" 0))|(get-in o [:totals] (:total o))
         (:totals o (or (:total o) 0))|((some-fn :totals :total) o)|(mapv (some-fn :totals :total) data/rows)
         (some o [:totals :total])|(some #(get o %) [:totals :total])|(first (keep o [:totals :total]))
         (first (remove nil? ((juxt :totals :total) o)))|(dissoc o :totals)|(map #(dissoc % :totals :tag) data/rows)
         (+ (or (:totals o) 0) (or (:total o) 0))|{:a (:total o) :b (:totals o)}|[(:total o) (:totals o)]|(and (nil? (:totals o)) (:total o))
         (if (nil? (:totals o)) (:total o) (:totals o))|(cond (some? (:totals o)) 1 (:total o) 2 :else 3)
         (case (:status o) \"new\" (:totals o) (:total o))|(if data/flag (:totals o) (:total o))",
        // Data that is tested.
        "(let [rows (or data/order (first data/orders))] (:id rows))|(count (or data/order data/orders))
         (if-let [u data/order] (:id u) (:id (first data/orders)))
         (if (nil? data/order) (first data/orders) data/order)|(if data/order data/order data/orders)
         (if-not data/order data/orders data/order)",
        // Definitions under a condition.
        "(defn handler [x] :none) (when (= data/n 4) (defn handler [x] \"some\")) (if (= (handler 1) :none) 1 2)
         (if (= data/n 3) (defn score [x] :high) (defn score [x] \"low\")) (if (= (score 1) :high) 1 2)",
        // A path in the place of a key.
        "(:sku (get data/recs data/path))|(get data/recs [\"o1\" 0])|(let [p [\"o1\" 0]] (:sku (get data/recs (vec p))))
         (:sku (data/recs data/path))|(:a ({:a 1 \"total\" :t} (vec [])))",
        // An empty map.
        "(reduce + 0 data/empty)|(map inc data/empty)|(sum-by :n data/empty)|(map :n data/empty)
         (doseq [x data/empty] (tool/pay {:to x :amount 1}))|(map #(+ 1 %) (partition-by odd? []))
         (doseq [x (partition 2 [])] (tool/pay {:to x :amount 1}))|(reduce-kv (fn [n k v] (+ n v)) 0 data/empty)",
        // Tests of a parameter.
        "(defn mean [xs] (if xs (/ (reduce + 0 xs) (max 1 (count xs))) 0)) (mean (keep :total data/rows))",
    ]
    .iter()
    .enumerate()
    {
        for source in programs.split(['|', '\n']).map(str::trim) {
            let source = format!("{row}{source})");
            assert_eq!(found(&source), [], "{at}: {source}");
        }
    }
}

/// Keys that are misspelt, although the right one is read nearby.
#[test]
fn what_is_read_nearby_is_no_alternative() {
    for source in [
        "(sort (fn [a b] (compare (:total a) (:totl b))) data/orders)",
        "(map (fn [o] (map (fn [p] (= (:id o) (:idd p))) data/orders)) data/orders)",
        "(map #(if (:totl %) % (assoc % :total 0)) data/orders)",
        "(map #(if (nil? (:totl %)) 0 (:total %)) data/orders)",
        "(map #(if (:total %) (:totl %) 0) data/orders)",
        "(map #(if (> (count (:id %)) 3) 1 (:idd %)) data/orders)",
        "(map #(if (not (contains? #{\"a\"} (:status %))) (str (:statsu %)) 1) data/orders)",
        "(get-in data/tree [:children 0 :childre 1 :name])",
        "(map (fn [o p] (case (:status o) \"paid\" (inc (:totl o)) \"open\" (inc (:total p)) 0)) data/orders data/orders)",
    ] {
        assert_eq!(repairs(source).len(), 1, "{source}");
    }
}

/// Optional keys that are other words.
#[test]
fn other_words_are_not_meant() {
    for pair in "height weight|latitude altitude|date data|quantity quality|tag tax|url uri|text test|state stage|mode model|last list
        from form|post_id host_id|item_id team_id|tax_rate day_rate|user_id user_ip|sender gender|start stars|row_id org_id
        low_price now_price|sum_qty num_qty|login logic|source course|in_time on_time|parent patent|price prize|rate date"
        .split(['|', '\n'])
    {
        let (a, b) = pair.trim().split_once(' ').expect("two words");
        for (a, b) in [(a, b), (b, a)] {
            assert_eq!(found(&format!("(:{a} {{:{b} 1}})")), [], "{a} {b}");
            assert_eq!(similar(&[b], a), None, "{a} {b}");
        }
    }
    let many: Vec<String> = (0..2_000).map(|n| format!("name{n}")).chain(["total".to_owned()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!((similar(&many, "totl"), similar(&many[1_500..], "totl")), (None, Some("total")));
    for (wrong, right) in [
        ("tagss", "tags"),
        ("dat", "date"),
        ("rat", "rate"),
        ("saet", "seat"),
        ("traed", "trade"),
        ("stnd", "stand"),
        ("oder", "order"),
        ("szie", "size"),
        ("tatus", "status"),
        ("tsatus", "status"),
        ("sttaus", "status"),
        ("uni_tprice", "unit_price"),
        ("unitprice", "unit_price"),
        ("custmer_name", "customer_name"),
        ("variantss", "variants"),
        ("addres", "address"),
    ] {
        let names =
            ["id", "name", "date", "rate", "tags", "size", "side", "seat", "trade", "trend", "stand", "order", right];
        assert_eq!(similar(&names, wrong), Some(right), "{wrong}");
        assert_eq!(repairs(&format!("(:{wrong} {{:{right} 1}})")).len(), 1, "{wrong}");
    }
    assert_eq!(repairs("(if (> data/n 5) (:tagss {:tags 1}) 2)").len(), 1);
}

/// A call that fails is told anyway, and ends the run before it starts only if nothing catches the error.
#[test]
fn what_is_caught_or_not_called_does_not_fail() {
    for (source, fails) in [
        ("(tool/pay {:to \"a\" :amount 5 :memo \"x\"})", true),
        ("(when data/flag (tool/pay {:to \"a\"}))", true),
        ("(try (tool/pay {:to \"a\" :amount 5 :memo \"x\"}) (catch Exception e 1))", false),
        ("(try (tool/pay \"a\") (catch Exception e 1))", false),
        ("(try 1 (catch Exception e (tool/pay \"a\")))", true),
        ("(defn later [x] (tool/pay {:to x})) (tool/pay {:to \"a\" :amount 5})", false),
        ("(defn pay [x] (try (tool/pay {:to x}) (catch Exception e 1))) (pay \"a\")", false),
        ("(defn pay [x] (tool/pay {:to x})) (try (pay \"a\") (catch Exception e 1)) (pay \"b\")", true),
    ] {
        let findings = found(source);
        assert_eq!(findings.iter().map(|finding| finding.fails).collect::<Vec<_>>(), [fails], "{source}");
    }
}

/// Of a program that is too much work is said so, and what surely fails before.
#[test]
fn a_check_that_is_not_finished_says_so() {
    let calls: String = (1..6).map(|n| format!("(defn f{n} [x] {})", format!("(f{} x) ", n - 1).repeat(10))).collect();
    let much = format!("(defn f0 [x] (inc x)) {calls} (f5 1)");
    let kinds = |source: &str| found(source).iter().map(|finding| finding.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&much), [FindingKind::Incomplete]);
    assert_eq!(kinds(&format!("{much} (tool/pay {{:to \"a\" :amuont 5}})")), [FindingKind::Incomplete]);
    let before = format!("(tool/pay {{:to \"a\" :amuont 5}}) (:totl {{:total 1}}) {much}");
    assert_eq!(kinds(&before), [FindingKind::UnknownArgument, FindingKind::Incomplete]);
    assert!(found(&before)[0].fails);
}

/// Messages about long names are short.
#[test]
fn long_names_are_cut() {
    let long = "k".repeat(60_000);
    for source in [
        format!("(:{long} data/orders)"),
        format!("(map #(= (:status %) :{long}) data/orders)"),
        format!("(map #(case (:status %) :{long} 1 2) data/orders)"),
        format!("(= data/n \"{}\")", "1".repeat(60_000)),
        format!("(tool/pay {{:to \"a\" :amount 1 :{long} 2}})"),
    ] {
        let findings = found(&source);
        assert_eq!(findings.len(), 1, "{source:.40}");
        let length = findings[0].message.len() + findings[0].repair.as_deref().map_or(0, str::len);
        assert!(length < 400, "{length}: {source:.40}");
    }
}

/// A tool with many long parameters, and a call with many wrong ones.
#[test]
fn many_wrong_arguments_are_soon_found() {
    let name = |n: usize, last: char| format!("{}{:02}{last}", "abcdefghijklmnopqrstuvwxyz".repeat(2), n % 100);
    let parameters = |count: usize| {
        let one = |n| Parameter {
            name: format!("{}{n:03}", name(n, 'x')).into(),
            shape: Shape::of(Types::STRING),
            is_required: false,
        };
        (0..count).map(one).collect()
    };
    let given: String = (0..190).map(|n| format!(":{}z{n:03} 1 ", name(n, 'y'))).collect();
    for is_open in [true, false] {
        let tool = ToolShape { parameters: parameters(400), is_open, result: Shape::UNKNOWN };
        let (machine, program, forms) = loaded(&format!("(tool/t {{{given}}})"), Settings::default());
        let started = std::time::Instant::now();
        machine.check(0, Some((&*program, &forms)), &|_| Some(tool.clone()), &|| false);
        assert!(started.elapsed() < std::time::Duration::from_secs(1), "{:?}", started.elapsed());
        let (asked, started) = (std::cell::Cell::new(0), std::time::Instant::now());
        let stop = || started.elapsed().as_millis() > 10 && asked.replace(asked.get() + 1) < usize::MAX;
        machine.check(0, Some((&*program, &forms)), &|_| Some(tool.clone()), &stop);
        assert!(started.elapsed() < std::time::Duration::from_millis(200), "{:?}", started.elapsed());
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
    let stopped = machine.check(0, None, &tool, &|| true);
    assert_eq!(stopped.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [FindingKind::Incomplete]);
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
            "(defn names [n] (if (empty? (:cihldren n)) [] (mapcat names (:children n)))) (names data/tree)",
            "(:cihldren n)",
            key("cihldren", "1 time", "children"),
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
            "(let [os (json/parse-string \"[{\\\"unit_price\\\": 1}, {\\\"unit_price\\\": 2}]\")] (sort-by :unit-prcie os))",
            "(sort-by :unit-prcie os)",
            key("unit-prcie", "2 times", "unit_price"),
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
        "(filter #(= (:state % :total) :total) [{:state (second (keys (first rows)))} {}])",
        "(map #(and (nil? (:totals %)) (:total %)) rows)",
        "(map #(+ (or (:totals %) 0) (or (:total %) 0)) rows)",
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
