(defn active-at [sessions t]
  (count (filter (fn [s] (and (<= (:start s) t) (< t (:end s)))) sessions)))

(defn idle-minutes [sessions]
  (let [ordered (sort-by :start sessions)]
    (:idle (reduce (fn [acc s]
                     {:cursor (max (:cursor acc) (:end s))
                      :idle (+ (:idle acc) (max 0 (- (:start s) (:cursor acc))))})
                   {:cursor (:start (first ordered)) :idle 0}
                   ordered))))

(into {}
      (map (fn [[room ss]]
             (let [starts (sort (distinct (map :start ss)))
                   best (first (sort-by (fn [c] [(- (:n c)) (:t c)])
                                        (map (fn [t] {:t t :n (active-at ss t)}) starts)))]
               [room {"peak" (:n best)
                      "minute" (:t best)
                      "idle" (idle-minutes ss)}]))
           (group-by :room data/sessions)))
