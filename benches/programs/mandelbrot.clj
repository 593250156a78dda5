(defn escape [cx cy]
  (loop [x 0.0 y 0.0 i 0]
    (if (and (< i 50) (<= (+ (* x x) (* y y)) 4.0))
      (recur (+ (- (* x x) (* y y)) cx) (+ (* (* 2.0 x) y) cy) (inc i))
      i)))
(reduce (fn [sum py]
          (reduce (fn [sum px] (+ sum (escape (- (/ px 100.0) 1.5) (- (/ py 100.0) 1.0)))) sum (range 200)))
        0 (range 200))
