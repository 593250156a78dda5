(conj [1 2] 3 4)
;=> [1 2 3 4]

(conj #{1} 1 2)
;=> #{1 2}

(conj {:a 1} [:b 2] [:a 3])
;=> {:a 3 :b 2}

(conj {:a 1} {:b 2})
;=> {:a 1 :b 2}

(into {} [[:a 1] [:b 2]])
;=> {:a 1 :b 2}

(into #{} [3 1 3])
;=> #{1 3}

(merge {:a 1 :b 1} {:b 2} nil {:c 3})
;=> {:a 1 :b 2 :c 3}

(merge-with + {:a 1 :b 2} {:b 3 :c 4})
;=> {:a 1 :b 5 :c 4}

(frequencies ["a" "b" "a"])
;=> {"a" 2 "b" 1}

[(take 2 [1 2 3]) (drop 2 [1 2 3]) (take-last 2 [1 2 3]) (drop-last [1 2 3]) (take-while pos? [1 2 -1 3])]
;=> [[1 2] [3] [2 3] [1 2] [1 2]]

(partition 2 [1 2 3 4 5])
;=> [[1 2] [3 4]]

(partition-all 2 [1 2 3])
;=> [[1 2] [3]]

(partition 3 1 [1 2 3 4])
;=> [[1 2 3] [2 3 4]]

(partition-by odd? [1 3 2 4 5])
;=> [[1 3] [2 4] [5]]

(split-with neg? [-2 -1 0 1])
;=> [[-2 -1] [0 1]]

(interleave [:a :b] [1 2 3])
;=> [:a 1 :b 2]

(interpose "," ["a" "b" "c"])
;=> ["a" "," "b" "," "c"]

(zipmap [:a :b :c] [1 2])
;=> {:a 1 :b 2}

(flatten [1 [2 [3 [4]]] []])
;=> [1 2 3 4]

(distinct [3 1 3 2 1])
;=> [3 1 2]

(dedupe [1 1 2 2 1])
;=> [1 2 1]

(sort [3 1 2])
;=> [1 2 3]

(sort-by (juxt :a :b) [{:a 2 :b 1} {:a 1 :b 9} {:a 1 :b 3}])
;=> [{:a 1 :b 3} {:a 1 :b 9} {:a 2 :b 1}]

(sort-by :n > [{:n 1} {:n 3} {:n 2}])
;=> [{:n 3} {:n 2} {:n 1}]

;; Equal keys keep their order.
(map :id (sort-by :k [{:id 1 :k 0} {:id 2 :k 1} {:id 3 :k 0} {:id 4 :k 1}]))
;=> [1 3 2 4]

(max-by :age [{:n "a" :age 3} {:n "b" :age 7}])
;=> {:age 7 :n "b"}

[(sum [1 2 3]) (avg [1 2 3 4]) (sum-by :n [{:n 1} {:n 2}])]
;=> [6 2.5 3]

[(union #{1 2} #{2 3}) (intersection #{1 2} #{2 3}) (difference #{1 2} #{2 3})]
;=> [#{1 2 3} #{2} #{1}]

(update-vals {:a 1 :b 2} inc)
;=> {:a 2 :b 3}

(update-keys {:a 1} name)
;=> {"a" 1}

(postwalk #(if (number? %) (* 10 %) %) {:a [1 {:b 2}]})
;=> {:a [10 {:b 20}]}

(tree-seq vector? identity [1 [2 [3]]])
;=> [[1 [2 [3]]] 1 [2 [3]] 2 [3] 3]

(combinations [1 2 3] 2)
;=> [[1 2] [1 3] [2 3]]

(vals {:z 26 :a 1})
;=> [1 26]

{:a 1 :a 2}
;! duplicate_key

(sort [1 "a"])
;! type_error

(first #{1 2})
;=> 1

;; What is far too long is not begun, and what only looks long is.
[(count (range 0 1 0.01)) (count (range 100000000000000000000000 100000000000000000000003))]
;=> [100 3]

(range 1e9)
;! memory_exceeded

(range 0 1 1e-12)
;! memory_exceeded

[(combinations [1 2 3 4] 4) (count (combinations (range 9) 4)) (count (combinations (range 20) 19))]
;=> [[[1 2 3 4]] 126 20]

(combinations (range 40) 20)
;! memory_exceeded

[(map-invert {:a 1 :b 2}) (map-invert nil) (rename-keys {:a 1 :b 2} {:a :b :b :a}) (rename-keys {"a" 1} {:a :x}) (rename-keys nil {:a :b}) (rename-keys {:a 1} nil) (get nil {:a 1}) (get nil {:a 1} :none)]
;=> [{1 :a 2 :b} {} {:a 2 :b 1} {:x 1} nil {:a 1} nil :none]

(try (map-invert [3 1]) (catch Exception e (ex-message e)))
;=> "map-invert expects a map, got a vector of 2 elements"

;; As the reference has it, nil is no set and a vector no map of places.

(clojure.set/union nil #{1})
;! runtime_error

(reduce-kv (fn [a i v] (conj a [i v])) [] [:x :y])
;! type_error

(sort-by "n" [{"n" 2} {"n" 1}])
;! type_error

;; A vector grows at its end, by update too.

[(update [] 0 (fnil inc 0)) (update-in [1 2] [2] (fn [_] 5)) (update-in {:a [1]} [:a 1] str) (assoc-in [1] [1] 2)]
;=> [[1] [1 2 5] {:a [1 ""]} [1 2]]

(update [1] 2 identity)
;! runtime_error
