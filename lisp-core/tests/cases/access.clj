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

;; What changes a map finds what reading finds; the entry keeps the key it had.
[(assoc {"a" 1} :a 2) (assoc {:a 1} "a" 2) (assoc {:a 1 "a" 2} :a 3) (assoc {:a 1 "a" 2} "a" 3)]
;=> [{"a" 2} {:a 2} {:a 3 "a" 2} {:a 1 "a" 3}]

[(assoc-in {"a" {"b" 1}} [:a :b] 2) (assoc-in {:a {:b 1}} ["a" "b"] 2) (assoc-in {:a {:b 1} "a" {:b 2}} [:a :b] 3)]
;=> [{"a" {"b" 2}} {:a {:b 2}} {:a {:b 3} "a" {:b 2}}]

[(update {"a" 1} :a inc) (update {:a 1} "a" inc) (update {:a 1 "a" 5} "a" inc) (update {"b" 1} :a (fnil inc 0))]
;=> [{"a" 2} {:a 2} {:a 1 "a" 6} {:a 1 "b" 1}]

[(update-in {"a" {"b" 1}} [:a :b] inc) (update-in {:a {:b 1}} ["a" "b"] inc) (update-in {:a {"b" 1 :b 5}} ["a" :b] inc)]
;=> [{"a" {"b" 2}} {:a {:b 2}} {:a {:b 6 "b" 1}}]

[(dissoc {"a" 1 :b 2} :a :b) (dissoc {:a 1 :b 2} "a") (dissoc {:a 1 "a" 2} :a) (dissoc {:a 1 "a" 2} :a "a")]
;=> [{} {:b 2} {"a" 2} {}]

[(merge {"a" 1} {:a 2}) (merge {:a 1} {"a" 2}) (merge {:a 1 "a" 1} {:a 2}) (merge {} {:a 1 "a" 2}) (merge nil {"a" 1} {:a 2} {:a 3})]
;=> [{"a" 2} {:a 2} {:a 2 "a" 1} {:a 1 "a" 2} {"a" 3}]

[(merge-with + {"a" 1} {:a 2} {:a 3}) (merge-with + {:a 1} {"a" 2}) (merge-with + {:a 1 "a" 10} {"a" 2})]
;=> [{"a" 6} {:a 3} {:a 1 "a" 12}]

[(conj {"a" 1} [:a 2]) (conj {:a 1} ["a" 2]) (conj {:a 1 "a" 1} ["a" 2])]
;=> [{"a" 2} {:a 2} {:a 1 "a" 2}]

[(into {"a" 1} {:a 2}) (into {:a 1} [["a" 2]]) (into {:a 1 "a" 1} {"a" 2}) (into {} [[:a 1] ["a" 2]])]
;=> [{"a" 2} {:a 2} {:a 1 "a" 2} {:a 1 "a" 2}]

;; What is picked is under the key that was asked for.
[(select-keys {"a" 1} [:a]) (select-keys {:a 1} ["a"]) (find {"a" 1} :a) (find {:a 1} "a") (contains? {:a 1} "a")]
;=> [{:a 1} {"a" 1} [:a 1] ["a" 1] true]

;; A keyword with hyphens means the key with underscores. Strings are counted by, and two of them are two.
[(assoc {"user_id" 1} :user-id 2) (update {:user_id 1} :user-id inc) (dissoc {"user_id" 1} :user-id) (assoc {"user_id" 1} :user_id 2)]
;=> [{"user_id" 2} {:user_id 2} {} {"user_id" 2}]

(reduce (fn [m w] (update m w (fnil inc 0))) {} ["a_b" "a-b" "a_b"])
;=> {"a-b" 1 "a_b" 2}

;; What is constructed has its keys as they are written.
[{:a 1 "a" 2} (hash-map :a 1 "a" 2) (zipmap [:a "a"] [1 2]) (frequencies [:a "a"]) (group-by identity [:a "a"]) (set [:a "a"]) (conj #{"a"} :a)]
;=> [{:a 1 "a" 2} {:a 1 "a" 2} {:a 1 "a" 2} {:a 1 "a" 1} {:a [:a] "a" ["a"]} #{:a "a"} #{:a "a"}]

;; In large maps too.
(let [m (into {} (map (fn [i] [(str "k" i) i]) (range 100)))]
  [(count (assoc m :k5 0)) (get (assoc m :k5 :new) "k5") (count (dissoc m :k5 :k6 :other)) (count (merge m {:k7 1 :other 2})) (get (update m :k99 inc) "k99")])
;=> [100 :new 98 101 100]

;; A vector is a key where the map has it, and a path otherwise.
[(get {[1 2] :x} [1 2]) (get {:a {:b 1}} [:a :b]) (get {[:a :b] 1 :a {:b 2}} [:a :b]) ({[1] :y} [1]) (find {[:a] 1} [:a]) (contains? {[1 2] nil} [1 2])]
;=> [:x 1 1 :y [[:a] 1] true]

[(get-in {[0 1] {:v 5}} [[0 1] :v]) (get-in {:a {:b {:c 3}}} [[:a :b] :c]) (assoc-in {[0 1] {:v 5}} [[0 1] :w] 6) (update-in {} [[0 1] :n] (fnil inc 0))]
;=> [5 3 {[0 1] {:v 5 :w 6}} {[0 1] {:n 1}}]

(reduce (fn [m p] (assoc m p (inc (get m p 0)))) {} [[1 2] [3 4] [1 2]])
;=> {[1 2] 2 [3 4] 1}

(let [grid (into {} (for [x (range 6) y (range 6)] [[x y] (* x y)]))] [(get grid [5 4]) (grid [2 3]) (get grid [9 9]) (contains? grid [0 0])])
;=> [20 6 nil true]

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

;; A path goes through a set to its member.
[(get-in {:a #{:x}} [:a :x]) (get-in {:a #{:x}} [:a :y] :none) (get-in #{1} [1]) (get-in [#{[1]}] [0 [1] 0])]
;=> [:x :none 1 1]
