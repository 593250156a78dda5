(defn signed [t]
  (if (= "in" (:kind t)) (:cents t) (- (:cents t))))

(let [by-month (into {} (map (fn [[m ts]] [m (reduce + 0 (map signed ts))])
                             (group-by (fn [t] (subs (:date t) 0 7)) data/transactions)))
      months (map (fn [n] (str "2026-0" n)) (range 1 10))]
  (:rows (reduce (fn [acc m]
                   (let [b (+ (:balance acc) (get by-month m 0))]
                     {:balance b
                      :rows (conj (:rows acc)
                                  {"month" m "balance" (round (/ b 100) 2)})}))
                 {:balance data/opening_cents :rows []}
                 months)))
