; Parses log lines and summarizes them: levels, response times by route, services and users with errors, causes.
(def line-pattern #"^(\S+) (INFO|WARN|ERROR) \[(\w+)\] (.*)$")

(defn parse-line [line]
  (let [[_ at level service message] (re-find line-pattern line)]
    (when level
      {:at at :level level :service service :message message
       :user (second (re-find #"user=(u\d+)" message))
       :ms (some-> (re-find #"(\d+)ms" message) (second) (parse-long))})))

(let [parsed (keep parse-line data/logs)
      requests (filter #(re-find #"^(GET|POST|PUT) " (:message %)) parsed)
      route (fn [e] (let [[_ verb path] (re-find #"^(\w+) (/v1/\w+)" (:message e))] (str verb " " path)))
      errors (filter #(= "ERROR" (:level %)) parsed)]
  {:lines (count data/logs)
   :unreadable (- (count data/logs) (count parsed))
   :levels (frequencies (map :level parsed))
   :errors-by-service (->> errors (map :service) (frequencies) (sort-by val >) (mapv first))
   :routes (->> requests
                (group-by route)
                (map (fn [[r es]]
                       (let [times (sort (keep :ms es))]
                         {:route r :n (count es)
                          :median (nth times (quot (count times) 2))
                          :worst (last times)})))
                (sort-by :route)
                (vec))
   :users-with-errors (->> errors (keep :user) (distinct) (sort) (vec))
   :busiest-hour (->> parsed
                      (group-by #(subs (:at %) 0 13))
                      (sort-by (fn [[hour es]] [(- (count es)) hour]))
                      (first)
                      (first))
   :causes (->> errors
                (map #(cond
                        (includes? (:message %) "timeout") :timeout
                        (includes? (:message %) "TypeError") :bug
                        (re-find #" 500 " (:message %)) :http-500
                        :else :network))
                (frequencies))})
