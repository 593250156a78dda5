(defn sku-key [sku]
  (str/lower-case (str/trim (str sku))))

(let [ordered (set (map (fn [line] (sku-key (:sku line)))
                        (mapcat (fn [o] (or (:lines o) [])) data/orders)))]
  (->> data/catalog
       (remove (fn [p] (contains? ordered (sku-key (:sku p)))))
       (group-by :category)
       (map (fn [[category ps]] [category (vec (sort (map :name ps)))]))
       (into {})))
