;; Closures keep what was visible where they were made.

(defn adder [n] (fn [x] (+ x n)))
(let [add2 (adder 2) add10 (adder 10)] [(add2 1) (add10 1)])
;=> [3 11]

(let [n 1 f (fn [] n) n 2] [(f) n])
;=> [1 2]

(map (fn [f] (f)) (map (fn [i] (fn [] (* i i))) [1 2 3]))
;=> [1 4 9]

((fn fact [n] (if (< n 2) 1 (* n (fact (dec n))))) 10)
;=> 3628800

(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(map fib (range 10))
;=> [0 1 1 2 3 5 8 13 21 34]

(defn total "Adds up everything." [& xs] (reduce + 0 xs))
[(total) (total 1) (total 1 2 3)]
;=> [0 1 6]

(#(str %1 "-" %2 "-" %1) "a" "b")
;=> "a-b-a"

(#(count %&) 1 2 3)
;=> 3

((comp inc #(* 2 %)) 5)
;=> 11

((partial str "a" "b") "c" "d")
;=> "abcd"

(map (juxt :id #(count (:items %))) [{:id 1 :items [1 2]} {:id 2 :items []}])
;=> [[1 2] [2 0]]

((complement empty?) [])
;=> false

(map (constantly 0) [:a :b])
;=> [0 0]

((fnil inc 0) nil)
;=> 1

[((every-pred pos? even?) 2 4) ((every-pred pos? even?) 2 3) ((some-fn neg? odd?) 2 3)]
;=> [true false true]

(apply max 3 [9 4])
;=> 9

;; Keywords, maps and sets are functions.
[(:a {:a 1}) (:z {:a 1} :none) ({:a 1} :a) (#{1 2} 2) (#{1 2} 3)]
;=> [1 :none 1 2 nil]

;; A local name hides a built-in, and only there.
(let [count (fn [_] :mine)] (count [1 2]))
;=> :mine

(def inc (fn [x] (+ x 100)))
(inc 1)
;=> 101

(def base 10)
(defn scale [x] (* x base))
(def base 20)
(scale 2)
;=> 40

(defonce once 1)
(defonce once 2)
once
;=> 1

((reduce (fn [f g] (comp g f)) identity [inc inc #(* 10 %)]) 1)
;=> 30

((reduce comp [inc inc #(* 10 %)]) 1)
;=> 12

(defn two [a b] [a b])
(two 1)
;! arity_mismatch

(first)
;! arity_error

("text" 1)
;! not_callable

([1 2] 2)
;! not_callable

(defn early [] (late))
(defn late [] 1)
(early)
;! unbound_var

(let [loop-back (fn [n] (loop-back n))] (loop-back 1))
;! unbound_var

;; A function of any number of arguments gets a vector of them at every call.
[(map (fn [& xs] xs) [1 2 3 4]) (map (fn [x & xs] [x xs]) [1 2 3]) (map #(count %&) [1 2 3]) (map (fn [& xs] xs) [1 2 3] [4 5 6])]
;=> [[[1] [2] [3] [4]] [[1 []] [2 []] [3 []]] [1 1 1] [[1 4] [2 5] [3 6]]]

[(filter (fn [& [x]] (odd? x)) (range 9)) (remove (fn [& xs] (odd? (first xs))) (range 9)) (reduce (fn [& xs] xs) [1 2 3 4])]
;=> [[1 3 5 7] [0 2 4 6 8] [[[1 2] 3] 4]]

[(reduce (fn [a & xs] [a xs]) 0 [1 2 3]) (sort (fn [& xs] (apply < xs)) [3 1 2 5 4 9 0]) (sort-by (fn [& xs] (first xs)) (fn [a & more] (> a (first more))) [3 1 2 5 4 9 0])]
;=> [[[[0 [1]] [2]] [3]] [0 1 2 3 4 5 9] [9 5 4 3 2 1 0]]

;; A short function around a single value answers it; around its argument it calls it, if that is a function.
(map #(%) [(fn [] 1) vector (constantly 3) :a 5 nil])
;=> [1 [] 3 :a 5 nil]

(#(%1) (fn [x] x))
;! arity_mismatch

[(#(%) 7) (#(identity :k)) (#([%2 %1]) 1 2)]
;=> [7 :k [2 1]]

#(+ 1 #(+ % 1))
;! invalid_form

;; Conditions are read and left out, whatever stands in them.

(defn f [x] {:pre [(pos? x)] :post [(> % 0) (nope %)]} x)
(defn g "Doc." ([x] {:post [(= % x)]} x) ([x y] {:pre [(some-name y)]} [x y]))
[(f -1) (g 1) (g 1 2) ((fn [x] {:post [%]} x) 3) (let [h (fn me [x] {:post [(me %)]} x)] (h 4))]
;=> [-1 1 [1 2] 3 4]

[((fn [x] {:pre x}) 1) ((fn [x] {:a x} x) 2) ((fn [] {:post 1}))]
;=> [{:pre 1} 2 {:post 1}]
