//! Names of Clojure that the language does not have, with replacements.

use super::left_out::Absent;
use super::other_names::OTHER_NAMES;

impl Absent {
    /// Returns the replacement for a name that the language does not have.
    pub fn of(name: &str) -> Option<&'static Absent> {
        ABSENT.iter().chain(OTHER_NAMES).find(|absent| absent.names().any(|absent| absent == name))
    }
}

/// The replacement for a `lazy-seq` whose sequence is endless.
pub static LAZY: Absent = Absent {
    names: "",
    hint: "lazy-seq makes its whole sequence at once here, so it has to end: an endless one is made by iterate, as in {}, or \
           built as far as it is needed by loop, as in {}",
    instead: &[
        ("(take 3 (iterate #(* 2 %) 1))", "[1 2 4]"),
        ("(loop [n 0 out []] (if (< n 3) (recur (inc n) (conj out (* n n))) out))", "[0 1 4]"),
    ],
};

/// All names that are left out.
pub static ABSENT: &[Absent] = &[
    Absent {
        names: "atom swap! reset! compare-and-set! swap-vals! reset-vals! volatile! vswap! vreset! volatile? \
               add-watch remove-watch set-validator! get-validator ref ref-set alter commute ensure dosync sync \
               io! ref-history-count ref-min-history ref-max-history with-local-vars",
        hint: "values never change: collect with {}, or rebind with {}",
        instead: &[
            ("(reduce (fn [total o] (+ total (:n o))) 0 [{:n 1} {:n 2}])", "3"),
            ("(loop [i 0 sum 0] (if (< i 3) (recur (inc i) (+ sum i)) sum))", "3"),
        ],
    },
    Absent {
        names: "deref force var-get",
        hint: "a name is its value: write the name itself, as in {}",
        instead: &[("(let [x 1] (inc x))", "2")],
    },
    Absent {
        names: "delay delay? realized?",
        hint: "values are computed at once; to compute one later, write a function: {}",
        instead: &[("(let [f (fn [] (+ 1 2))] (f))", "3")],
    },
    Absent {
        names: "agent agent-error agent-errors await await-for await1 clear-agent-errors error-handler \
               error-mode release-pending-sends restart-agent send send-off send-via set-error-handler! \
               set-error-mode! shutdown-agents set-agent-send-executor! set-agent-send-off-executor! future \
               future-call future-cancel future-cancelled? future-done? future? promise deliver pvalues locking \
               seque monitor-enter monitor-exit",
        hint: "to make calls in parallel, use {} or {}; both wait for all results",
        instead: &[("(pmap inc [1 2])", "[2 3]"), ("(pcalls #(+ 1 2) #(* 2 3))", "[3 6]")],
    },
    Absent {
        names: "chunk chunk-append chunk-buffer chunk-cons chunk-first chunk-next chunk-rest chunked-seq?",
        hint: "only iterate, repeat, cycle, repeatedly and (range) have no end: {}; build any other collection whole: {}",
        instead: &[
            ("(take 3 (iterate #(* 2 %) 1))", "[1 2 4]"),
            ("(loop [n 0 out []] (if (< n 3) (recur (inc n) (conj out (* n n))) out))", "[0 1 4]"),
        ],
    },
    Absent {
        names: "defmacro definline macroexpand macroexpand-1 macroexpand-all gensym unquote unquote-splicing \
               destructure seq-to-map-for-destructuring &env &form",
        hint: "there are no macros: write a function that takes functions, as in {}",
        instead: &[("(defn twice [f x] (f (f x))) (twice inc 1)", "3")],
    },
    Absent {
        names: "defmulti defmethod get-method methods prefer-method prefers remove-method remove-all-methods",
        hint: "choose by a value with case: {}",
        instead: &[("(defn area [s] (case (:kind s) :square (* (:a s) (:a s)) 0)) (area {:kind :square :a 2})", "4")],
    },
    Absent {
        names: "defrecord deftype defstruct struct struct-map create-struct accessor record? deftype* \
               definterface ->ArrayChunk ->Eduction ->Vec ->VecNode ->VecSeq",
        hint: "a record is a map: {}",
        instead: &[("(defn point [x y] {:x x :y y}) (:x (point 1 2))", "1")],
    },
    Absent {
        names: "defprotocol extend extend-protocol extend-type extenders extends? satisfies? reify reify* proxy \
               proxy-super proxy-name proxy-mappings proxy-call-with-super construct-proxy get-proxy-class \
               init-proxy update-proxy gen-class gen-interface find-protocol-impl find-protocol-method \
               -cache-protocol-fn -reset-methods method-sig derive underive isa? ancestors descendants parents \
               make-hierarchy",
        hint: "there are no types to extend: put functions into a map and call them, as in {}",
        instead: &[("(let [shape {:area (fn [a] (* a a))}] ((:area shape) 3))", "9")],
    },
    Absent {
        names: "class? cast bases supers primitives-classnames",
        hint: "ask for the kind of a value by {} or by predicates, as in {}",
        instead: &[("(type \"a\")", ":string"), ("(map? [])", "false")],
    },
    Absent {
        names: "all-ns create-ns remove-ns find-ns the-ns ns-name ns-aliases ns-imports ns-interns ns-map \
               ns-publics ns-refers ns-resolve ns-unalias ns-unmap intern refer refer-clojure alias resolve \
               requiring-resolve find-var find-keyword loaded-libs namespace-munge munge",
        hint: "there are no namespaces to inspect; find functions with {}",
        instead: &[("(contains? (set (apropos \"upper\")) \"upper-case\")", "true")],
    },
    Absent {
        names: "namespace qualified-ident? qualified-keyword? qualified-symbol?",
        hint: "keywords have no namespace; the text of one is {}",
        instead: &[("(name :id)", "\"id\"")],
    },
    Absent {
        names: "simple-keyword? simple-symbol?",
        hint: "keywords have no namespace, so {} is enough",
        instead: &[("(keyword? :id)", "true")],
    },
    Absent {
        names: "import import* import?",
        hint: "classes need no import; their methods are called as in {}",
        instead: &[("(Math/abs -1)", "1")],
    },
    Absent {
        names: "aget alength aclone aset aset-boolean aset-byte aset-char aset-double aset-float aset-int \
               aset-long aset-short amap areduce make-array into-array to-array to-array-2d vector-of \
               object-array boolean-array byte-array char-array double-array float-array int-array long-array \
               short-array booleans bytes bytes? chars doubles floats ints longs shorts",
        hint: "an array is a vector: {}, {}",
        instead: &[("(nth [10 20] 1)", "20"), ("(assoc [10 20] 1 5)", "[10 5]")],
    },
    Absent {
        names: "transient persistent! conj! assoc! dissoc! disj! pop!",
        hint: "there are no transients; use conj, assoc, dissoc, disj and pop, which are fast: {}",
        instead: &[("(reduce conj [] [1 2])", "[1 2]")],
    },
    Absent {
        names: "meta with-meta vary-meta alter-meta! reset-meta!",
        hint: "values have no metadata; store it next to the value: {}",
        instead: &[("(:value {:value [1 2] :source \"form\"})", "[1 2]")],
    },
    Absent {
        names: "slurp spit read read+string read-line line-seq file-seq xml-seq resultset-seq enumeration-seq \
               iterator-seq load load-file load-reader with-open with-in-str PrintWriter-on print-ctor \
               print-dup print-method print-simple add-classpath",
        hint: "a program cannot read files or input: read data/name, or call a tool, tool/name; split a text into lines with {}",
        instead: &[("(split-lines \"a\\nb\")", "[\"a\" \"b\"]")],
    },
    Absent {
        names: "flush",
        hint: "what a program prints needs no flush: leave it out, as in {}",
        instead: &[("(println 1)", "nil")],
    },
    Absent {
        names: "with-out-str println-str print-str prn-str",
        hint: "build the string with {} or {}; {} writes a value so that it can be read back",
        instead: &[
            ("(str \"a\" 1)", "\"a1\""),
            ("(join \" \" [1 2])", "\"1 2\""),
            ("(pr-str {:a \"x\"})", "\"{:a \\\"x\\\"}\""),
        ],
    },
    Absent {
        names: "rand rand-int rand-nth random-sample shuffle random-uuid",
        hint: "a program returns the same result each time: get random values from a tool, or from data/name",
        instead: &[],
    },
    Absent {
        names: "inst-ms inst-ms* inst? Inst",
        hint: "times are Java's: {}",
        instead: &[("(.toEpochMilli (java.time.Instant/parse \"1970-01-01T00:00:01Z\"))", "1000")],
    },
    Absent {
        names: "time",
        hint: "the answer of a run says how long it took; the clock is (System/currentTimeMillis), as in {}",
        instead: &[("(pos? (System/currentTimeMillis))", "true")],
    },
    Absent {
        names: "test",
        hint: "end the program with a value that says what is wrong: {}",
        instead: &[("(let [n 1] (if (pos? n) n (fail \"n must be positive\")))", "1")],
    },
    Absent {
        names: "doto memfn bean set! reflect",
        hint: "values have no fields to set; pass a value through several steps with {}",
        instead: &[("(-> \" a \" trim upper-case)", "\"A\"")],
    },
    Absent {
        names: "unchecked-add unchecked-add-int unchecked-subtract unchecked-subtract-int unchecked-multiply \
               unchecked-multiply-int unchecked-inc unchecked-inc-int unchecked-dec unchecked-dec-int \
               unchecked-negate unchecked-negate-int unchecked-divide-int unchecked-remainder-int \
               unchecked-byte unchecked-char unchecked-double unchecked-float unchecked-int unchecked-long \
               unchecked-short",
        hint: "integers have any size and never wrap: +, -, *, quot and rem are exact; to keep 32 bits, write {}",
        instead: &[("(mod (+ 4294967295 1) 4294967296)", "0")],
    },
    Absent {
        names: "byte short num",
        hint: "there is one kind of integer, of any size: {}",
        instead: &[("(int 3.7)", "3")],
    },
    Absent {
        names: "numerator denominator rationalize bigdec with-precision",
        hint: "numbers are integers of any size and floats: {}; to write a fixed number of digits, use {}",
        instead: &[("(/ 1 2)", "0.5"), ("(format \"%.2f\" 2.5)", "\"2.50\"")],
    },
    Absent { names: "list?", hint: "a list is a vector: {}", instead: &[("(vector? (list 1 2))", "true")] },
    Absent { names: "replicate", hint: "write {}", instead: &[("(repeat 2 :a)", "[:a :a]")] },
    Absent {
        names: "subseq rsubseq sorted-map-by sorted-set-by",
        hint: "maps are in key order; select entries with {}; for another order, sort into a vector: {}",
        instead: &[
            ("(filter (fn [[k _]] (>= k 2)) {1 :a 2 :b})", "[[2 :b]]"),
            ("(sort-by first > {1 :a 2 :b})", "[[2 :b] [1 :a]]"),
        ],
    },
    Absent {
        names: "hash hash-combine hash-ordered-coll hash-unordered-coll mix-collection-hash",
        hint: "values have no hash code; any value can be a key: {}",
        instead: &[("(get {{:a 1} :x} {:a 1})", ":x")],
    },
    Absent {
        names: "alter-var-root binding bound? thread-bound? bound-fn bound-fn* get-thread-bindings \
               push-thread-bindings pop-thread-bindings var-set with-bindings with-bindings* with-redefs \
               with-redefs-fn with-loading-context",
        hint: "a name cannot be rebound for a part of the program: pass what changes as an argument, as in {}",
        instead: &[("(defn greet [hi name] (str hi \" \" name)) (greet \"Hello\" \"Ann\")", "\"Hello Ann\"")],
    },
    Absent {
        names: "var",
        hint: "write #'name, which gives the value of the name: {}",
        instead: &[("(map #'inc [1 2])", "[2 3]")],
    },
    Absent {
        names: "var?",
        hint: "a var is only what a definition returns; ask for the type of a value, as in {}",
        instead: &[("(type 1)", ":number")],
    },
    Absent {
        names: "eval load-string compile reader-conditional reader-conditional? tagged-literal tagged-literal? \
               default-data-readers special-symbol?",
        hint: "a program cannot evaluate code: choose a function from a map, as in {}",
        instead: &[("(({\"plus\" + \"minus\" -} \"plus\") 1 2)", "3")],
    },
    Absent {
        names: "re-matcher re-groups",
        hint: "a match contains its groups: {}, {}",
        instead: &[
            ("(re-find #\"(\\d+)-(\\d+)\" \"a 1-2\")", "[\"1-2\" \"1\" \"2\"]"),
            ("(re-seq #\"\\d+\" \"1 a 2\")", "[\"1\" \"2\"]"),
        ],
    },
    Absent {
        names: "halt-when bounded-count",
        hint: "stop early with {} or with reduced: {}",
        instead: &[
            ("(take-while pos? [1 2 -1 3])", "[1 2]"),
            ("(reduce (fn [sum x] (if (neg? x) (reduced sum) (+ sum x))) 0 [1 2 -1 3])", "3"),
        ],
    },
    Absent { names: "ensure-reduced", hint: "reduced marks a value: {}", instead: &[("(unreduced (reduced 1))", "1")] },
    Absent {
        names: "print pr",
        hint: "prints are lines: {} and {}",
        instead: &[("(println \"a\" 1)", "nil"), ("(prn {:a \"x\"})", "nil")],
    },
    Absent {
        names: "unsigned-bit-shift-right",
        hint: "integers have any size; to shift 64 bits, write {}",
        instead: &[("(bit-shift-right (mod -1 18446744073709551616) 60)", "15")],
    },
    Absent {
        names: "cl-format print-table pprint-newline with-pprint-dispatch",
        hint: "write {} or {}",
        instead: &[("(format \"%-5s|\" \"a\")", "\"a    |\""), ("(pprint {:a 1})", "nil")],
    },
    Absent {
        names: "stream-seq! stream-reduce! stream-transduce! stream-into!",
        hint: "there are no Java streams; write {}",
        instead: &[("(into [] (map inc) [1 2])", "[2 3]")],
    },
    Absent { names: "tap> add-tap remove-tap", hint: "print with {}", instead: &[("(println \"a\" 1)", "nil")] },
    Absent {
        names: "Throwable->map StackTraceElement->vec",
        hint: "catch binds the error as a map: {}",
        instead: &[("(try (throw (ex-info \"no\" {:id 1})) (catch Exception e (:data e)))", "{:id 1}")],
    },
    Absent {
        names: "uri?",
        hint: "an address is a string: {}",
        instead: &[("(starts-with? \"https://a\" \"https://\")", "true")],
    },
    Absent {
        names: "case* fn* let* letfn* loop*",
        hint: "write the form without the star: {}",
        instead: &[("(let [x 1] x)", "1")],
    },
    Absent {
        names: "prewalk-demo postwalk-demo",
        hint: "see the order with {}",
        instead: &[("(prewalk (fn [x] (println x) x) [1 [2]])", "[1 [2]]")],
    },
    Absent {
        names: "*1' *agent* *allow-unresolved-vars* *assert* *clojure-version* *command-line-args* \
               *compile-files* *compile-path* *compiler-options* *data-readers* *default-data-reader-fn* *e \
               *err* *file* *flush-on-newline* *fn-loader* *in* *math-context* *ns* *out* *print-dup* \
               *print-length* *print-level* *print-meta* *print-namespace-maps* *print-readably* *read-eval* \
               *reader-resolver* *source-path* *suppress-read* *unchecked-math* *use-context-classloader* \
               *verbose-defrecords* *warn-on-reflection* char-escape-string char-name-string clojure-version \
               EMPTY-NODE",
        hint: "there are no settings inside a program; earlier results are *1, *2 and *3, and data is data/name",
        instead: &[],
    },
    Absent { names: "for-each", hint: "write {}", instead: &[("(doseq [x [1 2]] (println x))", "nil")] },
    Absent { names: "data", hint: "data is read by name, as data/orders", instead: &[] },
    Absent { names: "tool", hint: "tools are called by name, as (tool/search {...})", instead: &[] },
];
