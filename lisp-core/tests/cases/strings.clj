(str "n=" 1 " " :k " " nil [1 "a"])
;=> "n=1 :k [1 \"a\"]"

(join ", " (map #(str "<" % ">") [1 2]))
;=> "<1>, <2>"

(split "a,b,,c," ",")
;=> ["a" "b" "" "c" ""]

(split "one  two" #"\s+")
;=> ["one" "two"]

(split-lines "a\nb\r\nc")
;=> ["a" "b" "c"]

[(trim "  x ") (triml "  x ") (trimr "  x ") (upper-case "ab") (lower-case "ÄB")]
;=> ["x" "x " "  x" "AB" "äb"]

[(subs "hello" 1) (subs "hello" 1 3) (subs "hi" 5) (subs "hi" 0 99)]
;=> ["ello" "el" "" "hi"]

(replace "2024-01-02" "-" "/")
;=> "2024/01/02"

(replace "a1b22" #"\d+" "#")
;=> "a#b#"

[(includes? "haystack" "st") (starts-with? "abc" "ab") (ends-with? "abc" "x")]
;=> [true true false]

[(index-of "banana" "an") (last-index-of "banana" "an") (index-of "banana" "z")]
;=> [1 3 nil]

[(count "héllo") (count "👍🏽!") (reverse "abc")]
;=> [5 2 ["c" "b" "a"]]

(map blank? [nil "" " \n" "x"])
;=> [true true true false]

(format "%s has %d items, %.2f in all" "cart" 3 9.5)
;=> "cart has 3 items, 9.50 in all"

(format "%05d|%-5s|%x" 42 "ab" 255)
;=> "00042|ab   |ff"

(re-find #"(\w+)@(\w+)" "to: ada@math now")
;=> ["ada@math" "ada" "math"]

(re-seq #"[A-Z]\w*" "The Big fox Ran")
;=> ["The" "Big" "Ran"]

(re-matches #"(?x)a # a comment up to the end" "a")
;=> "a"

(re-matches #"(?x)a # a comment up to the end" "ab")
;=> nil

(re-matches #"\Qa.b" "a.b")
;=> "a.b"

(re-matches #"\d{4}" "20245")
;=> nil

[(parse-long "42") (parse-long "4x") (parse-double "1.5") (parse-boolean "true")]
;=> [42 nil 1.5 true]

[(name :key) (keyword "k") (name "s")]
;=> ["key" :k "s"]

(pr-str "say \"hi\"\n" :k nil)
;=> "\"say \\\"hi\\\"\\n\" :k nil"

(map str "abc")
;=> ["a" "b" "c"]

[\a \space \newline (= \a "a")]
;=> ["a" " " "\n" true]

(extract-int #"(\d+) kg" "weighs 72 kg")
;=> 72

(clojure.string/join "-" (str/split "a b" " "))
;=> "a-b"

(upper-case nil)
;! type_error

"never closed
;! parse_error

(re-find #"(" "x")
;! invalid_form

(re-find (re-pattern "\\d{2,1}d") "11d")
;! runtime_error

[(get "abc" 1) (get "abc" 9 :none) (get "abc" -1) (get-in ["ab" "cd"] [1 0]) (get-in "abc" [2]) (get "e\u0301x" 1) (.indexOf [:a :b] :b) (.indexOf [1] 2)]
;=> ["b" :none nil "c" "c" "x" 1 -1]

;; A line's end of two characters is two, for every function; other characters are what a reader takes for one.

(let [s "a\r\nb"] [(map str s) (count s) (subs s 2) (get s 2) (nth s 1) (index-of s "\n") (last-index-of s "b") (char? "\r\n")])
;=> [["a" "\r" "\n" "b"] 4 "\nb" "\n" "\r" 2 3 false]

(let [s "a\r\nb"] [(.length s) (.charAt s 2) (.indexOf s "b") (.substring s 1 3) (count (re-seq #"(?s)." s)) (split s "\n") (split s "")])
;=> [4 "\n" 3 "\r\n" 4 ["a\r" "b"] ["a" "\r" "\n" "b"]]

[(replace "a\r\nb" "" "|") (reverse "\r\n") (subs "é\r\n\r\n" 2 4) (format "%6s|%.2s|" "\r\n" "\r\nb")]
;=> ["|a|\r|\n|b|" ["\n" "\r"] "\n\r" "    \r\n|\r\n|"]

(let [s "🇩🇪🇩e\u0301\u0301"] [(index-of s "🇪") (index-of s "\u0301") (last-index-of s "🇩") (includes? s "🇪") (index-of s "e")])
;=> [nil nil 1 true 2]

; A sigma at the end of a word has its own form.
[(lower-case "ΟΔΥΣΣΕΥΣ ΣΑΣ, ΑΣ. Σ ΑΣ'") (.toLowerCase "ΟΔΟΣ") (capitalize "οδοΣ") (capitalize "ΣΣ") (upper-case "οδυσσεύς")]
;=> ["οδυσσευς σας, ας. σ ας'" "οδος" "Οδος" "Σσ" "ΟΔΥΣΣΕΎΣ"]

[(subs "hello" 1.0 3.0) (subs "hello" 1 99999999999999999999) (index-of "banana" "a" 2.0) (split "a,b,c" #"," 2.0) (.substring "hello" 2.0)]
;=> ["el" "ello" 3 ["a" "b,c"] "llo"]

(subs "hello" 1.5)
;! type_error

(Duration/ofSeconds 0.5)
;! java_type_error

(Instant/ofEpochMilli 1.5)
;! java_type_error

[(str (Duration/ofSeconds 2.0)) (.charAt "abc" (/ 4 2))]
;=> ["PT2S" "c"]

;; A percent sign has a width, too.

[(format "%5%|") (format "%-5%|") (format "%d%5% %s" 50 "a") (format "%%") (format "100%1%")]
;=> ["    %|" "%    |" "50    % a" "%" "100%"]

(format "%05%")
;! runtime_error

(format "%.2%")
;! runtime_error

(format "%-%")
;! runtime_error

;; Only the core has a replace of two arguments.

[(str/replace "a-b" "-" "+") (clojure.string/replace "a1" #"\d" inc) (replace {1 :one} [1 2])]
;! type_error

(str/replace "a-b" "a")
;! arity_error

[(str/replace "a-b" "-" "+") (clojure.string/replace "a1" #"\d" #(str "<" % ">")) (replace {1 :one} [1 2]) (map #(str/replace % "a" "b") ["a"])]
;=> ["a+b" "a<1>" [:one 2] ["b"]]

(try (read-string "#\"a\"") (catch Exception e (ex-message e)))
;=> "read-string expected data, got a regular expression"
