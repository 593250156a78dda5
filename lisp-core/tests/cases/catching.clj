;; A clause of catch takes the errors that Java throws as its class, and those below it.

[(try (Long/parseLong "x") (catch NullPointerException e :npe) (catch NumberFormatException e :nfe)) (try (/ 1 0) (catch IndexOutOfBoundsException e :oob) (catch ArithmeticException e :ae))]
;=> [:nfe :ae]

(defn class-of [f]
  (try (f)
    (catch NumberFormatException e :number-format)
    (catch ArityException e :arity)
    (catch IllegalArgumentException e :illegal-argument)
    (catch ArithmeticException e :arithmetic)
    (catch NullPointerException e :null-pointer)
    (catch ClassCastException e :class-cast)
    (catch IndexOutOfBoundsException e :index)
    (catch UnsupportedOperationException e :unsupported)
    (catch IllegalStateException e :state)
    (catch java.time.format.DateTimeParseException e :date-parse)
    (catch java.time.DateTimeException e :date)
    (catch ExceptionInfo e :info)
    (catch RuntimeException e :runtime)
    (catch Exception e :exception)
    (catch Error e :error)
    (catch :default e :default)))
[(mapv class-of [#(Integer/parseInt "1x") #(Long/parseLong nil) #(Double/parseDouble "x")])
 (mapv class-of [#(apply (fn [a] a) []) #(apply subs []) #((fn [a b] a) 1)])
 (mapv class-of [#(first 5) #(map inc 5) #(throw (IllegalArgumentException. "a")) #(int 5000000000)])
 (mapv class-of [#(/ 1 0) #(quot 1 0) #(mod 1 0) #(mapv (fn [x] (/ 1 x)) [0]) #(reduce / 1 [0])])
 (mapv class-of [#(inc nil) #(+ 1 nil) #(< nil 1) #(nil 1) #(update {} :n inc) #(.length nil) #(mapv inc [nil])])
 (mapv class-of [#(inc "x") #(+ 1 "x") #(quot "x" 1) #(5 1) #("f" 1) #(subs 5 1) #(sum ["x"]) #(.length 5) #(sort [1 "a"])])
 (mapv class-of [#(assoc [1] 5 1) #([1 2] 5) #(.substring "ab" 5) #(.charAt "ab" 5)])
 (mapv class-of [#(let [[a] 5] a) #(throw (UnsupportedOperationException. "a"))])
 (mapv class-of [#(LocalDate/parse "x") #(Instant/parse "x") #(LocalDate/of 2024 2 30)])
 (mapv class-of [#(throw (ex-info "a" {})) #(throw 5) #(throw {:a 1}) #(fail 1)])
 (mapv class-of [#(throw (IllegalStateException. "a")) #(throw (Exception. "a")) #(throw (RuntimeException. "a")) #(throw (Error. "a")) #(pmap inc [nil])])]
;=> [[:number-format :number-format :number-format] [:arity :arity :arity] [:illegal-argument :illegal-argument :illegal-argument :illegal-argument] [:arithmetic :arithmetic :arithmetic :arithmetic :arithmetic] [:null-pointer :null-pointer :null-pointer :null-pointer :null-pointer :null-pointer :null-pointer] [:class-cast :class-cast :class-cast :class-cast :class-cast :class-cast :class-cast :class-cast :class-cast] [:index :index :index :index] [:unsupported :unsupported] [:date-parse :date-parse :date] [:info :info :info :runtime] [:state :exception :runtime :error :exception]]

;; A clause whose class does not fit lets the error go on, as it is.

(try (try (/ 1 0) (catch NullPointerException e :inner)) (catch ArithmeticException e [:outer (:reason e)]))
;=> [:outer :arithmetic_error]

(try (try (Long/parseLong "x") (catch ArithmeticException e :inner)) (catch IllegalArgumentException e [(:class e) (:reason e)]))
;=> ["NumberFormatException" :java_domain_error]

(try (Long/parseLong "x") (catch NullPointerException e 1))
;! java_domain_error

(try (try (inc nil) (catch NullPointerException e (throw e))) (catch NullPointerException e :again))
;=> :again

(try (throw (Error. "a")) (catch Exception e :exception) (catch Throwable e :throwable))
;=> :throwable

(try (/ 1 0) (catch Error e :error))
;! arithmetic_error

[(try (/ 1 0) (catch java.lang.ArithmeticException e 1)) (try (throw (ex-info "a" {})) (catch clojure.lang.IExceptionInfo e 2)) (try (/ 1 0) (catch Object e 3))]
;=> [1 2 3]

(try 1 (catch java.io.IOException e 2))
;=> 1

(try 1 (catch java.util.ArithmeticException e 2))
;! invalid_form

(try 1 (catch ArithmaticException e 2))
;! invalid_form

;; One mistake has one reason.

(map (fn [f] (try (f) (catch Exception e (:reason e)))) [#(inc "x") #(+ 1 "x") #(quot 1 "x") #(rem nil 1) #(mod :a 1) #(dec nil) #(max 1 "x") #(sum ["x"]) #(avg ["x"]) #(update {} :n inc)])
;=> [:type_error :type_error :type_error :type_error :type_error :type_error :type_error :type_error :type_error :type_error]

;; What is thrown is the data, though it has the keys of an exception.

[(try (throw {:reason :bad :message "x" :n 3}) (catch Exception e (ex-data e))) (instance? Exception {:reason :bad :message "x"}) (ex-message {:reason :bad :message "x"})]
;=> [{:message "x" :n 3 :reason :bad} false nil]

(try (throw (try (/ 1 0) (catch Exception e e))) (catch ArithmeticException e (:reason e)))
;=> :arithmetic_error

;; An exception may be without a message.

[(ex-message (Exception.)) (.getMessage (Exception. nil)) (ex-message (ex-info nil {})) (ex-message (Exception. (Error.))) (instance? Exception (RuntimeException.))]
;=> [nil nil nil "Error" true]

[(try (throw nil) (catch NullPointerException e :npe)) (try (throw nil) (catch ArithmeticException e 1) (catch Exception e (:class e)))]
;=> [:npe "NullPointerException"]

;; What a program throws of its own is its own data, also with the reason of an error that nothing catches.

(try (throw {:reason :timeout :message "slow" :n 1}) (catch Exception e (ex-data e)))
;=> {:message "slow" :n 1 :reason :timeout}

;; An exception without a message is told by its class.

(try (pmap (fn [x] (throw (Exception.))) [1]) (catch Exception e (ex-message e)))
;=> "Exception"

(try (pmap (fn [x] (throw (ex-info nil {:a 1}))) [1]) (catch Exception e (ex-message e)))
;=> "ExceptionInfo"
