(let [edges (vec (mapcat (fn [r] [[(:a r) (:b r) (:km r)]
                                  [(:b r) (:a r) (:km r)]])
                         data/roads))
      towns (vec (sort (distinct (map first edges))))
      relax (fn [best [from to km]]
              (let [here (get best from)
                    there (get best to)]
                (if (and here
                         (or (nil? there)
                             (< (+ (:km here) km) (:km there))))
                  (assoc best to {:km (+ (:km here) km)
                                  :route (conj (:route here) to)})
                  best)))
      best (reduce (fn [b _] (reduce relax b edges))
                   {"Ash" {:km 0 :route ["Ash"]}}
                   towns)
      goal (get best "Yew")]
  {"route" (:route goal)
   "km" (:km goal)
   "unreachable" (vec (remove (fn [t] (contains? best t)) towns))})
