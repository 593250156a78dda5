(defn to-minutes [hhmm]
  (let [[h m] (str/split hhmm #":")]
    (+ (* 60 (parse-long h)) (parse-long m))))

(defn pad [n]
  (if (< n 10) (str "0" n) (str n)))

(defn to-text [minutes]
  (str (pad (quot minutes 60)) ":" (pad (mod minutes 60))))

(let [day-start (to-minutes "09:00")
      day-end (to-minutes "17:30")
      people (set data/attendees)
      clip (fn [t] (max day-start (min day-end t)))
      busy (->> data/meetings
                (filter (fn [m] (contains? people (:who m))))
                (map (fn [m] [(clip (to-minutes (:from m))) (clip (to-minutes (:to m)))]))
                sort
                vec)
      result (reduce (fn [acc [from to]]
                       {:cursor (max (:cursor acc) to)
                        :free (if (>= (- from (:cursor acc)) 30)
                                (conj (:free acc) [(:cursor acc) from])
                                (:free acc))})
                     {:cursor day-start :free []}
                     (conj busy [day-end day-end]))]
  (mapv (fn [[s e]]
          {"start" (to-text s)
           "end" (to-text e)
           "minutes" (- e s)})
        (:free result)))
