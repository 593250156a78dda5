(defn summarize [person depth]
  (let [reports (or (:reports person) [])
        subs-info (mapv (fn [p] (summarize p (inc depth))) reports)
        total (+ (count reports) (reduce + 0 (map :total subs-info)))
        cost (+ (:salary person) (reduce + 0 (map :cost subs-info)))
        below (vec (mapcat :rows subs-info))]
    {:total total
     :cost cost
     :rows (if (seq reports)
             (conj below {"name" (:name person)
                          "depth" depth
                          "direct" (count reports)
                          "total" total
                          "cost" cost})
             below)}))

(vec (sort-by (fn [r] [(- (get r "total")) (get r "name")])
              (:rows (summarize data/org 0))))
