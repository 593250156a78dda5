(defn text-amount [text]
  (let [s (str/trim text)
        minus (re-matches #"-?\$?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?" s)
        parens (re-matches #"\(\$?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?\)" s)]
    (when (or minus parens)
      (let [n (parse-number (str/replace s #"[^0-9.]" ""))]
        (if (or parens (str/starts-with? s "-"))
          (- n)
          n)))))

(defn amount-of [v]
  (cond
    (number? v) v
    (string? v) (text-amount v)
    :else nil))

(let [rows (map (fn [p] {:id (:id p) :n (amount-of (:amount p))}) data/payments)
      valid (filter (fn [r] (some? (:n r))) rows)
      invalid (filter (fn [r] (nil? (:n r))) rows)]
  {"sum" (round (reduce + 0 (map :n valid)) 2)
   "valid" (count valid)
   "invalid" (mapv :id invalid)})
