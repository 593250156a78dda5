;; What Clojure programs write about texts; the answers are Clojure's.

(replace "2024-01-31" #"(\d+)-(\d+)" "$2/$1")
;=> "01/2024-31"

(replace "a1b2" #"[a-z](\d)" (fn [[m d]] (str d m)))
;=> "1a12b2"

(replace "a1b2" #"\d" {"1" "one" "2" "two"})
;=> "aonebtwo"

(replace "price" #"i" "\\$1")
;=> "pr$1ce"

(replace "abab" "a" "$1")
;=> "$1b$1b"

(replace "a" #"a" 5)
;! type_error

(replace "a1" #"\d" (fn [m] 5))
;! runtime_error

(replace "a1" #"\d" (fn [m] (inc m)))
;! type_error

(replace 5 #"\d" str)
;! type_error

(map #(replace % #"(.)(.)" "$2$1") ["ab" "cd"])
;=> ["ba" "dc"]

(map replace ["ab" "cab"] ["a" #"(a)"] ["x" "<$1>"])
;=> ["xb" "c<a>b"]

(map replace ["ab" "cab"] [#"b" #"(a)"] [upper-case (fn [[_ a]] (upper-case a))])
;=> ["aB" "cAb"]

(apply replace ["a1b2" #"\d" #(str "<" % ">")])
;=> "a<1>b<2>"

(replace-first "a1b2" #"(\d)" "[$1]")
;=> "a[1]b2"

[(replace-first "abc" "" "-") (replace-first "abc" "x" "-") (replace-first "abc" #"x" str)]
;=> ["-abc" "abc" "abc"]

(replace "a\n" #"$" "!")
;=> "a!\n!"

(clojure.string/escape "a<b>&c" {\< "&lt;" \> "&gt;"})
;=> "a&lt;b&gt;&c"

(str/escape "abc" #(when (= % "b") "(b)"))
;=> "a(b)c"

[(split "a,b,c,," #"," 2) (split "a,b,c,," #"," -1) (split "a,b,c,," #"," 0) (split "abc" #"" 2)]
;=> [["a" "b,c,,"] ["a" "b" "c" "" ""] ["a" "b" "c"] ["a" "bc"]]

[(str/reverse "hello") (string/reverse "") (reverse "ab") (core/reverse "ab")]
;=> ["olleh" "" ["b" "a"] ["b" "a"]]

[(join "," {:a 1}) (join "-" "abc") (join "-" nil)]
;=> ["[:a 1]" "a-b-c" ""]

(re-seq #"(\d)(x)?" "1 2x")
;=> [["1" "1" nil] ["2x" "2" "x"]]

[(re-matches #"(a|c*)+" "acca") (re-matches #"((a)|b?)*" "ab") (re-find #"(|a)+" "aaa")]
;=> [["acca" ""] ["ab" "" "a"] ["" ""]]

(count (re-seq #"\w+$" "one two\n"))
;=> 1

[(format "%(,.2f" -1234.5) (format "%-,15d|" 123456789) (format "%+.1f" 2.25)]
;=> ["(1,234.50)" "123,456,789    |" "+2.3"]

(format "%tY" 1)
;! runtime_error

(apply str (map #(char (+ 1 (int %))) "HAL"))
;=> "IBM"

(map #(Character/getNumericValue %) "0aZ-")
;=> [0 10 35 -1]

(map #(Character/digit % 16) "0aFg")
;=> [0 10 15 -1]

[(.compareTo "abc" "ab") (.compareTo 1 2) (.equals 1 1.0) (.charAt "abc" 1) (.repeat "ab" 0)]
;=> [1 -1 false "b" ""]

(.charAt "👍" 0)
;! invalid_java_string

(let [d (LocalDate/of 2024 1 31)] (map str [(.plusMonths d 13) (.minusMonths d 14) (.withYear d 2023) (.minusYears d 3)]))
;=> ["2025-02-28" "2022-11-30" "2023-01-31" "2021-01-31"]

(let [d (Duration/ofSeconds 3661)] [(.getSeconds d) (.toMinutes d) (.toHours d) (.toDays d) (str (.minus d (Duration/ofHours 2)))])
;=> [3661 61 1 0 "PT-58M-59S"]

(.plusMonths (LocalDate/of 999999999 12 31) 1)
;! java_domain_error

(.plus (Instant/parse "2024-01-01T00:00:00Z") (Duration/ofDays 9223372036854775807))
;! java_domain_error

[(rem 1 0.1) (rem -5.5 2) (/ 0 -3) (bigint 1e20) (long -3.9)]
;=> [0.0 -1.5 0.0 100000000000000000000 -3]

[(clojure.set/rename-keys {:a 1 :b 2} {:a :b :b :a}) (subset? nil #{1}) (map-invert {:a 1 :b 2})]
;=> [{:a 2 :b 1} true {1 :a 2 :b}]

(clojure.set/join #{{:id 1 :n "a"} {:id 2 :n "b"} {:id 3 :n "c"}} #{{:ref 1 :x 2} {:ref 2 :x 3}} {:id :ref})
;=> #{{:id 1 :n "a" :ref 1 :x 2} {:id 2 :n "b" :ref 2 :x 3}}

(clojure.set/join #{{:a 1} {:a 2}} #{{:b 1} {:b 2}})
;=> #{{:a 1 :b 1} {:a 1 :b 2} {:a 2 :b 1} {:a 2 :b 2}}

(postwalk-replace {[:x] :y :a :x} [:a [:a]])
;=> [:x :y]

(keywordize-keys {"a b" [{"c" 1}]})
;=> {:a b [{:c 1}]}

(do (prn "a" :k) (printf "%d items%n" 3) (newline) (printf "%s" "x"))
;> "a" :k
;> 3 items
;>
;> x
;=> nil

;; The first form of a text is read, whatever follows it.

[(read-string "1 )") (read-string "(+ 1 2) ]") (read-string "#_1 [2] {:a") (read-string "a b")]
;=> [1 ['+ 1 2] [2] 'a]

(read-string ") 1")
;! runtime_error

;; A field that shows one value again and again.

[(count (format (.repeat "%1$s" 20000) "")) (format "%2$s %1$s %<s %s" 1 2) (lower-case "ΑΣ ΑΣΑ Σ'Σ ΣΣ İΣ")]
;=> [0 "2 1 1 1" "ας ασα σ'ς σς i̇ς"]
