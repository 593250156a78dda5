;; A keyword finds the string of its name and a string the keyword, when a map is read.

(let [m {"name" "Ada" :year 1815}] [(:name m) (get m :name) (get m "year") (m :name)])
;=> ["Ada" "Ada" 1815 "Ada"]

(get-in {"a" {"b" [10 20]}} [:a :b 1])
;=> 20

(get-in {:a {:b 1}} [:a :c] :none)
;=> :none

(map :name [{:name "x"} {"name" "y"} {}])
;=> ["x" "y" nil]

(sort-by :n [{"n" 3} {"n" 1} {"n" 2}])
;=> [{"n" 1} {"n" 2} {"n" 3}]

(group-by :kind [{"kind" "a" "v" 1} {"kind" "b" "v" 2} {"kind" "a" "v" 3}])
;=> {"a" [{"kind" "a" "v" 1} {"kind" "a" "v" 3}] "b" [{"kind" "b" "v" 2}]}

(contains? {"k" nil} :k)
;=> true

;; The keyword itself comes first where there are both.
(:k {:k 1 "k" 2})
;=> 1

(:my-key {"my_key" 5})
;=> 5

;; What changes a map takes the key as it is.
(assoc {"a" 1} :a 2)
;=> {:a 2 "a" 1}

(dissoc {"a" 1 :b 2} :a :b)
;=> {"a" 1}

(= {"a" 1} {:a 1})
;=> false

(select-keys {:a 1 :b 2 :c 3} [:a :c :z])
;=> {:a 1 :c 3}

;; Vectors by place; outside there is nil, or the default.
[(nth [1 2 3] 1) (nth [1] 9) (nth [1] 9 :out) (get [1 2] 0) (get [1] 5) (first []) (last [1 2])]
;=> [2 nil :out 1 nil nil 2]

(contains? [10 20] 20)
;=> true

(assoc-in {} [:a :b] 1)
;=> {:a {:b 1}}

(update-in {:cart {:items 2}} [:cart :items] + 3)
;=> {:cart {:items 5}}

(update {:tags ["x"]} :tags conj "y")
;=> {:tags ["x" "y"]}

(get nil :a :fallback)
;=> :fallback

(:a nil)
;=> nil

(get {:a nil} :a :fallback)
;=> nil

(assoc [1 2] 5 :x)
;! runtime_error

(:a)
;! invalid_keyword_call

(get 5 :a)
;! type_error
