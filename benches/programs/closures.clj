(reduce (fn [sum x] (+ sum x)) 0
        (filter (fn [x] (even? x))
                (map (fn [x] (* x 3)) (range 1000000))))
