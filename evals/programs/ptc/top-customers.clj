(let [names (into {} (map (fn [c] [(:id c) (:name c)]) data/customers))]
  (->> data/orders
       (remove (fn [o] (:refunded o)))
       (filter (fn [o] (contains? names (:customer_id o))))
       (group-by :customer_id)
       (map (fn [[id os]]
              {:id id
               :total (round (reduce + 0 (map :amount os)) 2)
               :orders (count os)}))
       (sort-by (fn [r] [(- (:total r)) (:id r)]))
       (take 3)
       (mapv (fn [r] {"name" (get names (:id r))
                      "total" (:total r)
                      "orders" (:orders r)}))))
