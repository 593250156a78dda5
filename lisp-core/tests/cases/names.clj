;; Looking things up: a miss is an answer, and a bare name stands for itself.

(doc no-such-function)
;> No documentation found for "no-such-function".
;=> nil

(doc clojure.string/trim)
;> (trim s)
;>   Returns the string without white space at its ends.
;>   (trim " \n a b ") => "a b"
;=> nil

;; Each way to call it has a line.
(doc 'reduce)
;> (reduce f coll)
;> (reduce f init coll)
;>   Combines the elements from the left. Without elements and init, returns (f), or nil if f requires arguments.
;>   (reduce + [1 2 3]) => 6
;=> nil

(doc if-not)
;> (if-not test then else?)
;>   Like if, with the test negated.
;>   (if-not (empty? [1]) :some :none) => :some
;=> nil

(source alpha/search)
;> No source available for "alpha/search".
;=> nil

[(dir) (dir "alpha") (export-meta alpha/search) (source alpha/search)]
;=> [[] [] nil nil]

(apropos "FREQ")
;=> ["frequencies"]

(map apropos ["cond->>" "when-f"])
;=> [["cond->>"] ["when-first"]]

;; A local name has its value, and a program may have a `doc` or `source` of its own.
(let [wanted 5] (doc wanted))
;! type_error

(defn source [row] (get row :src))
(def line {:src "log"})
(source line)
;=> "log"

(map doc ["map" "filter"])
;=> [nil nil]

(doc)
;! arity_error

(apropos nothing)
;! unbound_var

;; Names are looked up before anything runs.
(if false (undefined-name 1) 2)
;! unbound_var

(or never-defined :default)
;=> :default

alpha/search
;! invalid_form

(.nosuch "x")
;! unsupported_method

(Math/nosuch 1)
;! unsupported_java_member

[(type 1) (type "s") (type :k) (type [1]) (type {}) (type #{}) (type nil) (type inc)]
;=> [:number :string :keyword :vector :map :set nil :function]

(pr-str 'name)
;=> "'name"

(def answer 42)
;=> #'answer

[Double/POSITIVE_INFINITY (Integer/parseInt "12") (.length "abc")]
;=> [##Inf 12 3]

(Integer/parseInt "x")
;! java_domain_error

(str (.plusDays (LocalDate/parse "2023-12-31") 1))
;=> "2024-01-01"

[(count #{0.0 (- 0.0)}) (get {0.0 :zero} -0.0) (count (distinct [0.0 -0.0 0 [-0.0] [0.0]])) (= {[-0.0] 1} {[0.0] 1})]
;=> [1 :zero 2 true]

#{0.0 -0.0}
;! duplicate_key

{0.0 1 -0.0 2}
;! duplicate_key

(count (set [##NaN (/ 0.0 0.0) (- ##NaN)]))
;=> 1

[(take 1e300 [1]) (take 1.0 [1 2]) (nth [1 2] (/ 4 4))]
;=> [[1] [1] 2]

(nth [1] 1.5)
;! type_error

;; A list of namespaces with what they begin with.

(ns my.app (:require (clojure [string :as s] [set :as sets :refer [union]] walk)) (:use (clojure [string :only [trim]])))
[(s/upper-case "a") (sets/union #{1} #{2}) (union #{1}) (trim " b ")]
;=> ["A" #{1 2} #{1} "b"]

(require '(clojure [string :as s] [set :as t]))
[(s/trim " a ") (t/difference #{1 2} #{2})]
;=> ["a" #{1}]

(require '(clojure [nope :as n]))
;! invalid_form
