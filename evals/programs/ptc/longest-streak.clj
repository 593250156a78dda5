(defn next-day? [a b]
  (= (.plusDays (LocalDate/parse a) 1) (LocalDate/parse b)))

(defn runs [days]
  (reduce (fn [acc d]
            (let [current (last acc)]
              (if (and current (next-day? (:end current) d))
                (conj (vec (butlast acc))
                      {:start (:start current) :end d :days (inc (:days current))})
                (conj acc {:start d :end d :days 1}))))
          []
          days))

(into {}
      (map (fn [[who rows]]
             (let [days (vec (sort (distinct (map :day rows))))
                   best (first (sort-by (fn [r] [(- (:days r)) (:start r)]) (runs days)))]
               [who {"start" (:start best)
                     "end" (:end best)
                     "days" (:days best)}]))
           (group-by :who data/workouts)))
