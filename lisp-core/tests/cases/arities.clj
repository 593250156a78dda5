;; Functions of several arities.

(defn f ([] [:none]) ([x] [x]) ([x y & more] [x y more]))
[(f) (f 1) (f 1 2) (f 1 2 3 4) (apply f [5]) (map f [1 2])]
;=> [[:none] [1] [1 2 []] [1 2 [3 4]] [5] [[1] [2]]]

(defn down "Counts." {:added "1"} ([n] (down n [])) ([n acc] (if (= n 0) acc (recur (dec n) (conj acc n)))))
(down 3)
;=> [3 2 1]

(defn f ([x] x) ([x y] y))
(f 1 2 3)
;! arity_mismatch

(let [k 10 f (fn me ([x] (me x k)) ([x y] (+ x y k)))] [(f 1) (f 1 2) (map f [1] [2]) (reduce f [1 2 3])])
;=> [21 13 [13] 26]

(defn outer [a] (fn ([] a) ([b] [a b]) ([b & c] [a b c])))
[((outer 1)) ((outer 1) 2) ((outer 1) 2 3)]
;=> [1 [1 2] [1 2 [3]]]

(sort-by (fn ([x] (- x))) [1 3 2])
;=> [3 2 1]

(defn f ([x] 1) ([y] 2))
;! invalid_form

(defn f ([& x] 1) ([y & z] 2))
;! invalid_form

(defn f ([a b] 1) ([a & b] 2))
;! invalid_form

(defn f ([x] 1) 2)
;! invalid_form

((fn ([{:keys [a]}] a) ([[x y] z] [x y z])) [1 2] 3)
;=> [1 2 3]

;; Functions that know each other.

(letfn [(even [n] (if (= n 0) true (odd (dec n)))) (odd [n] (if (= n 0) false (even (dec n))))]
  [(even 10) (even 7) (map odd [1 2])])
;=> [true false [true false]]

(let [k 3 m 1]
  (letfn [(up [x] (if (> x 10) [x m] (on (+ x k)))) (on [x] (first (map (fn [y] (up (+ y 1))) [x]))) (alone [x] x)]
    [(up 1) (alone 2)]))
;=> [[13 1] 2]

(letfn [(f ([x] (f x 1)) ([x y] (g x y))) (g [x y] (if (> x 3) [x y] (f (inc x))))] (f 1))
;=> [4 1]

(letfn [(f [] 1)] (letfn [(g [] (f)) (h [] (g))] (h)))
;=> 1

(let [fs (letfn [(a [n] (if (= n 0) :a (b (dec n)))) (b [n] (if (= n 0) :b (a (dec n))))] [a b])] (map (fn [f] (f 3)) fs))
;=> [:b :a]

(letfn [(f [f] f)] (f 1))
;=> 1

(letfn [f 1] f)
;! invalid_form

(declare later)
(defn now [x] (later x))
(defn later [x] (* 2 x))
(now 21)
;=> 42

(declare later)
(defn now [x] (later x))
(now 21)
;! unbound_var

(declare a b)
;=> #'b
