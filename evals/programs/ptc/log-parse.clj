(defn parse-line [line]
  (let [m (re-matches #"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}):\d{2}(?:\.\d+)?Z ([A-Z]+) ([^\s:]+): (.*)" line)]
    (when m
      (let [[_ minute level service message] m
            took (re-find #"request took (\d+)ms" message)]
        {:minute minute
         :level level
         :service service
         :ms (when took (parse-long (second took)))}))))

(let [rows (vec (remove nil? (map parse-line data/log)))]
  {"levels" (frequencies (map :level rows))
   "slowest" (into {}
                   (map (fn [[service rs]] [service (reduce max (map :ms rs))])
                        (group-by :service (filter (fn [r] (some? (:ms r))) rows))))
   "minutes" (count (distinct (map :minute (filter (fn [r] (= "ERROR" (:level r))) rows))))})
