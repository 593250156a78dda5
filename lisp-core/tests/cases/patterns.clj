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

;; All else is as in Java 17, too.

[(re-find #"(?U)a+" "aaa") (re-find #"(?U)\w+" "naïve") (re-find #"(?U)\d" "٥") (re-find #"(?U)\p{Lower}+" "Éé")]
;=> ["aaa" "naïve" "٥" "é"]

[(re-find #"[a-c[x-z]]+" "1axbz") (re-find #"[a-z&&[^b]]+" "bacb") (re-find #"[a-z&&[d-f]&&[^e]]+" "cdef") (re-find #"[^a[b]]+" "abcb")]
;=> ["axbz" "ac" "d" "c"]

[(re-find #"[]a]+" "x]a]") (re-find #"[^]]+" "]ab]") (re-find #"[a&&b]|c" "abc") (re-find #"[-a]+[b-]" "a-b")]
;=> ["]a]" "ab" "c" "a-b"]

[(count (re-seq #"\v" "a\u000bb\nc")) (re-find #"[\v]+" "a\r\n") (re-find #"\h+" "a\u00a0\t b") (re-find #"[\h,]+" "a, b") (re-find #"\H\V" "a\n b")]
;=> [2 "\r\n" " \t " ", " "\n "]

[(vec (re-seq #"\R" "a\r\nb\nc\u2028")) (re-find #"\R\n" "a\r\n") (re-find #"\R{2}" "a\r\n") (vec (re-seq #"\X" "e\u0301\r\n"))]
;=> [["\r\n" "\n" " "] "\r\n" nil ["é" "\r\n"]]

[(vec (re-seq #"(?m)^" "a\nb\n")) (vec (re-seq #"(?m)^.*$" "a\n\nb\n")) (re-find #"(?m)^" "") (vec (re-seq #"(?m)$" "a\nb\n"))]
;=> [["" ""] ["a" "" "b"] nil ["" "" ""]]

[(re-find #"a$" "a\n") (re-find #"a$" "a\r\n") (re-find #"a$" "a\n\n") (re-find #"a\Z" "a\n") (re-find #"a\z" "a\n") (re-find #"(?d)a$" "a\r")]
;=> ["a" "a" nil "a" nil nil]

[(vec (re-seq #"\Ga" "aaba")) (vec (re-seq #"\G\d?" "12a")) (re-find #"\Ab" "ab")]
;=> [["a" "a"] ["1" "2" ""] nil]

[(re-find #"(?x)a b # c\n d" "abd") (re-find #"(?x) [a b] \  \#" "b #") (re-find #"(?x:a +)b" "aab")]
;=> ["ab" "b #" "aab"]

[(re-find #"(?i)é" "É") (re-find #"(?iu)é" "É") (re-find #"(?i)k[A-Z]" "Kb") (re-find #"(?iu)k" "\u212a") (re-find #"(?i:a)b" "AB") (re-find #"(?i)[^a]" "Ab")]
;=> [nil "É" "Kb" "K" nil "b"]

[(vec (re-seq #".+" "a\rb\u0085c\u2028d")) (vec (re-seq #"(?d).+" "a\rb\nc")) (re-find #"(?s)a.b" "a\nb")]
;=> [["a" "b" "c" "d"] ["a\rb" "c"] "a\nb"]

[(re-find #"a*?b" "aab") (re-find #"(a+?)(a*)" "aaa") (re-find #"(?:a|ab)+?c" "aabc") (re-find #"\R{2}" "\r\n") (re-find #"\R\R" "\n\r\n")]
;=> ["aab" ["aaa" "a" "aa"] "aabc" nil "\n\r\n"]

(re-find #"(?<=\$)\d+" "$42")
;=> !invalid_form

(re-find #"a(?!b)" "ac")
;=> !invalid_form

(re-find #"(a)\1" "aa")
;=> !invalid_form

(re-find #"(?<n>a)\k<n>" "aa")
;=> !invalid_form

(re-find #"(?>a|ab)c" "abc")
;=> !invalid_form

(re-find #"a++b" "aab")
;=> !invalid_form

[(re-find #"\Qa.b*\E+" "a.b**") (re-find #"\Q[\E" "[") (re-find #"a\Q" "a") (re-find #"\Q\\E" "\\") (re-find #"[\Q]^\E]+" "^]")]
;=> ["a.b**" "[" "a" "\\" "^]"]

[(some? (re-find #"\0101\x41\x{1F600}\u0041\cA" "AA😀A\u0001")) (re-find #"\uD83D\uDE00" "😀") (some? (re-find #"\t\n\r\f\a\e" "\t\n\r\u000c\u0007\u001b"))]
;=> [true "😀" true]

[(re-find #"\p{Alpha}+" "éab") (re-find #"\p{L}+" "1éab") (re-find #"\p{IsGreek}+" "aβγ") (re-find #"\p{javaLowerCase}+" "Aéß") (re-find #"\P{Lu}+" "ABc") (re-find #"\pL" "1a") (re-find #"\p{Punct}+" "a+$") (re-find #"(?i)\p{Lu}" "a") (re-find #"\p{IsAlphabetic}" "1é")]
;=> ["ab" "éab" "βγ" "éß" "c" "a" "+$" "a" "é"]

[(vec (re-seq #"\b\w+" "naïve é1 x")) (re-find #"\bfoo" "éfoo") (re-find #"\Bé" "aé") (vec (re-seq #"\b" "e\u0301"))]
;=> [["na" "x"] nil "é" ["" ""]]

[(re-find #"a|" "b") (re-find #"(|a)+" "aa") (vec (re-seq #"a*" "baa")) (re-matches #"(a?)*" "aa") (re-find #"(a*)*" "b") (re-find #"()*" "b") (re-find #"(a|b*)*" "ab")]
;=> ["" ["" ""] ["" "aa" ""] ["aa" ""] ["" ""] ["" nil] ["ab" ""]]

[(re-find #"." "𝒜") (re-find #"[^a]" "a😀") (vec (re-seq #"[😀-😂]" "a😁")) (re-matches #".." "😀a")]
;=> ["𝒜" "😀" ["😁"] "😀a"]

[(re-find #"a{0}b" "ab") (re-find #"(a){0}b" "ab") (re-find #"a{2,}" "aaa") (re-find #"a{1,2}?" "aa")]
;=> ["b" ["b" nil] "aaa" "a"]

[(split "a1b22c" #"\d+") (replace "2024-01" #"(?<y>\d+)-(?<m>\d+)" "${m}/$1") (replace "aa" #"a*" "x")]
;=> [["a" "b" "c"] "01/2024" "xx"]

[(re-find #"(?i-i)A" "a") (re-find #"a(?i)b|C" "c") (re-find #"((?i)a)A" "aA") (re-find #"(?im-s:A.)" "ab")]
;=> [nil "c" ["aA" "a"] "ab"]

[(re-find #"[a-]+" "a-") (re-find #"[+--]+" "+,-") (re-find #"[\w.-]+@[\w-]+" "a.b-c@d-e") (re-find #"[\[\]]" "]") (re-find #"[&&a]" "a") (re-find #"[a&b]+" "a&b")]
;=> ["a-" "+,-" "a.b-c@d-e" "]" "a" "a&b"]

[(re-find #"[\\w]" "w") (re-find #"\<a\>" "<a>") (re-find #"\-\_\ \é" "-_ é")]
;=> ["w" "<a>" "-_ é"]
