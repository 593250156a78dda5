;; The class that Clojure and Java throw an error as, for each group of mistakes.

(defn class-of [f] (try (f) (catch Throwable e (:class e))))
(frequencies (map class-of [#(seq 5) #(empty? 5) #(not-empty 5) #(keys 5) #(vals :a) #(reduce-kv + 0 5) #(contains? 5 :a) #(contains? "abc" :a) #(first 5) #(rest 5) #(map inc 5) #(select-keys 5 [:a]) #(zipmap 5 [1]) #(apply + 1) #(set 5) #(sort 5) #(reduce + 5) #(into [] 5) #(concat 5 [1]) #(update-vals 5 inc) #(merge {:a 1} 5) #(find 5 :a) #(get-in {:a 1} 5) #(update-in {} 5 inc) #(assoc-in {} 5 1) #(let [[a & r] 5] r) #(map-invert 5) #(rename-keys 5 {:a :b})]))
;=> {"IllegalArgumentException" 28}

(defn class-of [f] (try (f) (catch Throwable e (:class e))))
(frequencies (map class-of [#(into {} [1 2]) #(conj {} 1) #(conj {} [1]) #(assoc {} :a 1 :b) #(apply hash-map [:a]) #(hash-map :a) #(sorted-map :a) #(symbol 5) #(symbol nil) #(bit-and "a" 1) #(bit-and 1.5 1) #(bit-shift-left "a" 1) #(bigint :a) #(char -1) #(replace "a" 5 "b") #(replace "a" nil "b") #(replace "a" #"a" "$") #([1 2] :a) #(partition 0 [1]) #(format "%d" "a") #(.repeat "a" -1) #(DateTimeFormatter/ofPattern "bbbb") #(.format (LocalDate/of 2024 1 1) "bbbb") #(java.util.Date. "x")]))
;=> {"IllegalArgumentException" 24}

(defn class-of [f] (try (f) (catch Throwable e (:class e))))
(frequencies (map class-of [#(name nil) #(bit-and nil 1) #(bit-and 1 nil) #(bit-not nil) #(bit-shift-left nil 1) #(bit-shift-left 1 nil) #(bigint nil) #(+ nil 1) #(- nil) #(* 1 nil) #(/ nil 1) #(inc nil) #(dec nil) #(< nil 1) #(max nil 1) #(abs nil) #(quot nil 1) #(mod 1 nil) #(int nil) #(long nil) #(double nil) #(char nil) #(re-pattern nil) #(re-find #"a" nil) #(split nil #",") #(upper-case nil) #(trim nil) #(includes? nil "a") #(starts-with? "a" nil) #(subs nil 0) #(format nil) #(take nil [1]) #(nth [1] nil) #(map nil [1]) #(.plusDays nil 1) #(.plus nil 1 ChronoUnit/DAYS) #(.plus (LocalDate/of 2024 1 1) 1 nil) #(.getMessage nil)]))
;=> {"NullPointerException" 38}

(defn class-of [f] (try (f) (catch Throwable e (:class e))))
(frequencies (map class-of [#(conj 5 1) #(assoc 5 :a 1) #(dissoc 5 :a) #(dissoc [1] 0) #(merge 5 {:a 1}) #(keys [1]) #(vals "a") #(peek 5) #(key 5) #(disj 5 1) #(disj [1] 1) #(name 5) #(name [1]) #(+ "a" 1) #(long "xy") #(int "xy") #(double "x") #(re-find 5 "a") #(split "a" 5) #(subs 5 1) #(compare 1 "a") #(sort [1 "a"]) #(take "a" [1]) #(nth [1] "a") #("a" 1) #(5 1) #(reduce 5 [1 2]) #(map 5 [1]) #(sort-by 5 [1 2]) #(format 5) #(into {} ["ab"]) #(reduce-kv + 0 #{1}) #(ex-info 5 {})]))
;=> {"ClassCastException" 33}

(defn class-of [f] (try (f) (catch Throwable e (:class e))))
[(map class-of [#(count 5) #(count :a) #(nth 5 0) #(nth 5 -1) #(nth :a 0) #(union 5 #{1}) #(union #{1} 5) #(let [[a] 5] a) #(let [[a] #{1}] a)])
 (map class-of [#(re-pattern "(") #(re-find (re-pattern "[") "a") #(re-seq (re-pattern "a**") "a") #(.split "a" "(")])
 (map class-of [#(bigint "x") #(Integer/parseInt "x") #(Long/parseLong "9" 1) #(Double/parseDouble "")])
 (map class-of [#(replace "a" #"a" "$5") #(.replaceAll "a" "a" "$5") #([1 2] 5) #(assoc [1] 5 1)])
 (map class-of [#(read-string "(") #(edn/read-string "[1")])
 (map class-of [#(Duration/ofDays 9223372036854775807) #(Duration/ofHours -9223372036854775807) #(quot 1 0) #(/ 1 0)])]
;=> [["UnsupportedOperationException" "UnsupportedOperationException" "UnsupportedOperationException" "UnsupportedOperationException" "UnsupportedOperationException" "UnsupportedOperationException" "UnsupportedOperationException" "UnsupportedOperationException" "UnsupportedOperationException"] ["PatternSyntaxException" "PatternSyntaxException" "PatternSyntaxException" "PatternSyntaxException"] ["NumberFormatException" "NumberFormatException" "NumberFormatException" "NumberFormatException"] ["IndexOutOfBoundsException" "IndexOutOfBoundsException" "IndexOutOfBoundsException" "IndexOutOfBoundsException"] ["RuntimeException" "RuntimeException"] ["ArithmeticException" "ArithmeticException" "ArithmeticException" "ArithmeticException"]]

(defn class-of [f] (try (f) (catch Throwable e (:class e))))
(let [d (LocalDate/of 2024 1 1) i (Instant/ofEpochSecond 0)]
  (frequencies (map class-of [#(.format d (DateTimeFormatter/ofPattern "HH:mm")) #(.between ChronoUnit/HOURS d d) #(.until i i ChronoUnit/MONTHS) #(.truncatedTo i ChronoUnit/MONTHS) #(.plus d 3 ChronoUnit/HOURS) #(.plus i 3 ChronoUnit/WEEKS) #(.minus (Duration/ofDays 1) 1 ChronoUnit/MONTHS) #(.plus d (Duration/ofDays 1)) #(.plus d 99999999999999 ChronoUnit/DAYS) #(LocalDate/of 2024 2 30) #(.withMonth d 13) #(.atTime d 25 0) #(ZoneId/of "Europe/Berlin") #(Instant/ofEpochSecond 9223372036854775807)])))
;=> {"DateTimeException" 14}

;; Each error that is caught has its class.

[(try (/ 1 0) (catch Exception e (:class e))) (try (pmap #(/ 1 %) [0]) (catch Exception e (:class e))) (try (pcalls #(inc nil)) (catch ExecutionException e (:class e))) (try ((fn [a] a)) (catch Exception e (:class e))) (try (assert false) (catch Error e (:class e)))]
;=> ["ArithmeticException" "ExecutionException" "ExecutionException" "ArityException" "AssertionError"]

;; The classes that catch knows can be made.

(map (fn [e] (try (throw e) (catch java.io.FileNotFoundException e :file) (catch java.io.IOException e :io) (catch NumberFormatException e :number) (catch NullPointerException e :null) (catch IndexOutOfBoundsException e :index) (catch InterruptedException e :interrupted) (catch java.util.concurrent.TimeoutException e :time) (catch ExceptionInfo e [:info (ex-data e)]) (catch IllegalArgumentException e [:argument (ex-message e)]) (catch DateTimeException e :date) (catch Throwable e :other)))
     [(java.io.IOException. "a") (java.io.FileNotFoundException. "a") (IOException.) (NumberFormatException. "a") (NullPointerException.) (IndexOutOfBoundsException. "a") (ArrayIndexOutOfBoundsException. "a") (InterruptedException. "a") (java.util.concurrent.TimeoutException. "late") (ExceptionInfo. "a" {:a 1}) (clojure.lang.ArityException. 2 "f") (java.time.format.DateTimeParseException. "a" "b" 0) (StackOverflowError. "a") (new ClassCastException "a")])
;=> [:io :file :io :number :null :index :index :interrupted :time [:info {:a 1}] [:argument "Wrong number of args (2) passed to: f"] :date :other :other]

(let [e (RuntimeException. "outer" (IllegalStateException. "inner")) only (RuntimeException. (java.io.IOException. "disk"))]
  [(.getMessage (.getCause e)) (ex-message (ex-cause e)) (.getCause (Exception. "a")) (.getMessage only) (instance? java.io.IOException (.getCause only)) (.getData (ex-info "a" {:id 7})) (.getData (Exception. "a"))])
;=> ["inner" "inner" nil "IOException: disk" true {:id 7} nil]

(throw (java.io.IOException. "disk"))
;! uncaught_exception

(MyException. "a")
;! unsupported_java_class

;; instance? knows the classes whose objects are values.

(let [values [(LocalDate/of 2024 1 1) (LocalDateTime/of 2024 1 1 0 0) (Instant/ofEpochSecond 0) (Duration/ofDays 1) (java.util.Date. 0) 5 nil {} "2024-01-01"]]
  (map (fn [v] [(instance? LocalDate v) (instance? java.time.LocalDateTime v) (instance? Instant v) (instance? java.time.Duration v) (instance? java.util.Date v)]) values))
;=> [[true false false false false] [false true false false false] [false false true false false] [false false false true false] [false false false false true] [false false false false false] [false false false false false] [false false false false false] [false false false false false]]

(let [of (fn [e] [(instance? Throwable e) (instance? Exception e) (instance? RuntimeException e) (instance? IllegalArgumentException e) (instance? clojure.lang.ExceptionInfo e)])]
  (map of [(ex-info "a" {}) (NumberFormatException. "a") (Error. "a") (try (/ 1 0) (catch Exception e e)) {} {:reason 1} nil 5]))
;=> [[true true true false true] [true true true true false] [true false false false false] [true true true false false] [false false false false false] [false false false false false] [false false false false false] [false false false false false]]

(instance? java.util.UUID "a")
;! unsupported_java_class

;; A field of a class may stand in parentheses, a method may have its dot.

[(= (Math/PI) Math/PI) (Integer/MAX_VALUE) (.. "abc" .toUpperCase .length) (. "abc" .length)]
;=> [true 2147483647 3 3]

(Math/PI 1)
;! not_callable

(.. "abc" .)
;! invalid_form

;; The name of a class may have its package, and a method its class.

[(java.lang.Math/abs -1) (map java.lang.Character/isDigit "1a") (java.lang.String/trim " a ") (java.lang.String. "b") (new java.lang.String "c") java.lang.Long/MAX_VALUE]
;=> [1 [true false] "a" "b" "c" 9223372036854775807]

(let [d (java.time.LocalDate/of 2024 2 29)]
  [(java.time.LocalDate/getYear d) (map LocalDate/getMonthValue [d]) (str (java.time.LocalDate/plusDays d 1)) (java.util.Date/getTime (java.util.Date. 5)) (Duration/toMinutes (java.time.Duration/ofHours 1))])
;=> [2024 [2] "2024-03-01" 5 60]

(java.time.LocalDate/trim "a")
;! unsupported_java_member

(java.text.LocalDate/of 2024 2 29)
;! unsupported_java_class
