(defn line-total [{:keys [qty price]}]
  (* qty price))
(defn order-total [order]
  (reduce + 0 (map line-total (:items order))))
(->> data/orders
     (filter #(contains? #{"shipped" "paid"} (:status %)))
     (map #(assoc % :total (order-total %)))
     (filter #(> (:total %) 20))
     (group-by :country)
     (map (fn [[country orders]]
            {:country country
             :orders (count orders)
             :revenue (reduce + 0 (map :total orders))
             :largest (apply max (map :total orders))}))
     (sort-by :revenue >))
