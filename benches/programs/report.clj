(def min-total 100)

(defn line-total [line]
  (* (:price line 0) (:quantity line 1)))

(defn order-total [order]
  (reduce + 0 (map line-total (:lines order))))

(defn with-total [order]
  (assoc order :total (order-total order)))

(let [orders (->> data/orders
                  (filter (fn [o] (= (:status o) "paid")))
                  (map with-total)
                  (filter (fn [{:keys [total]}] (>= total min-total))))
      by-customer (group-by :customer orders)
      rows (for [[customer theirs] by-customer
                 :let [sum (reduce + (map :total theirs))
                       largest (apply max (map :total theirs))]]
             {:customer customer
              :orders (count theirs)
              :sum sum
              :largest largest
              :regions (sort (distinct (map :region theirs)))})
      top (take 5 (sort-by :sum > rows))]
  (doseq [{:keys [customer sum]} top]
    (println customer sum))
  {:top (mapv (fn [row] (select-keys row [:customer :sum :regions])) top)
   :customers (count by-customer)
   :average (if (empty? orders) nil (/ (reduce + (map :total orders)) (count orders)))})
