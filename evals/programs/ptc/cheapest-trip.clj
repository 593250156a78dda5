(defn flights [from to day]
  (vec (filter (fn [f] (>= (:seats f) 2))
               (tool/search_flights {:origin from :destination to :day day}))))

(defn best-trip [city]
  (let [trips (for [day [1 2 3]
                    :let [outs (flights "Home" city day)
                          backs (flights city "Home" (+ day 3))]
                    o outs
                    b backs]
                {:key [(+ (:price o) (:price b)) day (:flight o) (:flight b)]
                 :trip {"city" city
                        "out" (:flight o)
                        "back" (:flight b)
                        "price" (+ (:price o) (:price b))}})]
    (when (seq trips)
      (:trip (first (sort-by :key trips))))))

(->> data/cities
     (map best-trip)
     (remove nil?)
     (sort-by (fn [t] [(get t "price") (get t "city")]))
     vec)
