;; Vectors taken apart by place.

(let [[a b c] [1 2]] [a b c])
;=> [1 2 nil]

(let [[head & tail] [1 2 3]] {:head head :tail tail})
;=> {:head 1 :tail [2 3]}

(let [[x & more] []] [x more])
;=> [nil []]

(let [[_ [inner & deep]] [0 [1 2 3]]] [inner deep])
;=> [1 [2 3]]

(let [[[a b] {:keys [c]}] [[1 2] {:c 3}]] (+ a b c))
;=> 6

(let [[a] nil] a)
;=> nil

;; Maps taken apart by key.
(let [{:keys [id title]} {:id 7 :title "Tea"}] (str id ":" title))
;=> "7:Tea"

(let [{:keys [page size] :or {page 1 size 20}} {:size 50}] [page size])
;=> [1 50]

(let [{:keys [flag] :or {flag true}} {:flag false}] flag)
;=> false

(let [{:keys [gone] :or {gone 9}} {:gone nil}] gone)
;=> nil

(let [{total :sum {:keys [unit]} :in} {:sum 3 :in {:unit "kg"}}] [total unit])
;=> [3 "kg"]

(let [{:strs [city zip]} {"city" "Ulm" "zip" 89073}] [city zip])
;=> ["Ulm" 89073]

;; Text keys, as JSON has them, are found by :keys too.
(let [{:keys [city]} {"city" "Ulm"}] city)
;=> "Ulm"

(let [{:keys [a] :as whole} {:a 1 :b 2}] [a (count whole)])
;=> [1 2]

(let [{name "n"} {"n" "text key"}] name)
;=> "text key"

;; Patterns in parameters, loops and comprehensions.
(defn area [{:keys [w h] :or {h 1}}] (* w h))
[(area {:w 3 :h 4}) (area {:w 5})]
;=> [12 5]

((fn [[a b] & rest] [a b rest]) [1 2] 3 4)
;=> [1 2 [3 4]]

(map (fn [[k {:keys [n]}]] [k n]) {:x {:n 1} :y {:n 2}})
;=> [[:x 1] [:y 2]]

(for [{:keys [id tags]} [{:id 1 :tags ["a" "b"]} {:id 2 :tags []}] t tags] [id t])
;=> [[1 "a"] [1 "b"]]

(loop [[x & xs] [1 2 3] sum 0] (if x (recur xs (+ sum x)) sum))
;=> 6

(reduce (fn [acc {:keys [k v]}] (assoc acc k v)) {} [{:k :a :v 1} {:k :b :v 2}])
;=> {:a 1 :b 2}

;; What does not fit.
(let [[a b] 5] a)
;! destructure_error

(let [{:keys [a]} [1 2]] a)
;! destructure_error

(let [{:keys [a] :or {a (+ 1 1)}} {}] a)
;=> 2

(let [[a & b c] [1 2 3]] a)
;! invalid_form

(let [7 8] 9)
;! unsupported_pattern

[(let [{hit true miss false} (group-by odd? [1 2 3])] [hit miss]) (let [{a 0 b 1} [10 20]] [a b]) (let [{a 0 :or {a 7}} []] a) (let [{a 0} "xy"] a) (let [{a 1} {1 :one}] a)]
;=> [[[1 3] [2]] [10 20] 7 "x" :one]

;; The key of a map pattern is an expression: a name stands for its value.

(let [k :foo {v k} {:foo 42}] v)
;=> 42

(let [{v nope} {:a 1}] v)
;! unbound_var

(let [k "b" f (fn [{a :a b k}] [a b])] (f {:a 1 "b" 2}))
;=> [1 2]

(defn pick [k {v k}] v)
[(pick :a {:a 1}) (pick :b {:a 1}) (pick 1 [5 6 7])]
;=> [1 nil 6]

(let [k :a] [(for [{v k} [{:a 1} {:a 2}]] v) (map (fn [{v k}] v) [{:a 3}]) (mapv #(let [{v k} %] v) [{:a 4}])])
;=> [[1 2] [3] [4]]

(def key :a)
(doseq [{v key} [{:a 1}]] (println v))
(loop [{v key} {:a 3} acc []] (if (and v (pos? v)) (recur {:a (dec v)} (conj acc v)) acc))
;> 1
;=> [3 2 1]

(let [k :a [{v k} {w (keyword (str "b" 1))}] [{:a 1} {:b1 2}] {{deep k} k} {:a {:a 3}}] [v w deep])
;=> [1 2 3]

(let [k :a d 7] [(let [{v k :or {v d}} {}] v) (if-let [{v k} {:a 1}] v :none) (when-some [{v k} {:a 2}] v) (if-let [{v k} nil] v :none)])
;=> [7 1 2 :none]

(let [{a :a b a} {:a :x :x 5}] [a b])
;=> [:x 5]

(let [{a (quote k) b 'k c [1 2]} {'k 1 [1 2] 3}] [a b c])
;=> [1 1 3]

(let [{[a b] :p} {:p [1 2]} {x inc} {inc 4}] [a b x])
;=> [1 2 4]

(loop [{v (keyword "a")} {:a 1}] v)
;! invalid_form

;; Keyword arguments: a map of more of them may stand at the end.

(defn f [& {:keys [a b] :or {b :none} :as all}] [a b all])
[(f {:a 1}) (f :b 2 {:a 1}) (f :a 2 {:a 1}) (f {:b 2} {:a 1}) (f :a 1 :b 2) (apply f [:b 3 {:c 4}])]
;=> [[1 :none {:a 1}] [1 2 {:a 1 :b 2}] [1 :none {:a 1}] [nil :none {{:b 2} {:a 1}}] [1 2 {:a 1 :b 2}] [nil 3 {:b 3 :c 4}]]

(let [[x & {:keys [a]}] [1 {:a 2}]] [x a])
;=> [1 2]

((fn [& {:keys [a]}] a) :a 1 :b)
;! destructure_error

;; Keys of a namespace.

[(let [{:a/keys [b c] :or {c 3}} {:a/b 1}] [b c]) (let [{:a/syms [b]} {'a/b 1}] b) ((fn [{:user/keys [id name] :keys [total]}] [id name total]) {:user/id 1 "user/name" "Ann" :total 5}) (let [{:keys [:a/b x/y]} {:a/b 1 :x/y 2}] [b y])]
;=> [[1 3] 1 [1 "Ann" 5] [1 2]]

(let [[a b] (range)] a)
;! destructure_error

(let [[a b] (take 2 (range))] [a b])
;=> [0 1]
