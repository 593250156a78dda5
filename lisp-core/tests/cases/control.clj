;; Branches: what counts as true, and what is left undone.

(map (fn [x] (if x :yes :no)) [nil false true 0 "" [] {} #{}])
;=> [:no :no :yes :yes :yes :yes :yes :yes]

(if false :never)
;=> nil

(if-not (empty? [1]) "filled" "void")
;=> "filled"

(when (> 3 2) (println "kept") :last)
;=> :last

[(when nil 1) (when-not nil 1) (when-not 0 1)]
;=> [nil 1 nil]

(defn size [n] (cond (< n 10) :small (< n 100) :medium :else :large))
(map size [5 50 500])
;=> [:small :medium :large]

(cond (= 1 2) :a (= 1 3) :b)
;=> nil

(map #(case % :red "stop" (:amber :yellow) "wait" "go") [:red :yellow :green])
;=> ["stop" "wait" "go"]

(case "b" "a" 1 "b" 2)
;=> 2

(case 7 1 :one 2 :two)
;=> nil

(map (fn [n] (condp < n 1000 :thousands 100 :hundreds :few)) [5000 500 5])
;=> [:thousands :hundreds :few]

(let [seen (fn [x] (condp = x 1 :one 2 :two))] [(seen 2) (seen 3)])
;=> [:two nil]

[(and) (and 1 nil 2) (and 1 2) (or) (or nil false) (or nil 0 1)]
;=> [true nil 2 nil false 0]

;; The right side of a decided `and` or `or` never runs.
[(and false (/ 1 0)) (or :ok (/ 1 0))]
;=> [false :ok]

(if-let [n (get {:n 3} :n)] (* n n) :none)
;=> 9

(if-let [n (get {} :n)] (* n n) :none)
;=> :none

(if-some [b (get {:b false} :b)] [:found b] :none)
;=> [:found false]

(when-let [xs (seq [])] (first xs))
;=> nil

(when-some [b false] [b])
;=> [false]

(when-first [x [nil 1]] [:got x])
;=> [:got nil]

(when-first [x []] [:got x])
;=> nil

(do 1 2 (comment (this is never looked up)) 3)
;=> 3

(do)
;=> nil

;; Ending early goes through every function on the way.
(defn check [x] (when (> x 2) (return [:too-big x])))
(map check [1 2 3 4])
:not-reached
;=> [:too-big 3]

(reduce (fn [sum x] (if (neg? x) (fail {:negative x}) (+ sum x))) 0 [1 2 -5 9])
;=> {:negative -5}

(if 1)
;! invalid_arity

(cond true)
;! invalid_cond_form

(let [x 1 y] x)
;! invalid_form

()
;=> []
