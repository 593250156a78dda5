(defn percents [given]
  (let [n (count given)
        base (vec (map-indexed (fn [i o]
                                 (let [c (* 100 (count (filter (fn [g] (= g o)) given)))]
                                   {:i i :option o :whole (quot c n) :cut (rem c n)}))
                               data/options))
        missing (- 100 (reduce + 0 (map :whole base)))
        lucky (set (map :i (take missing (sort-by (fn [b] [(- (:cut b)) (:i b)]) base))))]
    (into {} (map (fn [b] [(:option b)
                           (if (contains? lucky (:i b)) (inc (:whole b)) (:whole b))])
                  base))))

(into {}
      (map (fn [q]
             (let [given (vec (remove nil? (map (fn [a] (get a q)) data/answers)))]
               [q {"answered" (count given)
                   "percent" (if (seq given) (percents given) nil)}]))
           data/questions))
