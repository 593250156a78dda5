(let [ids (vec (distinct (map :user data/events)))
      found (mapcat (fn [chunk] (tool/get_users {:ids (vec chunk)})) (partition-all 5 ids))
      country (into {} (map (fn [u] [(:id u) (:country u)]) found))]
  (->> data/events
       (group-by (fn [e] (get country (:user e) "unknown")))
       (map (fn [[c es]]
              [c {"users" (count (distinct (map :user es)))
                  "logins" (count es)}]))
       (into {})))
