; Summarizes support tickets: open ones by priority, figures for each agent, tags of escalations, urgent tickets.
(def weights {"low" 1 "normal" 2 "high" 4 "urgent" 8})

(defn escalated? [ticket]
  (some #(= "escalate" (:kind %)) (:events ticket)))

(defn worked-minutes [ticket]
  (->> (:events ticket) (keep :minutes) (reduce + 0)))

(defn agent-card [[agent tickets]]
  (let [rated (keep :rating tickets)
        resolved (filter #(= "resolved" (:state %)) tickets)]
    {:agent (or agent "nobody")
     :tickets (count tickets)
     :resolved (count resolved)
     :load (sum (map #(get weights (:priority %)) (remove #(= "resolved" (:state %)) tickets)))
     :minutes (sum (map worked-minutes tickets))
     :rating (when (seq rated) (format "%.2f" (/ (reduce + rated) (count rated))))}))

(let [open (remove #(= "resolved" (:state %)) data/tickets)
      urgent (for [{:keys [id subject priority events agent]} open
                   :when (= priority "urgent")
                   :let [last-event (last events)]
                   :when (not= "customer" (:by last-event))]
               [id agent (:kind last-event)])]
  (println "open" (count open) "of" (count data/tickets))
  {:open-by-priority (into {} (map (fn [[p ts]] [(keyword p) (count ts)]) (group-by :priority open)))
   :agents (->> (group-by :agent data/tickets) (map agent-card) (sort-by (juxt #(- (:load %)) :agent)) (vec))
   :escalation-tags (->> data/tickets
                         (filter escalated?)
                         (mapcat :tags)
                         (frequencies)
                         (sort-by (fn [[tag n]] [(- n) tag]))
                         (take 3)
                         (vec))
   :urgent-waiting (vec (sort urgent))
   :untagged (count (filter #(empty? (:tags %)) data/tickets))})
