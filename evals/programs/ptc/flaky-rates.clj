(defn ask [currency]
  (try
    {:rate (tool/get_rate {:currency currency})}
    (catch Exception e
      {:rate nil
       :retry (str/includes? (str (:message e) " " (:data e)) "temporarily unavailable")})))

(defn rate-of [currency]
  (if (= "EUR" currency)
    1
    (loop [n 1]
      (let [r (ask currency)]
        (if (and (:retry r) (< n 4))
          (recur (inc n))
          (:rate r))))))

(let [currencies (vec (distinct (map :currency data/invoices)))
      rates (reduce (fn [m c] (assoc m c (rate-of c))) {} currencies)
      has-rate? (fn [inv] (some? (get rates (:currency inv))))
      good (filter has-rate? data/invoices)
      bad (remove has-rate? data/invoices)]
  {"total" (round (reduce + 0 (map (fn [inv] (* (:amount inv) (get rates (:currency inv)))) good)) 2)
   "skipped" (vec (sort (map :id bad)))
   "no_rate" (vec (sort (filter (fn [c] (nil? (get rates c))) currencies)))})
