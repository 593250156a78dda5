;; Errors on their way: what is caught, and what is not.

(try (/ 1 0) (catch Exception e (:reason e)))
;=> :arithmetic_error

[(try 1) (try 1 (catch Exception e 2)) (try 1 (finally 3)) (try) (try (catch Exception e 1))]
;=> [1 1 1 nil nil]

(try (throw (ex-info "no stock" {:id 7})) (catch Exception e [(:reason e) (ex-message e) (.getMessage e) (ex-data e) (ex-cause e)]))
;=> [:exception "no stock" "no stock" {:id 7} nil]

(try (throw 5) (catch Exception e [(ex-data e) (ex-message e)]))
;=> [5 "5"]

(try (fail {:a 1}) (catch Exception e [(:reason e) (ex-data e) (ex-message e)]))
;=> [:fail {:a 1} "{:a 1}"]

(map (fn [x] (try (/ 10 x) (catch Exception e :none))) [1 0 2])
;=> [10.0 :none 5.0]

(defn depth [n] (if (= n 0) (throw (ex-info "deep" {:n n})) (inc (depth (dec n)))))
[(try (depth 3) (catch Exception e (ex-data e))) (try (depth 2000) (catch Exception e (ex-message e)))]
;=> [{:n 0} "deep"]

(try (reduce (fn [a x] (if (= x 3) (throw (ex-info "three" {:a a})) (+ a x))) 0 [1 2 3 4]) (catch Exception e (ex-data e)))
;=> {:a 3}

(try (sort-by (fn [x] (/ 1 x)) [1 2 0]) (catch ArithmeticException e :zero))
;=> :zero

(try (postwalk (fn [x] (if (= x 2) (throw 2) x)) [1 [2]]) (catch Exception e (ex-data e)))
;=> 2

(try (for [x [1 2 0]] (/ 1 x)) (catch Exception e :zero))
;=> :zero

[(try (pmap (fn [x] (/ 1 x)) [1 0]) (catch Exception e (:reason e))) (pmap (fn [x] (try (/ 1 x) (catch Exception e 0))) [1 0])]
;=> [:pmap_error [1.0 0]]

