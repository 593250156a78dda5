;; Writes what the reader of Clojure 1.11 makes of many short sources, for ../clojure.rs:
;;
;;     clojure readings.clj > readings.txt
;;
;; A reading is one line: the forms that are read, canonically printed, or ✗ where the reader refuses the text. Symbols and
;; keywords are their text, strings and characters stand in quotes as they are, floats are their 64 bits, what is
;; quoted is printed as the data that it is, with lists as vectors, and marks of metadata are left out.
;; Control characters are shown as their pictures.

(require 'clojure.string 'clojure.walk)
(import '(java.io PushbackReader StringReader))

(defn shown [s] (apply str (map #(if (< (int %) 32) (char (+ 0x2400 (int %))) %) s)))

(declare canonical)
(defn all [quoted forms] (apply str (interpose " " (map #(canonical quoted %) forms))))

(defn body-of-short-fn [[_ params body]]
  (let [names (into {} (map-indexed (fn [i p] [p (str "%" (inc i))]) (take-while #(not= '& %) params)))
        rest-name (second (drop-while #(not= '& %) params))]
    (clojure.walk/postwalk #(cond (names %) (symbol (names %)) (and rest-name (= rest-name %)) (symbol "%&") :else %) body)))

(defn canonical [quoted x]
  (cond
    (nil? x) "nil"
    (boolean? x) (str x)
    (or (instance? Long x) (instance? clojure.lang.BigInt x) (instance? java.math.BigInteger x)) (str (biginteger x))
    (ratio? x) (str "ratio:" x)
    (decimal? x) (str "decimal:" x)
    (double? x) (format "f%016x" (Double/doubleToLongBits x))
    (char? x) (str "\"" (shown (str x)) "\"")
    (string? x) (str "\"" (shown x) "\"")
    (keyword? x) (str x)
    (symbol? x) (str (when quoted "'") x)
    (instance? java.util.regex.Pattern x) (str "#\"" (shown (.pattern x)) "\"")
    (and (seq? x) (= 'quote (first x)) (= 2 (count x)) (not quoted)) (canonical true (second x))
    (and (seq? x) (= 'var (first x)) (= 2 (count x)) (not quoted)) (str "#'" (canonical false (second x)))
    (and (seq? x) (= 'fn* (first x)) quoted) "#()"
    (and (seq? x) (= 'fn* (first x))) (str "#" (canonical false (body-of-short-fn x)))
    (seq? x) (if quoted (str "[" (all true x) "]") (str "(" (all false x) ")"))
    (vector? x) (str "[" (all quoted x) "]")
    (map? x) (str "{" (all quoted (apply concat x)) "}")
    (set? x) (str "#{" (apply str (interpose " " (sort (map #(canonical quoted %) x)))) "}")
    :else (str "other:" (class x))))

(defn reading [source]
  (let [reader (PushbackReader. (StringReader. source)) end (Object.)]
    (binding [*read-eval* false]
      (loop [forms []]
        (let [form (try (read {:eof end} reader) (catch Throwable e reader))]
          ;; Names that the reader makes up have numbers, of which each run has others.
          (cond (identical? form end) (.replaceAll (all false forms) "__[0-9]+" "__0")
                (identical? form reader) "✗"
                :else (recur (conj forms form))))))))

(def tokens
  ["0" "1" "10" "-1" "+5" "007" "010" "08" "1N" "2M" "1.5" "1." ".5" "1e3" "1e" "1E+" "-1e-2" "1/2" "-3/4" "4/2" "0x1F" "0X" "0xG"
   "2r101" "36rZz" "37r1" "1r0" "2r2" "1_000" "1,000" "99999999999999999999" "1e999" "5%" "3px" "10-3" "3x"
   "a" "ab" "nil" "true" "false" "nil1" "true?" "x'" "a.b" "a/b" "a/b/c" "/" "foo/" "/x" "+" "-" "*" "-x" "+a" "->" "." ".." ".m" "a." "&"
   "%" "%1" "%&" "%x" "$" "_" "?" "!" "<" ">=" "a:b" "a:" "a::b" "a#" "a#b" "a|b" "a'b" "clojure.string/join" "a//" "//" "a//b"
   ":a" ":a/b" ":a/b/c" ":" "::" "::k" ":a:" ":a:b" ":1" ":1a" ":+" ":/" ":a/" ":/a" ":a/1" ":é" ":a.b" ":'a" ":#a" ":a'"
   "\\a" "\\newline" "\\newlines" "\\space" "\\tab" "\\return" "\\u0041" "\\u12" "\\u" "\\uD800" "\\u00410" "\\o101" "\\o400" "\\o9" "\\o" "\\ab" "\\("
   "\\\"" "\\\\" "\\é" "\\'" "\\#" "\\1" "\\,"
   "\"a\"" "\"\"" "\"a\\nb\"" "\"\\u0041\"" "\"\\\\\"" "\"\\\"\"" "#\"a\"" "#\"\""
   "(" ")" "[" "]" "{" "}" "#{" "#(" "()" "[]" "{}" "#{}" "(a)" "[1]" "{:a 1}" "#(a %)"
   "'" "''" "'a" "'(a)" "'nil" "'1" "#'" "#'a" "#'1" "@" "@a" "^" "^:a" "^a" "`" "~" "~@" "#_" "#_a" "#" "##" "##Inf" "##-Inf" "##NaN" "##Foo" "##Inf5"
   ";" ";a\n" "#!a\n" " " "," "\n" "\t" "\r\n"
   "é" "größe" "λx" "x²" "日本" "ñ" "_é" "😀"])

(defn code [one other reading source]
  (cond (= reading "✗") "!"
        (= reading (clojure.string/trim (str one " " other))) "="
        (= reading source) "j"
        :else "*"))

(def digits ["0" "7" "10" "07" "08" "19"])
(def numbers
  (for [sign ["" "-" "+"] whole digits fraction ["" "." ".0" ".25" "._" ".5.5"] exponent ["" "e" "e2" "E-1" "e+" "e2.5"] end ["" "N" "M" "a" "/2" "/" "'" "#" "-1" ":a"]]
    (str sign whole fraction exponent end)))
(def radixes
  (for [sign ["" "-" "+"] radix ["0" "1" "2" "8" "16" "36" "37" "08"] mark ["r" "R" "x"] body ["" "0" "1" "12" "7f" "Zz" "1.5" "1N" "é"]] (str sign radix mark body)))
(def names
  (for [colon ["" ":"] space ["" "a/" "a.b/" "1/" "a:/" "é/" "a'/"] name ["" "b" "b:" "b:c" "b::c" "1" "1b" "-" "+1" "-1" "'b" "b'" "#b" "b#" "%" "b%" "/" "//" "b/c" "b/" "é" "b|c" "&" "nil" "true"] end ["" "(" "\"\"" "'x" ";" "^a" "@x" "[" " c"]]
    (str colon space name end)))
(def characters
  (for [body ["a" "newline" "u0041" "u00e" "u004g" "u0000" "uDFFF" "o0" "o7" "o77" "o377" "o378" "o477" "o0101" "λ" "(" "[" "\"" ";" "'" "@" "%" "1" "\\" "spac" "formfeed" "backspace"]
        end ["" "a" "1" "(" ")" "\\b" "\"\"" "'" "#" ":" ";" " x" "é"]]
    (str "\\" body end)))
(def sources (distinct (concat numbers radixes names characters)))

(let [readings (mapv reading tokens) specials (atom [])]
  (println "tokens")
  (doseq [[token r] (map vector tokens readings)] (println (str (shown token) "\t" r)))
  (println "pairs")
  (doseq [i (range (count tokens))]
    (println (apply str (for [j (range (count tokens))]
                          (let [source (str (tokens i) (tokens j)) r (reading source) c (code (readings i) (readings j) r source)]
                            (when (= c "*") (swap! specials conj [i j r]))
                            c)))))
  (println "others")
  (doseq [[i j r] @specials] (println (str i "\t" j "\t" r)))
  (println "sources")
  (doseq [source sources] (println (str (shown source) "\t" (let [r (reading source)] (if (= r source) "=" r)))))
  (flush))
