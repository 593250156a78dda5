(defn line-amounts [line]
  (let [gross (* (:qty line) (:price line))
        d (:discount line)
        off (cond
              (nil? d) 0
              (some? (:percent d)) (/ (* gross (:percent d)) 100)
              (some? (:fixed d)) (:fixed d)
              :else 0)
        net (max 0 (- gross off))]
    {:net net :saved (- gross net) :item (:item line)}))

(into {}
      (map (fn [[customer invoices]]
             (let [rows (map line-amounts (mapcat :lines invoices))]
               [customer
                {"net" (round (reduce + 0 (map :net rows)) 2)
                 "saved" (round (reduce + 0 (map :saved rows)) 2)
                 "items" (vec (sort (distinct (map :item rows))))}]))
           (group-by (fn [inv] (get-in inv [:customer :name])) data/invoices)))
