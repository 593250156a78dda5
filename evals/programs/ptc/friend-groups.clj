(let [start (mapv (fn [p] #{p}) (distinct data/people))
      merge-link (fn [groups [a b]]
                   (let [touches? (fn [g] (or (contains? g a) (contains? g b)))
                         hit (filter touches? groups)
                         others (remove touches? groups)]
                     (conj (vec others) (reduce into #{a b} hit))))
      groups (reduce merge-link start data/links)]
  (->> groups
       (map (fn [g] (vec (sort g))))
       (sort-by (fn [g] [(- (count g)) (first g)]))
       vec))
