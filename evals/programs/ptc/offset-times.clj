(defn offset-seconds [text]
  (if (= "Z" text)
    0
    (let [sign (if (= "-" (subs text 0 1)) -1 1)
          [h m] (re-seq #"\d\d" text)]
      (* sign (+ (* 3600 (parse-long h)) (* 60 (parse-long m)))))))

(defn moment [at]
  (let [[_ local offset] (re-matches #"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.\d+)?(Z|[+-]\d{2}:?\d{2})" at)
        millis (.toEpochMilli (Instant/parse (str local "Z")))]
    (- (quot millis 1000) (offset-seconds offset))))

(into {}
      (map (fn [[parcel es]]
             (let [sorted (vec (sort-by :sec (map (fn [e] {:type (:type e) :sec (moment (:at e))}) es)))
                   waits (vec (map (fn [[a b]]
                                     {:after (:type a) :start (:sec a) :wait (- (:sec b) (:sec a))})
                                   (partition 2 1 sorted)))
                   longest (first (sort-by (fn [w] [(- (:wait w)) (:start w)]) waits))]
               [parcel
                {"first" (:type (first sorted))
                 "last" (:type (last sorted))
                 "minutes" (quot (- (:sec (last sorted)) (:sec (first sorted))) 60)
                 "longest_wait" (when longest
                                  {"after" (:after longest)
                                   "minutes" (quot (:wait longest) 60)})}]))
           (group-by :parcel data/events)))
