; Joins a catalogue with its category tree: missing data, stock and value by category path, top ratings, sold-out
; products.
(let [by-id (into {} (map (juxt :id identity) data/categories))
      path (fn [id]
             (loop [id id names []]
               (if-let [category (get by-id id)]
                 (recur (:parent category) (into [(:name category)] names))
                 names)))
      stock (fn [p] (reduce + 0 (vals (:stock p))))
      live (remove :discontinued data/products)
      priced (filter :price live)
      average (fn [xs] (when (seq xs) (/ (reduce + xs) (count xs))))]
  {:products (count data/products)
   :gaps {:no-price (count (remove :price live))
          :no-category (count (remove #(get by-id (:category %)) live))
          :no-ratings (count (filter #(empty? (:ratings %)) live))}
   :categories (->> priced
                    (group-by #(or (seq (path (:category %))) ["unknown"]))
                    (map (fn [[p items]]
                           {:path (join " / " p)
                            :n (count items)
                            :units (sum (map stock items))
                            :value (round (sum (map #(* (:price %) (stock %)) items)))
                            :cheapest (:sku (first (sort-by (juxt :price :sku) items)))}))
                    (sort-by :path)
                    (vec))
   :top-rated (->> live
                   (filter #(>= (count (:ratings %)) 8))
                   (map (fn [p] [(average (:ratings p)) (:sku p) (:name p)]))
                   (sort-by (fn [[avg sku _]] [(- avg) sku]))
                   (take 5)
                   (mapv (fn [[avg sku name]] {:sku sku :name name :rating (format "%.1f" avg)})))
   :spec-keys (->> live (mapcat #(keys (:specs %))) (frequencies))
   :heavy-wireless (->> live
                        (filter #(and (get-in % [:specs :wireless]) (> (get-in % [:specs :weight_g] 0) 7000)))
                        (map :sku)
                        (sort)
                        (vec))
   :sold-out (->> live (filter #(zero? (stock %))) (map :sku) (sort) (vec))})
