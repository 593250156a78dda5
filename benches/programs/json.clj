(defn row [order]
  {:id (:id order) :country (:country order) :qty (reduce + 0 (map :qty (:items order)))})
(count (json/generate-string {:rows (map row (:orders (json/parse-string data/text)))}))
