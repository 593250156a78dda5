(for [x [1 2 3]] (* x x))
;=> [1 4 9]

(for [suit [:hearts :spades] rank [1 2]] [suit rank])
;=> [[:hearts 1] [:hearts 2] [:spades 1] [:spades 2]]

(for [x (range 6) :when (even? x) :let [y (* x 10)] :when (> y 0)] y)
;=> [20 40]

(for [x (range 100) :while (< (* x x) 30)] x)
;=> [0 1 2 3 4 5]

;; `:while` ends the innermost walk, not those around it.
(for [x [1 2] y (range 10) :while (< y x)] [x y])
;=> [[1 0] [2 0] [2 1]]

(for [[k v] {:b 2 :a 1}] [v k])
;=> [[1 :a] [2 :b]]

(for [x []] x)
;=> []

(for [c "abc"] (upper-case c))
;=> ["A" "B" "C"]

(doseq [x [1 2] y "ab"] (println x y))
;> 1 a
;> 1 b
;> 2 a
;> 2 b
;=> nil

(loop [n 5 product 1] (if (zero? n) product (recur (dec n) (* product n))))
;=> 120

(defn gcd [a b] (if (zero? b) a (recur b (mod a b))))
(gcd 1071 462)
;=> 21

(loop [i 0 out []] (if (< i 3) (recur (inc i) (conj out (loop [j 0 s 0] (if (> j i) s (recur (inc j) (+ s j)))))) out))
;=> [0 1 3]

(loop [xs [1 2 3 4] odds [] evens []]
  (cond
    (empty? xs) {:odds odds :evens evens}
    (odd? (first xs)) (recur (rest xs) (conj odds (first xs)) evens)
    :else (recur (rest xs) odds (conj evens (first xs)))))
;=> {:evens [2 4] :odds [1 3]}

(loop [i 0] (when (< i 1000) (recur (inc i))))
;=> nil

(loop [i 0] (recur (inc i)))
;! loop_limit_exceeded

(defn forever [n] (recur (inc n)))
(forever 0)
;! loop_limit_exceeded

(defn deeper [n] (inc (deeper n)))
(deeper 0)
;! memory_exceeded

(loop [x 1] (recur))
;! arity_mismatch

(loop [x 1] (inc (recur x)))
;! invalid_form

(for [x 5] x)
;! type_error

(for [:when true x [1]] x)
;! invalid_form

(doseq [x [1 0]] (/ 1 x))
;! arithmetic_error

(map-indexed (fn [i x] (str i x)) ["a" "b"])
;=> ["0a" "1b"]

(keep-indexed (fn [i x] (when (odd? i) x)) [:a :b :c :d])
;=> [:b :d]

(mapcat (fn [n] (range n)) [1 2 3])
;=> [0 0 1 0 1 2]

(reduce-kv (fn [acc k v] (+ acc v)) 0 {:a 1 :b 2 :c 3})
;=> 6

(reduce + [])
;=> 0

(pmap #(* % %) [1 2 3])
;=> [1 4 9]

(pcalls #(+ 1 1) (constantly :b))
;=> [2 :b]

;; Nothing combined is what the function makes of nothing, where it takes nothing.
[(reduce + []) (reduce * nil) (reduce str []) (reduce concat []) (reduce merge []) (reduce conj []) (reduce vector {}) (reduce max [])]
;=> [0 1 "" [] {} [] [] nil]

[(reduce (fn [a b] (+ a b)) []) (reduce (fn [] 7) []) (reduce (fn [& all] (count all)) []) (reduce + [5]) (reduce + 1 [])]
;=> [nil 7 0 5 1]

[(reduce (partial +) []) (reduce (partial + 5) []) (reduce (comp str +) []) (reduce (juxt + *) []) (reduce (constantly 5) [])]
;=> [0 5 "0" [0 1] 5]

[(reduce (complement +) []) (reduce (every-pred odd?) []) (reduce (some-fn :a) nil) (reduce (completing + str) []) (reduce (partial (partial conj [1]) 2) [])]
;=> [false true nil 0 [1 2]]

; What takes an argument is not called without one.
[(reduce (partial max) []) (reduce (comp inc first) []) (reduce (juxt + max) []) (reduce (fnil + 1) []) (reduce :a []) (reduce {:a 1} [])]
;=> [nil nil nil nil nil nil]

(map #(reduce % []) [(fn ([a b] a) ([] :none)) (fn ([] 1) ([a & b] 2)) (partial (fn ([] 0) ([a] [:one a])) 1) (fn [& all] all) (fn [a & all] a)])
;=> [:none 1 [:one 1] [] nil]

[(transduce (map inc) (partial +) []) (transduce (map inc) (completing conj) []) (reductions (partial +) []) (transduce (map inc) (constantly 5) [1])]
;=> [0 [] [0] 5]
