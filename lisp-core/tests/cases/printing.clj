;; What a program prints, a line for each call.

(println "total:" 3 nil :k [1 "a"] {:b 2.5})
;> total: 3 nil :k [1 "a"] {:b 2.5}
;=> nil

(println)
(println "two\nlines")
;>
;> two
;> lines
;=> nil

;; Characters of a text print as the text again.
(println (reverse "stressed") ["x" "y"] ["x" "long"])
;> desserts xy ["x" "long"]
;=> nil

(println (map inc [1 2]) #{3 1} ##NaN 1e21 "quote \"me\"")
;> [2 3] #{1 3} ##NaN 1.0e21 quote "me"
;=> nil

(defn noisy [x] (println "saw" x) x)
(map noisy [1 2])
;> saw 1
;> saw 2
;=> [1 2]

;; What was printed before an error stays printed.
(println "before")
(/ 1 0)
;> before
;! arithmetic_error

(and (println "left") (println "never"))
;> left
;=> nil

(let [line (pr-str {:k "v"})] (println line) (count line))
;> {:k "v"}
;=> 8

;; A symbol is read back from its text, alone and inside others.
[(= 'a (read-string (pr-str 'a))) (read-string (pr-str ['a {'b 1}])) (pr-str (read-string "'a")) (read-string "'(1 2)")]
;=> [true ['a {'b 1}] "'a" ['quote [1 2]]]
