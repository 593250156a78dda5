(def urgency {"urgent" 0 "high" 1 "normal" 2 "low" 3})

(defn number-of [ticket]
  (parse-long (re-find #"\d+" (:id ticket))))

(defn title-key [ticket]
  (str/lower-case (str/replace (str/trim (:title ticket)) #"\s+" " ")))

(defn choose-agent [agents]
  (first (sort-by (fn [a] [(:load a) (:name a)])
                  (filter (fn [a] (< (:load a) (:capacity a))) agents))))

(defn assign [acc ticket]
  (let [agent (choose-agent (:agents acc))]
    (if (nil? agent)
      (assoc acc :unassigned (conj (:unassigned acc) (:id ticket)))
      (do
        (tool/assign_ticket {:id (:id ticket) :agent (:name agent)})
        (assoc acc
               :assigned (assoc (:assigned acc) (:id ticket) (:name agent))
               :agents (mapv (fn [a]
                               (if (= (:name a) (:name agent))
                                 {:name (:name a) :load (inc (:load a)) :capacity (:capacity a)}
                                 a))
                             (:agents acc)))))))

(let [tickets (tool/list_tickets {:status "open"})
      groups (map (fn [[_ ts]]
                    (let [ordered (vec (sort-by number-of ts))]
                      {:id (:id (first ordered))
                       :number (number-of (first ordered))
                       :rank (reduce min (map (fn [t] (get urgency (:priority t))) ordered))
                       :duplicates (mapv :id (rest ordered))}))
                  (group-by title-key tickets))
      closed (reduce (fn [m [dup id]]
                       (tool/close_ticket {:id dup :duplicate_of id})
                       (assoc m dup id))
                     {}
                     (mapcat (fn [g] (map (fn [d] [d (:id g)]) (:duplicates g))) groups))
      start {:agents (mapv (fn [a] {:name (:name a) :load (:load a) :capacity (:capacity a)})
                           data/agents)
             :assigned {}
             :unassigned []}
      result (reduce assign start (sort-by (fn [g] [(:rank g) (:number g)]) groups))]
  {"assigned" (:assigned result)
   "closed" closed
   "unassigned" (:unassigned result)})
