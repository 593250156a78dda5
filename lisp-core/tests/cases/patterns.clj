;; Pattern literals are raw: a backslash is one backslash of the pattern. The answers are Clojure's.

(re-find #"\\(.)" "a\\b")
;=> ["\\b" "b"]

(re-seq #"[\\/]" "a\\b/c")
;=> ["\\" "/"]

[(re-find #"\\d" "a1\\d") (re-find #"\\d" "a1")]
;=> ["\\d" nil]

[(str #"a\"b\\c") (pr-str #"a\"b\\c\n") #"\"\\\\"]
;=> ["a\\\"b\\\\c" "#\"a\\\"b\\\\c\\n\"" #"\"\\\\"]

[(re-find #"a\"b" "xa\"b") (re-find #"\n" "a\nb") (re-find #"\u0041\x42\t" "AB\t")]
;=> ["a\"b" "\n" "AB\t"]

(replace "a\\nb" #"\\n" "\n")
;=> "a\nb"

(replace "\\u0041" #"\\u([0-9a-f]{4})" (fn [[_ h]] h))
;=> "0041"

(split "a\\b\\c" #"\\")
;=> ["a" "b" "c"]

(re-matches #"C:\\(\w+)\\(\w+)" "C:\\dir\\file")
;=> ["C:\\dir\\file" "dir" "file"]

(re-seq #"\"((?:[^\"\\]|\\.)*)\"" "say \"a\\\"b\" now")
;=> [["\"a\\\"b\"" "a\\\"b"]]

[(= (str #"\\d") (str (re-pattern "\\\\d"))) (map count [(str #"\\") (str #"\"") (str #"\t")])]
;=> [true [2 2 2]]

[(pr-str (re-pattern "\"\\Q\"\\E\"")) (pr-str (re-pattern "a\"b"))]
;=> ["#\"\\\"\\Q\\E\\\"\\Q\\E\\\"\"" "#\"a\\\"b\""]

;; A doubled backslash that makes no pattern is an error that says so.

(re-find #"f\\(" "f(x)")
;! invalid_form
