(def quote-char "\"")

(defn end-field [st]
  (assoc st :row (conj (:row st) (:field st)) :field "" :closed false))

(defn end-row [st]
  (let [s (end-field st)]
    (assoc s :rows (conj (:rows s) (:row s)) :row [])))

(defn step [st ch]
  (cond
    (:quoted st)
    (if (= ch quote-char)
      (assoc st :quoted false :closed true)
      (assoc st :field (str (:field st) ch)))

    (= ch quote-char)
    (if (:closed st)
      (assoc st :quoted true :closed false :field (str (:field st) quote-char))
      (assoc st :quoted true))

    (= ch ",") (end-field st)
    (= ch "\n") (end-row st)
    :else (assoc st :field (str (:field st) ch))))

(defn parse-csv [text]
  (let [clean (str/replace text "\r\n" "\n")
        st (reduce step
                   {:rows [] :row [] :field "" :quoted false :closed false}
                   (seq clean))
        st2 (if (or (seq (:row st)) (not= "" (:field st)) (:closed st))
              (end-row st)
              st)]
    (:rows st2)))

(let [rows (parse-csv data/csv)
      header (first rows)
      records (map (fn [r] (zipmap header r))
                   (filter (fn [r] (= (count r) (count header))) (rest rows)))
      totals (into {}
                   (map (fn [[c rs]]
                          [c (round (reduce + 0 (map (fn [r]
                                                       (* (parse-number (get r "price"))
                                                          (parse-number (get r "qty"))))
                                                     rs))
                                    2)])
                        (group-by (fn [r] (get r "category")) records)))
      longest (last (sort-by count (map (fn [r] (get r "title")) records)))]
  {"totals" totals "longest" longest})
