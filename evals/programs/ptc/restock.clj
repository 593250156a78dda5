(defn place [sku quantity]
  (try
    (do
      (tool/place_order {:sku sku :quantity quantity})
      {:ok true})
    (catch Exception e
      {:ok false :text (str (:message e) " " (:data e))})))

(defn order-item [item need]
  (let [pack (:pack item)
        quantity (* pack (quot (+ need (dec pack)) pack))
        r (place (:sku item) quantity)]
    (if (:ok r)
      quantity
      (let [m (re-find #"max (\d+)" (:text r))]
        (if (nil? m)
          (fail (:text r))
          (let [limit (parse-long (second m))
                smaller (* pack (quot limit pack))]
            (if (pos? smaller)
              (do
                (tool/place_order {:sku (:sku item) :quantity smaller})
                smaller)
              0)))))))

(defn restock [item]
  (let [s (tool/get_stock {:sku (:sku item)})
        available (+ (:stock s) (:on_order s))
        need (- (:target item) available)]
    (if (and (< available (:minimum item)) (pos? need))
      (order-item item need)
      0)))

(let [orders (reduce (fn [acc item]
                       (let [q (restock item)]
                         (if (pos? q)
                           (conj acc {:sku (:sku item) :q q :cost (* q (:price item))})
                           acc)))
                     []
                     data/items)]
  {"ordered" (into {} (map (fn [o] [(:sku o) (:q o)]) orders))
   "cost" (round (reduce + 0 (map :cost orders)) 2)})
