(->> data/orders
     (filter (fn [o] (= "completed" (:status o))))
     (group-by :region)
     (map (fn [[region os]]
            {"region" region
             "orders" (count os)
             "revenue" (round (/ (reduce + 0 (map (fn [o] (* (:quantity o) (:unit_price o))) os)) 100) 2)}))
     (sort-by (fn [r] [(- (get r "revenue")) (get r "region")]))
     vec)
