;; A second number to round says how many digits are kept.
[(round 2.675 2) (round -1.005 2) (round 1234.5 -2) (round 7 2) (round 3.0 2) (round 0.5 0) (round -0.001 2)]
;=> [2.68 -1.01 1200.0 7 3.0 1.0 0.0]

[(round 1250 -2) (round -1250 -2) (round 49 -2) (round 123456789012345678901234567890 -20) (round 5 -1) (round 4 -99999999999)]
;=> [1300 -1300 0 123456789000000000000000000000 10 0]

[(round 1.5e300 2) (round 1e-300 2) (round 5e-324 324) (round ##Inf 2) (round 123456.789 400)]
;=> [1.5e300 0.0 5.0e-324 ##Inf 123456.789]

(round 1.7e308 -308)
;! arithmetic_error

(round 1.5 0.5)
;! type_error

(round "1.5" 2)
;! type_error

;; Numbers and texts of numbers, as untidy data has them.
[(parse-number 5) (parse-number 2.5) (parse-number "007") (parse-number "+3") (parse-number "1e3") (parse-number "\n 4 ")]
;=> [5 2.5 7 3 1000.0 4]

[(parse-number "") (parse-number "1,5") (parse-number "NaN") (parse-number "1e999") (parse-number :a) (parse-number [1])]
;=> [nil nil nil nil nil nil]

(sum (keep parse-number ["1" 2 "x" nil " 3.5 " 12345678901234567890]))
;=> 1.2345678901234567e19

[(median [5 1 3]) (median [1 2.0]) (median []) (median #{3 1 2}) (median [1 nil 3 nil 8]) (median (range 1 11))]
;=> [3 1.5 nil 2 3 5.5]

[(percentile 0 [3 1 2]) (percentile 100 [3 1 2]) (percentile 25 [1 2 3 4]) (percentile 50 [7]) (percentile 99.5 (range 1001))]
;=> [1 3 1.75 7 995]

(median (range))
;! type_error

(median [1 :a])
;! type_error

(percentile -1 [1])
;! type_error

;; Pieces that a nil, or a sequence without an end, fills up.
[(partition 3 3 nil [1 2 3 4]) (partition 3 3 (repeat 0) [1 2 3 4]) (partition 2 2 (cycle [:a :b]) [1 2 3]) (partition-all 0 1 [1 2])]
;=> [[[1 2 3] [4]] [[1 2 3] [4 0 0]] [[1 2] [3 :a]] [[] []]]

[(partition 0 1 [1 2]) (partition 0 2 []) (partitionv 2 [1 2 3 4]) (partitionv-all 2 [1 2 3]) (splitv-at 1 [1 2 3])]
;=> [[[] []] [] [[1 2] [3 4]] [[1 2] [3]] [[1] [2 3]]]

(partition 0 [1 2])
;! type_error

;; A whole float counts as well as its integer does; a part of an element counts as one.
[(take 2.0 [1 2 3]) (drop (/ 4 2) [1 2 3]) (nth [1 2 3] 1.0) (repeat 2.0 :x) (partition 2.0 [1 2]) (take 1.5 [1 2 3]) (drop 0.5 [1 2])]
;=> [[1 2] [3] 2 [:x :x] [[1 2]] [1 2] [2]]

(take 2.5 (range))
;=> [0 1 2]

(nth [1 2 3] 1.5)
;! type_error

(take ##NaN [1])
;! type_error

[(get #{1 2} 1) (get #{1} 5 :none) (get-in nil [:a :b]) (get-in nil [:a] 0)]
;=> [1 :none nil 0]

;; What has a rest can be anything that is walked.
[(let [[x & more] #{2 1 3}] [x more]) (let [[[k v] & more] {:a 1 :b 2}] [k v more])]
;=> [[1 [2 3]] [:a 1 [[:b 2]]]]

(let [[a b] #{1 2}] a)
;! destructure_error

[(list* [1 2]) (list* 1 2 "ab") (list* nil nil)]
;=> [[1 2] [1 2 "a" "b"] [nil]]

(list* 1 (range))
;! type_error

[(read-string "42") (read-string "{:a #{\\b \"c\"}} rest") (clojure.edn/read-string "nil") (read-string "'x") (read-string "(quote 1)")]
;=> [42 {:a #{"b" "c"}} nil 'x ['quote 1]]

(read-string "#(inc %)")
;! type_error

(read-string "{:a 1 :a 2}")
;! runtime_error

[(uuid? "9F4A7B7E-6D1F-4D53-9A3E-0D2F7A3B1C55") (parse-uuid nil) (parse-uuid "9f4a7b7e-6d1f-4d53-9a3e-0d2f7a3b1c5g") (uuid? 5)]
;=> [true nil nil false]

;; Names of other libraries for what is there.
[(clojure.math/sqrt 16) (math/floor-div -7 2) (clojure.math/pow 2 3) clojure.math/PI (json/write-str {:a 1}) (cheshire.core/parse-string "{\"a\":1}" true)]
;=> [4.0 -4 8.0 3.141592653589793 "{\"a\":1}" {:a 1}]

(require '[clojure.math :refer [sqrt to-degrees]] '[clojure.data.json :as j]) [(sqrt 4) (to-degrees 0) (j/read-str "[1]")]
;=> [2.0 0.0 [1]]

(ns my.app (:require [clojure.string :refer :all] [clojure.math :refer :all]) (:use [clojure.set :only (union)])) [(reverse "abc") (ceil 1.2) (union #{1} #{2})]
;=> ["cba" 2.0 #{1 2}]

(use '[clojure.string :exclude (reverse) :rename {join glue}]) [(reverse "ab") (glue "-" [1 2]) (blank? "")]
;=> [["b" "a"] "1-2" true]

(ns my.app) (defn f [x] (* 2 x)) (my.app/f 21)
;=> 42

(clojure.math/nope 1)
;! invalid_form

[(map String/toUpperCase ["a"]) (map String/.length ["ab"]) (.. "abc" (substring 1) toUpperCase) (. "abc" length) (. Math PI)]
;=> [["A"] [2] "BC" 3 3.141592653589793]

[(new Integer "5") (Long. "7") (String. "a") (instance? Number 1) (instance? java.util.Map {}) (class 1)]
;=> [5 7 "a" true true :number]

(pprint {:a [1 "b"]})
;> {:a [1 "b"]}
;=> nil

;; What Clojure makes bit by bit is made at once.
(defn up [n] (lazy-seq (when (< n 4) (cons n (up (inc n)))))) [(up 0) (count (up 0)) (lazy-cat [1] nil "ab") (lazy-seq {:a 1})]
;=> [[0 1 2 3] 4 [1 "a" "b"] [[:a 1]]]

(defn from [n] (lazy-seq (cons n (from (inc n))))) (take 3 (from 0))
;! memory_exceeded

(take 3 (lazy-seq (range)))
;=> [0 1 2]

(def fib (memoize (fn [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))))) (fib 15)
;=> 610

(def x (map (fn [y] x) [1]))
;! type_error

(def x (inc x))
;! unbound_var

[(assert true) (try (assert false) (catch AssertionError e (ex-message e))) (try (throw (Throwable. "a")) (catch Throwable e (ex-message e)))]
;=> [nil "Assert failed: false" "a"]

(defn message [f] (try (f) (catch Error e (ex-message e))))
[(message (fn [] (assert (= [1 "a  b"] {:k 2})))) (message #(assert (pos? -1))) (message (fn [] (-> 1 (= 2) assert)))]
;=> ["Assert failed: (= [1 \"a  b\"] {:k 2})" "Assert failed: (pos? -1)" "Assert failed: (= 2)"]
(try (assert (= "ääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääääää" "b")) (catch Error e (count (ex-message e))))
;=> 120

[(into) (into #{1}) (reduce into []) (transduce (map list) into [] [1 2]) (edn/read-string nil)]
;=> [[] #{1} [] [1 2] nil]

(assert (= 1 2) "one is not two")
;! uncaught_exception

;; Sequences without an end in for.
[(take 3 (for [x (range) :when (odd? x)] (* x x))) (for [x (range) :while (< x 3) y [:a :b]] [x y])]
;=> [[1 9 25] [[0 :a] [0 :b] [1 :a] [1 :b] [2 :a] [2 :b]]]

(for [x (iterate inc 1) :let [y (* x x)] :while (< y 20) :when (odd? y)] y)
;=> [1 9]

(for [x [1 2] y (range) :while (< y x)] [x y])
;=> [[1 0] [2 0] [2 1]]

(first (for [a (range 1 50) b (range a 50) :let [c (* b 2)] :when (= c 12)] [a b]))
;=> [1 6]

(take 4 (for [[a b] (map vector (range) (iterate dec 0)) c [:x :y]] [a b c]))
;=> [[0 0 :x] [0 0 :y] [1 -1 :x] [1 -1 :y]]

(def n 0) (doseq [x (range) :while (< x 4)] (def n (+ n x))) n
;=> 6

(doseq [x (range)] x)
;! type_error

(iteration (fn [token] (get {nil {:items [1 2] :next "b"} "b" {:items [3]}} token)) :vf :items :kf :next)
;=> [[1 2] [3]]

[(iteration (fn [n] n) :initk 1 :somef #(< % 4) :kf inc) (iteration (fn [_] nil))]
;=> [[1 2 3] []]

[(.pow 3 0) (.pow -2 3) (.pow 1 2000000000) (.pow 0 5) (join nil ["a" 1]) (partition 0 []) (.contains [:a] :b)]
;=> [1 -8 1 0 "a1" [] false]

(.pow 2 2000000000)
;! arithmetic_error
