(let [all (loop [page (tool/list_orders {}) pages 1 items []]
            (let [items2 (into items (:items page))]
              (if (nil? (:next page))
                {:pages pages :items items2}
                (recur (tool/list_orders {:cursor (:next page)}) (inc pages) items2))))
      orders (vec (vals (reduce (fn [m o]
                                  (if (contains? m (:id o))
                                    m
                                    (assoc m (:id o) o)))
                                {}
                                (:items all))))]
  {"orders" (count orders)
   "by_status" (into {} (map (fn [[status os]]
                               [status (round (reduce + 0 (map :amount os)) 2)])
                             (group-by :status orders)))
   "pages" (:pages all)})
