;; Results come in the order of the calls.
(pmap inc [3 1 2])
;=> [4 2 3]

(pmap + [1 2 3] [10 20])
;=> [11 22]

(pmap vector [1] [2] [3])
;=> [[1 2 3]]

(pmap inc [])
;=> []

(pmap (fn [[k v]] [v k]) {:a 1})
;=> [[1 :a]]

(pcalls)
;=> []

(pcalls (fn [] 1) #(+ 1 1) (partial + 1 2))
;=> [1 2 3]

(pcalls (partial pmap inc [1 2]) pcalls)
;=> [[2 3] []]

;; They are values like any function.
[(apply pmap [inc [1 2]]) ((partial pmap inc) [1]) (map pmap [inc dec] [[1] [2]]) (apply pcalls [(fn [] 1)])]
;=> [[2 3] [2] [[2] [1]] [1]]

((comp first pmap) inc [1])
;=> 2

(pmap 1 [])
;! type_error

(pmap {:a 1} [:a])
;=> [1]

(pcalls 1)
;! pcalls_error

(pmap (fn [x] (/ 1 x)) [1 0])
;! pmap_error

(pcalls #(inc "a"))
;! pcalls_error

;; The outer call gives the fault its name.
(pcalls (fn [] (pmap inc [nil])))
;! pcalls_error

(map (fn [x] (pmap inc [x])) [nil])
;! pmap_error

(pmap (fn [x] (return x)) [1])
;! pmap_error

(pcalls (fn [] (fail 1)))
;! pcalls_error

(return (pmap inc [1]))
;=> [2]

;; A definition of a worker is its own.
(def x 1) [(pmap (fn [i] (def x i) x) [5 6]) x]
;=> [[5 6] 1]

(def x 1) (pmap (fn [_] (defonce x 9) x) [0])
;=> [1]

(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (pmap fib (range 10))
;=> [0 1 1 2 3 5 8 13 21 34]

(pmap (fn [x] (println "worker" x) (pmap (fn [y] (println "inner" x y) (* x y)) [1 2])) [3 4])
;> worker 3
;> inner 3 1
;> inner 3 2
;> worker 4
;> inner 4 1
;> inner 4 2
;=> [[3 6] [4 8]]

(let [big (vec (range 1000))] (pmap (fn [i] (reduce + (subvec big i (+ i 10)))) [0 500]))
;=> [45 5045]

(pmap (fn [i] (nth (conj [1 2 3] i) 3)) [7 8])
;=> [7 8]

(pmap :name [{:name "a"} {:name "b"} {}])
;=> ["a" "b" nil]

(pmap #{1 2} [1 3])
;=> [1 nil]
