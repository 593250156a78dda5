(defn start [table]
  (:job (tool/start_export {:table table})))

(defn wait-for [job]
  (loop [r (tool/job_status {:job job})]
    (if (= "running" (:state r))
      (recur (tool/job_status {:job job}))
      r)))

(defn finish [table job]
  (let [first-try (wait-for job)]
    (if (= "done" (:state first-try))
      {:table table :rows (:rows first-try) :ok true :restarted false}
      (let [second-try (wait-for (start table))]
        (if (= "done" (:state second-try))
          {:table table :rows (:rows second-try) :ok true :restarted true}
          {:table table :ok false :restarted true})))))

(let [started (reduce (fn [acc t] (conj acc [t (start t)])) [] data/tables)
      results (reduce (fn [acc [t j]] (conj acc (finish t j))) [] started)]
  {"rows" (into {} (map (fn [r] [(:table r) (:rows r)]) (filter :ok results)))
   "failed" (vec (sort (map :table (remove :ok results))))
   "restarted" (vec (sort (map :table (filter :restarted results))))})
