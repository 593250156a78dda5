(json/parse-string "{\"a\": [1, 2.5, null, true], \"b\": {\"c\": \"x\\ny\"}}")
;=> {"a" [1 2.5 nil true] "b" {"c" "x\ny"}}

(:id (json/parse-string "{\"id\": 12345678901234567890}"))
;=> 12345678901234567890

(json/parse-string "{broken")
;=> nil

(json/parse-string "\"\\u00e9\\ud83d\\ude00\"")
;=> "é😀"

(json/generate-string {:b [1 2.0 nil] :a "q\"t"})
;=> "{\"a\":\"q\\\"t\",\"b\":[1,2.0,null]}"

(json/generate-string [])
;=> "[]"

(map #(get % "n") (json/parse-lines "{\"n\":1}\n{\"n\":2}\n"))
;=> [1 2]

(let [data {"x" [1 {"y" nil}] "z" "é"}] (= data (json/parse-string (json/generate-string data))))
;=> true

(->> (json/parse-string "[{\"team\":\"a\",\"pts\":3},{\"team\":\"b\",\"pts\":1},{\"team\":\"a\",\"pts\":2}]")
     (group-by :team)
     (map (fn [[team games]] [team (sum-by :pts games)]))
     (into {}))
;=> {"a" 5 "b" 1}

(json/generate-string {:k :v})
;! type_error

(json/generate-string ##NaN)
;! type_error

[(json/parse-string "{\"a\":1,\"b\":2,\"a\":3}") (json/parse-lines "{\"a\":1,\"a\":2}\n{\"a\":3,\"\\u0061\":4}")]
;=> [{"a" 3 "b" 2} [{"a" 2} {"a" 4}]]

(let [deep (fn [n] (reduce (fn [a _] [a]) [] (range n)))]
  [(= (deep 511) (json/parse-string (json/generate-string (deep 511)))) (nil? (json/parse-string (apply str (repeat 513 "["))))])
;=> [true true]

(json/generate-string (reduce (fn [a _] [a]) [] (range 512)))
;! result_limit_exceeded

(json/generate-string {:a [(reduce * (range 1 2000))]})
;! result_limit_exceeded
