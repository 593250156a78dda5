; Sums up paid and shipped orders by country: revenue, coupons, best seller, repeat customers; and the three largest
; orders.
(defn line-total [{:keys [price qty discount]}]
  (* price qty (- 1 (or discount 0))))

(defn order-total [order]
  (+ (sum (map line-total (:items order)))
     (or (:shipping order) 0)))

(defn cents [x] (/ (round (* 100 x)) 100))

(let [counted (filter #(contains? #{"shipped" "paid"} (:status %)) data/orders)
      by-country (group-by #(get-in % [:customer :country] "unknown") counted)]
  {:orders (count data/orders)
   :counted (count counted)
   :by-status (frequencies (map :status data/orders))
   :countries
   (->> by-country
        (map (fn [[country orders]]
               (let [units (reduce (fn [acc {:keys [sku qty]}] (update acc sku (fnil + 0) qty))
                                   {}
                                   (mapcat :items orders))
                     per-customer (frequencies (map #(get-in % [:customer :id]) orders))]
                 {:country (or country "unknown")
                  :orders (count orders)
                  :revenue (cents (sum (map order-total orders)))
                  :with-coupon (count (filter :coupon orders))
                  :best-seller (first (first (sort-by (fn [[sku n]] [(- n) sku]) units)))
                  :repeat-customers (count (filter (fn [[_ n]] (> n 1)) per-customer))})))
        (sort-by :revenue >)
        (vec))
   :largest (->> counted
                 (sort-by (juxt #(- (order-total %)) :id))
                 (take 3)
                 (mapv (fn [o] {:id (:id o) :total (cents (order-total o)) :name (get-in o [:customer :name])})))})
