;; Transducers.

(into [] (comp (filter odd?) (map inc) (remove #{4})) [1 2 3 4 5])
;=> [2 6]

(into {} (map (fn [[k v]] [v k])) {:a 1 :b 2})
;=> {1 :a 2 :b}

(into #{} (comp cat (distinct)) [[1 2] #{2 3} nil "a"])
;=> #{1 2 3 "a"}

(into [] (comp (mapcat (fn [x] (range x))) (filter odd?) (mapcat (fn [x] [x x])) (take 5)) [3 5 7])
;=> [1 1 1 1 3]

[(into [] (comp (partition-all 2) (take 1)) [1 2 3]) (into [] (comp (take 3) (partition-all 2)) (range)) (into [] (partition-by odd?) [1 3 2 5])]
;=> [[[1 2]] [[0 1] [2]] [[1 3] [2] [5]]]

(into [] (comp (take 2) (mapcat (fn [x] [x x x]))) (range))
;=> [0 0 0 1 1 1]

(into [] (comp (map-indexed vector) (keep-indexed (fn [i x] (when (even? i) x))) (interpose :and)) [:a :b :c])
;=> [[0 :a] :and [2 :c]]

[(into [] (dedupe) [1 1 2 1]) (into [] (take-nth 2) [1 2 3 4 5]) (into [] (drop 1) [1 2]) (into [] (drop-while odd?) [1 3 4 5]) (into [] (take-while odd?) [1 3 4 5])]
;=> [[1 2 1] [1 3 5] [2] [4 5] [1 3]]

[(transduce (map inc) + [1 2 3]) (transduce (map inc) + 10 [1 2 3]) (transduce cat conj [[1] [2 3]]) (transduce (map inc) (completing + str) 0 [1 2])]
;=> [9 19 [1 2 3] "5"]

(transduce (map inc) (fn [a x] (if (> x 3) (reduced a) (+ a x))) 0 (range))
;! runtime_error

(transduce (map inc) (completing (fn [a x] (if (> x 3) (reduced a) (+ a x)))) 0 (range))
;=> 6

(let [xf (comp (map inc) (filter odd?))] [(sequence xf [1 2 3 4]) (eduction xf (map str) [1 2]) (take 2 (sequence xf (range)))])
;=> [[3 5] ["3"] [1 3]]

(into [] inc [1])
;! type_error

((map inc) [1 2])
;! not_callable

;; Sequences without an end.

[(take 3 (range)) (take 3 (repeat :x)) (take 5 (cycle [1 2])) (take 4 (iterate #(* 2 %) 1)) (take 2 (repeatedly (fn [] 7)))]
;=> [[0 1 2] [:x :x :x] [1 2 1 2 1] [1 2 4 8] [7 7]]

(->> (range) (map #(* % %)) (filter odd?) (drop 1) (remove #(zero? (mod % 3))) (take 4))
;=> [25 49 121 169]

[(first (drop-while #(< % 100) (iterate #(* 3 %) 1))) (second (range)) (nth (map inc (range)) 10) (nth (range) -1 :none)]
;=> [243 1 11 :none]

[(take-while #(< % 20) (iterate #(* 2 %) 1)) (some #(when (> % 10) %) (range)) (every? #(< % 10) (range)) (not-any? neg? (cycle [1 -1]))]
;=> [[1 2 4 8 16] 11 false false]

[(map vector [:a :b] (range)) (zipmap [:a :b] (repeat 0)) (interleave [1 2] (repeat :x)) (map + (range) (iterate inc 10) [1 1 1])]
;=> [[[:a 0] [:b 1]] {:a 0 :b 0} [1 :x 2 :x] [11 13 15]]

[(take 3 (map + (range) (iterate inc 10))) (take 5 (interleave (range) (cycle [:a :b]))) (take 20 (map vector (range) (range)))]
;=> [[10 12 14] [0 :a 1 :b 2] [[0 0] [1 1] [2 2] [3 3] [4 4] [5 5] [6 6] [7 7] [8 8] [9 9] [10 10] [11 11] [12 12] [13 13] [14 14] [15 15] [16 16] [17 17] [18 18] [19 19]]]

[(take 2 (partition 3 1 (range))) (take 2 (partition-all 2 3 (range))) (take 2 (partition-by #(quot % 3) (range)))]
;=> [[[0 1 2] [1 2 3]] [[0 1] [3 4]] [[0 1 2] [3 4 5]]]

[(take 3 (cons :x (rest (range)))) (take 4 (rest (concat [1 2] nil (range)))) (take 3 (next (cons 1 (cons 2 (repeat 3))))) (take 3 (drop 5 (concat [1 2] (cycle [3 4]))))]
;=> [[:x 1 2] [2 0 1 2] [2 3 3] [4 3 4]]

[(take 3 (map-indexed vector (cycle [:a :b]))) (take 3 (distinct (cycle [1 2 3]))) (take 4 (interpose 0 (repeat 1))) (take 3 (take-nth 3 (range))) (take 5 (mapcat (fn [x] [x (- x)]) (rest (range))))]
;=> [[[0 :a] [1 :b] [2 :a]] [1 2 3] [1 0 1 0] [0 3 6] [1 -1 2 -2 3]]

[(take 4 (reductions + (range))) (take 3 (reductions conj [] (range))) (first (split-with #(< % 3) (range))) (take 2 (second (split-at 3 (range))))]
;=> [[0 1 3 6] [[] [0] [0 1]] [0 1 2] [3 4]]

(reduce (fn [a x] (if (> a 10) (reduced a) (+ a x))) (range))
;=> 15

(loop [s (iterate inc 0) n 0] (if (= n 50) (first s) (recur (rest s) (inc n))))
;=> 50

[(map first [(range) (iterate inc 4)]) (map #(take 2 %) [(range) (cycle [1])]) (map (partial take 2) [(range)]) (apply take [2 (range)]) (sort-by first [[2] [1]]) (map count (sort-by first [(map inc [1]) [1 2]]))]
;=> [[0 4] [[0 1] [1 1]] [[0 1]] [0 1] [[1] [2]] [2 1]]

(map first [(range) (iterate inc 4) [7] (map inc (range))])
;=> [0 4 7 1]

(def s (iterate (fn [[a b]] [b (+ a b)]) [0 1]))
(map first (take 10 s))
;=> [0 1 1 2 3 5 8 13 21 34]

[(empty? (range)) (some? (seq (range))) (type (range))]
;=> [false true :sequence]

(count (range))
;! type_error

(str (map inc (range)))
;! type_error

(= (range) [0])
;! type_error

(map inc (range))
;! type_error

(return (range))
;! type_error

(for [x (range)] x)
;! type_error

(mapcat (fn [x] (repeat x)) [1 2])
;! type_error

(json/generate-string (range))
;! type_error

;; What ends early, and what goes with it.

[(reductions + [1 2 3]) (reductions + 10 [1 2]) (reductions + []) (reductions (fn [a x] (if (> x 2) (reduced :done) (+ a x))) [1 2 3 4])]
;=> [[1 3 6] [10 11 13] [0] [1 3 :done]]

[(reduce (fn [a x] (if (= x 3) (reduced a) (+ a x))) 0 [1 2 3 4]) (reduce-kv (fn [a k v] (if (= k :b) (reduced a) (+ a v))) 0 {:a 1 :b 2}) (reduced? (reduced 1)) (unreduced (reduced 1)) (unreduced 2)]
;=> [3 1 true 1 2]

[(reduce + []) (reduce str []) (reduce conj []) (reduce max [])]
;=> [0 "" [] nil]

(do (run! println [1 2]) (run! inc nil))
;> 1
;> 2
;=> nil

;; Maps, sets and vectors as functions.

[(map {:a 1} [:a :b]) (mapcat {:a [1 2]} [:a :b]) (filter {:a 1} [:a :b]) (keep {:a 1} [:a :b]) (remove {:a 1} [:a :b]) (some {:a 1} [:b :a])]
;=> [[1 nil] [1 2] [:a] [1] [:b] 1]

[(sort-by {:a 2 :b 1} [:a :b]) (update {:a :x} :a {:x 9}) (group-by {1 :one} [1 2 1]) (partition-by {1 :x 2 :x} [1 2 3]) (map #{1 2} [1 2 3]) (map [10 20] [1 0]) ([1 2] 1)]
;=> [[:b :a] {:a 9} {nil [2] :one [1 1]} [[1 2] [3]] [1 2 nil] [20 10] 2]

;; What can be walked.

[(first #{3 1}) (sort #{3 1 2}) (take 1 #{2 1}) (first {:a 1}) (ffirst {:a 1}) (into [] #{2 1}) (concat "ab" [1] nil {:a 1}) (apply + nil) (apply str "ab")]
;=> [1 [1 2 3] [1] [:a 1] :a [1 2] ["a" "b" 1 [:a 1]] 0 "ab"]

[(set nil) (set "aab") (set {:a 1}) (into {} [{:a 1} [:b 2] nil]) (conj {:a 1} {:b 2} [:c 3]) (mapcat identity [[1] nil #{2} "b"]) (flatten {:a 1})]
;=> [#{} #{"a" "b"} #{[:a 1]} {:a 1 :b 2} {:a 1 :b 2 :c 3} [1 2 "b"] []]

[(map + [1] [1] [1] [1] [1]) (mapcat vector [1 2] [3 4]) (partition-all 3 1 [1 2 3]) ((fnil + 1 2) nil nil)]
;=> [[5] [1 3 2 4] [[1 2 3] [2 3] [3]] 3]

; A step that holds an element back gives it to nobody who has had enough.
[(into [] (comp (partition-by odd?) (take-while #(odd? (first %)))) [1 2 3 3]) (transduce (partition-by odd?) (fn ([a] a) ([a x] (reduced x))) nil [1 2 3])
 (into [] (comp (take 3) (partition-by odd?)) [1 3 2 4]) (into [] (comp (partition-all 2) (take 1)) [1 2 3])]
;=> [[[1]] [1] [[1 3] [2]] [[1 2]]]

; What has no end is refused where it can be caught, by a built-in that calls functions in some cases only, too.
[(try (replace (range) [1 2]) (catch Exception e :caught)) (try (replace-first "a" #"a" (range)) (catch Exception e :caught))]
;=> [:caught :caught]

(try (replace (range) [1 2]) (catch Exception e (println "caught")) (finally (println "closed")))
;> caught
;> closed
;=> nil
