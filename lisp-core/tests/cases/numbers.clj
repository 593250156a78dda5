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

;; Whole and broken numbers are equal by value, but not as keys.
[(= 1 1.0) (== 1 1.0) (count #{1 1.0}) (get {1 :int} 1.0)]
;=> [true true 2 nil]

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
