(let [best (map (fn [[p rows]] {:player p :points (reduce max (map :points rows))})
                (group-by :player data/scores))
      groups (->> (group-by :points best)
                  (map (fn [[pts rows]] {:points pts :players (vec (sort (map :player rows)))}))
                  (sort-by :points >)
                  (take 4))]
  (vec (map-indexed (fn [i g]
                      {"rank" (inc i)
                       "points" (:points g)
                       "players" (:players g)})
                    groups)))
