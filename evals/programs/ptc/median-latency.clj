(defn median [xs]
  (let [n (count xs)
        h (quot n 2)]
    (if (odd? n)
      (nth xs h)
      (/ (+ (nth xs (dec h)) (nth xs h)) 2))))

(defn p90 [xs]
  (nth xs (dec (quot (+ (* 9 (count xs)) 9) 10))))

(let [rows (map (fn [[endpoint rs]]
                  (let [xs (vec (sort (remove nil? (map :ms rs))))]
                    (if (seq xs)
                      {"endpoint" endpoint "count" (count xs) "median" (median xs) "p90" (p90 xs)}
                      {"endpoint" endpoint "count" 0 "median" nil "p90" nil})))
                (group-by :endpoint data/requests))]
  (vec (sort-by (fn [r]
                  (if (nil? (get r "median"))
                    [1 0 (get r "endpoint")]
                    [0 (- (get r "median")) (get r "endpoint")]))
                rows)))
