(->> (group-by :account data/entries)
     (map (fn [[account es]]
            (let [r (reduce (fn [acc e]
                              (let [b (+ (:balance acc) (:amount e))]
                                (if (neg? b)
                                  (reduced {:balance b :entry (:id e)})
                                  {:balance b :entry nil})))
                            {:balance 0 :entry nil}
                            es)]
              {"account" account
               "entry" (:entry r)
               "balance" (:balance r)})))
     (sort-by (fn [row] (get row "account")))
     vec)
