(let [days (reduce (fn [acc p]
                     (let [close (if (nil? (:close p)) (:close (last acc)) (:close p))]
                       (conj acc {:day (:day p) :close close})))
                   []
                   (sort-by :day data/prices))
      means (vec (map (fn [window]
                        (let [d (last window)]
                          {:day (:day d)
                           :close (:close d)
                           ;; rounded far beyond the data, so that equal means compare equal
                           :mean (round (/ (reduce + 0 (map :close window)) 5) 8)}))
                      (partition 5 1 days)))
      drops (vec (map (fn [[a b]]
                        {:day (:day b) :drop (round (- (:close a) (:close b)) 8)})
                      (partition 2 1 days)))
      highest (first (sort-by (fn [m] [(- (:mean m)) (:day m)]) means))
      biggest (first (sort-by (fn [d] [(- (:drop d)) (:day d)]) drops))]
  {"last" (round (:mean (last means)) 3)
   "highest" {"day" (:day highest) "mean" (round (:mean highest) 3)}
   "above" (count (filter (fn [m] (> (:close m) (:mean m))) means))
   "biggest_drop" {"day" (:day biggest) "drop" (round (:drop biggest) 2)}})
