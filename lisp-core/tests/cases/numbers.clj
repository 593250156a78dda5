[(+ 1 2.0) (- 5) (* 2 3 4) (/ 6 3) (/ 1 4)]
;=> [3.0 -5 24 2.0 0.25]

[(quot 7 2) (rem -7 2) (mod -7 2) (mod 7 -2)]
;=> [3 -1 1 -1]

;; Integers have no end.
(+ 9223372036854775807 1)
;=> 9223372036854775808

(reduce * (range 1 26))
;=> 15511210043330985984000000

(- (* 99999999999 99999999999) (* 99999999999 99999999998))
;=> 99999999999

(let [big (* 4611686018427387904 4)] [(= big 18446744073709551616) (> big 1) (even? big) (quot big 4611686018427387904)])
;=> [true true true 4]

[(bit-shift-left 1 70) (bit-and 12 10) (bit-or 12 10) (bit-xor 12 10) (bit-not 0)]
;=> [1180591620717411303424 8 14 6 -1]

;; Numbers are the same by their value: for `=`, as keys and members, for `case`, and where values are grouped or ordered.
[(= 1 1.0) (== 1 1.0) (get {1 :int} 1.0) ({2.0 :float} 2) (contains? #{1} 1.0) (contains? [1] 1.0) (case 1.0 1 :one)]
;=> [true true :int :float true true :one]

[(distinct [1 1.0 2.0 2]) (dedupe [1 1.0 2]) (frequencies [1 1.0 1]) (group-by identity [1 1.0]) (set [40.0 40 41])]
;=> [[1 2.0] [1 2] {1 3} {1 [1 1.0]} #{40.0 41}]

[(partition-by identity [1 1.0 2]) (compare 1 1.0) (distinct? 1 1.0) (sort [2 1.0 1 1.0]) (zipmap [1 1.0] [:a :b])]
;=> [[[1 1.0] [2]] 0 false [1.0 1 1.0 2] {1 :b}]

[(assoc {1 :a} 1.0 :b) (dissoc {1 :a} 1.0) (union #{1} #{1.0}) (disj #{1 2} 2.0) (difference #{1 2} #{1.0}) (merge {1 :a} {1.0 :b})]
;=> [{1 :b} {} #{1} #{1} #{2} {1 :b}]

;; Beyond 64 bits too, and deep inside keys. NaN equals nothing, but is found again.
[(get {100000000000000000000 :big} 1e20) (get {1e300 :big} (bigint 1e300)) (get {[1 {2 #{3}}] :deep} [1.0 {2.0 #{3.0}}])]
;=> [:big :big :deep]

[(= ##NaN ##NaN) (get {##NaN :a} ##NaN) (get {9007199254740993 :int} 9007199254740992.0) (get {0 :zero} -0.0)]
;=> [false :a nil :zero]

(count (set (mapcat (fn [x] [x (double x)]) (range -1000 1000))))
;=> 2000

;; A whole float is an index, whatever made it.
[(get [1 2 3] (/ 4 2)) ([1 2 3] (/ 4 2)) (nth [1 2 3] 1.0) (get-in [[1 2] [3 4]] [1.0 0.0]) (assoc [1 2] 1.0 :b) (assoc [1 2] 2.0 :c)]
;=> [3 3 2 3 [1 :b] [1 2 :c]]

[(get "abc" 1.0) (update [1 2] 1.0 inc) (update-in [[1]] [0.0 0.0] inc) (assoc-in [[1]] [0.0 0.0] 5) (replace [:zero :one] [0.0 1])]
;=> ["b" [1 3] [[2]] [[5]] [:zero :one]]

[(get [1 2] 0.5) (get [1 2] -1.0) (get [1 2] 1e300) (get [1 2] ##NaN) (get "abc" 0.5) (find [7 8] 1.0)]
;=> [nil nil nil nil nil [1.0 8]]

([1 2] 0.5)
;! not_callable

(assoc [1 2] 0.5 :x)
;! runtime_error

[(round 2.5) (round -2.5) (floor -1.5) (ceil 1.2) (trunc -1.7) (Math/round -2.5)]
;=> [3 -3 -2 2 -1 -2]

[(max 1 5 3) (min 4 2.5) (abs -7) (pow 2 10) (sqrt 16)]
;=> [5 2.5 7 1024.0 4.0]

[(< 1 2 3) (< 1 3 2) (>= 3 3 1) (not= 1 2)]
;=> [true false true true]

[(inc 1.5) (dec 0) (zero? 0.0) (pos? -1) (neg? -1) (odd? 3)]
;=> [2.5 -1 true false true true]

[1e3 1.5e-7 123456789012345680000.0 0.1 (+ 0.1 0.2)]
;=> [1000.0 1.5e-7 1.2345678901234568e20 0.1 0.30000000000000004]

[##Inf (- ##Inf) (NaN? (/ 0.0 0.0)) (= ##NaN ##NaN)]
;=> [##Inf ##-Inf true false]

[(int 3.9) (double 2) (int? 3) (float? 3.0) (number? "3")]
;=> [3 2.0 true true false]

(range 10 0 -3)
;=> [10 7 4 1]

(/ 1 0)
;! arithmetic_error

(quot 5 0)
;! arithmetic_error

(+ 1 nil)
;! type_error

(+ 1 "2")
;! type_error

(< 1 "2")
;! type_error

(bit-shift-left 1 100000000000)
;! arithmetic_error

(let [{x 1.0 y 0} [5 6]] [x y])
;=> [6 5]

;; A quotient beyond the range of floats is an error for all three
(quot 5 1e-320)
;! arithmetic_error

(mod 5 1e-320)
;! arithmetic_error

(rem 7 5e-324)
;! arithmetic_error

(rem 1e308 1e-308)
;! arithmetic_error

(try (mod -1e308 1e-308) (catch ArithmeticException e (ex-message e)))
;=> "mod: the quotient is beyond the range of floats"

[(mod 5.5 2) (rem -5.5 2) (mod -5.5 2) (rem 1e308 3.0)]
;=> [1.5 -1.5 0.5 0.0]

;; The sum of the two in the middle, or the difference, may be beyond the range of floats
[(median [1e308 1.7e308]) (median [-1.7e308 -1e308]) (median [1 2]) (median [##Inf 1.0]) (median [1e308 1])]
;=> [1.35e308 -1.35e308 1.5 ##Inf 5.0e307]

[(percentile 50 [-1.6e308 1.6e308]) (percentile 50 [1 4])]
;=> [0.0 2.5]
