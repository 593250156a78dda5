(defn month-of [s] (subs (:date s) 0 7))

(defn units-in [rows month]
  (reduce + 0 (map :units (filter (fn [s] (= month (month-of s))) rows))))

(let [months (vec (sort (distinct (map month-of data/sales))))
      rows (vec (sort-by (fn [r] (get r "product"))
                         (map (fn [[product ss]]
                                {"product" product
                                 "cells" (mapv (fn [m] (units-in ss m)) months)
                                 "total" (reduce + 0 (map :units ss))})
                              (group-by :product data/sales))))]
  {"months" months
   "rows" rows
   "totals" (mapv (fn [m] (units-in data/sales m)) months)})
