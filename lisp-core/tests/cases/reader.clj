;; What is read.

[#_1 2 #_ #_ 3 4 5 {#_:a :b #_2 3} #{#_1 2} #_6]
;=> [2 5 {:b 3} #{2}]

#_(this is (not read)) 7 #_"the end"
;=> 7

'(1 "a" :k b (c [d]) {e f} nil true)
;=> [1 "a" :k 'b ['c ['d]] {'e 'f} nil true]

['[a b] '() '#{a} (quote (1 x)) (quote x) '5 '"s"]
;=> [['a 'b] [] #{'a} [1 'x] 'x 5 "s"]

[() (count ()) (conj () 1) (if () :yes :no)]
;=> [[] 0 [1] :yes]

[\u0041 "\u00e9\u0041" \space \newline \a "C:\users" (count "\uD83D\uDE00")]
;=> ["A" "éA" " " "\n" "a" "C:\\users" 1]

[:a/b :a.b :+ :-> :a' (name :a/b) {:x/y 1}]
;=> [:a/b :a.b :+ :-> :a' "a/b" {:x/y 1}]

(as-> 5 $ (+ $ 1) (* $ $))
;=> 36

[10N 0xFF -0x10 1e3 0x8000000000000000]
;=> [10 255 -16 1000.0 9223372036854775808]

1/2
;! unbound_var

1.5M
;! unbound_var

(defn ^:private ^{:doc "d"} f [^long x ^String y] [x y])
(f 1 "a")
;=> [1 "a"]

(defn- f [x] (inc x))
(f 1)
;=> 2

[1 #_]
;! parse_error

'
;! parse_error

(re-find #"\u0041" "xA")
;=> "A"

;; Namespaces are there; the forms that ask for them are read for their names.

(ns my.app "what it does" (:require [clojure.string :as s :refer [join upper-case]] [clojure.set :as sets]) (:import (java.time LocalDate)))
[(s/join "-" [1 2]) (join "," [1 2]) (upper-case "a") (sets/union #{1} #{2})]
;=> ["1-2" "1,2" "A" #{1 2}]

(require '[clojure.string :as text] 'clojure.set)
(text/trim " a ")
;=> "a"

(require '[clojure.data.csv :as csv])
;! invalid_form

(require '[clojure.string :refer [nothing]])
;! invalid_form

(import 'java.io.File)
;! unsupported_java_class

(use 'clojure.data.csv)
;! invalid_form

;; Names are taken apart.

(let [[a b :as all] "xyz" [c & d :as more] [1 2 3] [[e] :as f] [[4]]] [a b all c d more e f])
;=> ["x" "y" "xyz" 1 [2 3] [1 2 3] 4 [[4]]]

(let [{:keys [a b c] :or {b (inc a) c [a b]} :as m} {:a 1}] [a b c m])
;=> [1 2 [1 2] {:a 1}]

(let [{:syms [x] :strs [y] :keys [n/z]} {'x 1 "y" 2 :n/z 3} {n 'k s "k"} {'k :sym "k" :v}] [x y z n s])
;=> [1 2 3 :sym :v]

(let [{:as m} {:a 1} {} {:b 2}] m)
;=> {:a 1}

(defn area [& {:keys [w h] :or {h 2}}] (* w h))
[(area :w 3) (area :w 3 :h 4)]
;=> [6 12]

(let [[a] 5] a)
;! destructure_error

[(if-let [[a b] [1 2]] (+ a b) :none) (if-let [{:keys [a]} nil] a :none) (if-let [a 1] a) (if-let [a nil] a) (if-some [[a] nil] a :none)]
;=> [3 :none 1 nil :none]

[(when-let [[a] [nil]] [:in a]) (when-some [{:keys [a]} {:a 1}] a) (when-first [[a b] [[1 2]]] b) (if-let [[a] nil] a)]
;=> [[:in nil] 1 2 nil]

;; Choices.

(map (fn [x] (case x [1 2] :vector {:a 1} :map sym :symbol (nil true) :nil-or-true #{1} :set "s" :text :other)) [[1 2] {:a 1} 'sym nil true #{1} "s" 9])
;=> [:vector :map :symbol :nil-or-true :nil-or-true :set :text :other]

[(condp some [1 2 3] #{5} :five #{2} :>> #(* 10 %) :none) (condp some [1] #{5} :>> inc :none) (condp some [7] #{5} :>> inc #{7} :seven)]
;=> [20 :none :seven]

;; Rounds.

(dotimes [i 3] (println i))
;> 0
;> 1
;> 2
;=> nil

(def fs [])
(dotimes [i 2000] (when (< i 2) (def fs (conj fs (fn [] i)))))
(map (fn [f] (f)) fs)
;=> [0 1]

(dotimes [i 0] (println i))
;=> nil

(def n 0)
(while (< n 5) (def n (inc n)))
n
;=> 5

(while true 1)
;! invalid_form

(defn more [] true)
(while (more) nil)
;! loop_limit_exceeded

;; What follows a token ends it, or belongs to it.

(* 10 3-1)
;! parse_error

(let [x 2] (* 3x))
;! parse_error

[\o101 (= \o7 \u0007) \space\newline "a""b" 0x1F +5 -5 2r101 36rZz 1. 007 1N 1'a]
;=> ["A" true " " "\n" "a" "b" 31 5 -5 5 1295 1.0 7 1 1 'a]

[:a/b/c :a:b (name :a:b) 'a|b 'a:b {:a# 1}]
;=> [:a/b/c :a:b "a:b" 'a|b 'a:b {:a# 1}]

(map count [[nil1] [true?]])
;! unbound_var

\u12
;! parse_error

\ab
;! parse_error

010
;! parse_error

::k
;! parse_error

##Inf5
;! parse_error

foo/
;! parse_error

{a: 1}
;! parse_error

;; Letters are letters.

(def größe 5)
(defn λ [日本 & {:keys [straße]}] [日本 straße])
[größe (:größe {:größe 1}) (let [{:keys [naïve] :syms [ö]} {:naïve 2 'ö 3}] [naïve ö]) (λ 1 :straße 2) 'größe #'größe (pr-str :größe 'größe) (= größe #'größe)]
;=> [5 1 [2 3] [1 2] 'größe 5 ":größe 'größe" true]

[(= :ö :ö) (name :x²)]
;=> [false "x²"]

(def a​b 1)
;! parse_error

(def a‮b 1)
;! parse_error

;; A quote inside what is quoted is data.

[(= ''a 'a) (= ''a '(quote a)) (first ''a) (count ''a) '(a 'b) '['c] ''() (= ''a (quote (quote a))) '#'x '(1 '2) (type ''a)]
;=> [false true 'quote 2 ['a ['quote 'b]] [['quote 'c]] ['quote []] true ['var 'x] [1 ['quote 2]] :vector]

(map (fn [q] (= q 'a)) ['a ''a '''a])
;=> [true false false]

[(fn? #'inc) (fn? inc) (ifn? #'inc) (#'inc 1) (map #'inc [1])]
;=> [false true true 2 [2]]

(fn? #'nothing-at-all)
;! unbound_var

'(a #(b %))
;! invalid_form

;; A fence around the whole program is no part of it.

```clojure
(+ 1 2)
```
;=> 3

~~~
(+ 1 2)
~~~
;=> 3

Here it is:
```clojure
(+ 1 2)
```
;! parse_error

;; A quoted number is the number.

[(inc '+11) '-5 (type '-1.5) '(+1 -2) '- '+]
;=> [12 -5 :number [1 -2] '- '+]