(try (pcalls #(throw (ex-info "in a worker" {}))) (catch Exception e [(:reason e) (ex-message e)]))
;=> [:pcalls_error "in a worker"]

;; `finally` runs once, whatever happens.

(try (println "body") :value (finally (println "last") :ignored))
;> body
;> last
;=> :value

(try (try (/ 1 0) (finally (println "inner"))) (catch Exception e (println "caught") (:reason e)) (finally (println "outer")))
;> inner
;> caught
;> outer
;=> :arithmetic_error

(try (try (/ 1 0) (catch Exception e (throw (ex-info "again" {} e))) (finally (println "last"))) (catch Exception e [(ex-message e) (:reason (ex-cause e))]))
;> last
;=> ["again" :arithmetic_error]

(try (try (throw 1) (finally (throw 2))) (catch Exception e (ex-data e)))
;=> 2

(try (/ 1 0) (finally (println "last")))
;> last
;! arithmetic_error

(try (return 1) (finally (println "never")))
;=> 1

(try (fail {:no 1}) (finally (println "last")))
;> last
;=> {:no 1}

;; Thrown again, an error is what it was.

(try (inc nil) (catch Exception e (throw e)))
;! type_error

(try (fail 3) (catch Exception e (throw e)))
;=> 3

(throw (ex-info "no" {:a 1}))
;! uncaught_exception

(throw {:reason :timeout :message "not mine to say"})
;! uncaught_exception

(map (fn [x] (try (inc x) (finally nil))) [nil])
;! type_error

;; The clause of the first class that fits.

(map (fn [f] (try (f) (catch ArithmeticException e :arithmetic) (catch clojure.lang.ExceptionInfo e :info) (catch java.lang.IllegalArgumentException e :program) (catch Throwable e :other)))
     [#(/ 1 0) #(throw (ex-info "a" {})) #(nth nil nil nil nil) #(fail 1) #(throw (IllegalStateException. "b")) #(throw (IllegalArgumentException. "c"))])
;=> [:arithmetic :info :program :other :other :program]

(try (try (/ 1 0) (catch ExceptionInfo e :info)) (catch Exception e :outer))
;=> :outer

(try (Integer/parseInt "x") (catch NumberFormatException e :number) (catch :default e :any))
;=> :number

[(try (throw (RuntimeException. "a")) (catch Exception e (ex-message e))) (try (throw (Exception. "b")) (catch RuntimeException e :runtime) (catch Exception e (ex-message e)))]
;=> ["a" "b"]

;; What was defined before stays, and so does what is printed.

(def n 1)
(try (def n 2) (println "kept") (/ 1 0) (catch Exception e nil))
n
;> kept
;=> 2

;; Limits are no errors of the program.

(try (loop [i 0] (recur (inc i))) (catch Exception e :caught))
;! loop_limit_exceeded

(defn deeper [n] (inc (deeper n)))
(try (deeper 0) (catch Throwable e :caught) (finally (println "never")))
;! memory_exceeded

(try (pmap (fn [x] (loop [] (recur))) [1]) (catch Exception e :caught))
;! pmap_error

(try (pmap (fn [x] (fail x)) [1]) (catch Exception e (:reason e)))
;=> :pmap_error

;; As written.

(loop [n 3] (if (= n 0) :done (let [m (try (dec n) (catch Exception e 0))] (recur m))))
;=> :done

(loop [n 3] (try (recur (dec n)) (catch Exception e 0)))
;! invalid_form

(try (loop [n 3] (if (= n 0) (throw n) (recur (dec n)))) (catch Exception e (ex-data e)))
;=> 0

(catch Exception e 1)
;! invalid_form

(try 1 (catch NoSuchThing e 1))
;! invalid_form

(try 1 (finally 2) (catch Exception e 1))
;! invalid_form

(try (catch Exception e 1) 2)
;! invalid_form

(try 1 (catch e 1))
;! invalid_form

(let [e 1] [(try (throw 2) (catch Exception e (ex-data e))) e (map (fn [f] (f)) (try (throw 3) (catch Exception x [(fn [] (ex-data x))])))])
;=> [2 1 [3]]

[(ex-message nil) (ex-data {:a 1}) (ex-message {:reason :type_error :message "m"}) (ex-cause 1)]
;=> [nil nil "m" nil]

(let [x 1 y (try (throw 7) (catch Exception e (+ x (ex-data e)))) z 2] [x y z])
;=> [1 8 2]

(defn checked [f] (fn [& args] (try [:ok (apply f args)] (catch Exception e [:error (:reason e)]))))
(map (checked /) [6 1] [2 0])
;=> [[:ok 3.0] [:error :arithmetic_error]]

;; A specifier says which value it is for; none is for what is not there.

(try (format "%<s" 1) (catch Exception e (ex-message e)))
;=> "no specifier with a value comes before %<s"

(try (format "%0$s" 1) (catch Exception e (ex-message e)))
;=> "the values of format are numbered from 1, got %0$s"

(try (format "%s %s" 1) (catch Exception e (ex-message e)))
;=> "format got 1 value(s), and its string needs more"

;; What is too much for read-string is not too much of a program.

(try (read-string (apply str "[" (concat (map (fn [i] (str "k" i " ")) (range 10001)) ["]"]))) (catch Exception e (ex-message e)))
;=> "read-string cannot read the text: it has more distinct symbols and keywords than the limit of 10000"

;; A loop names itself
(try (doseq [x 42] x) (catch Exception e (ex-message e)))
;=> "doseq expects a collection, got the integer 42"

(try (doall (for [x 42] x)) (catch Exception e (ex-message e)))
;=> "for expects a collection, got the integer 42"

(try (doseq [x (range 1 "b")] x) (catch Exception e (ex-message e)))
;=> "range expects finite numbers, got the string \"b\""

(try (dotimes [i "a"] i) (catch Exception e (ex-message e)))
;=> "dotimes expects a number, got the string \"a\""

(try (dotimes [i nil] i) (catch Exception e (ex-message e)))
;=> "dotimes expects a number, got nil"

(try (Long/toString "x" 16) (catch Exception e (ex-message e)))
;=> "Long/toString expects an integer of 64 bits, got the string \"x\""

(try (Integer/toString "x" 16) (catch Exception e (ex-message e)))
;=> "Integer/toString expects an integer of 64 bits, got the string \"x\""

(try (when-first [x 42] x) (catch Exception e (ex-message e)))
;=> "when-first expects a collection, got the integer 42"
