(let [pkgs data/packages
      names (vec (sort (keys pkgs)))
      known (set names)
      next-one (fn [done]
                 (first (filter (fn [n]
                                  (and (not (contains? done n))
                                       (every? (fn [d] (or (not (contains? known d))
                                                           (contains? done d)))
                                               (get pkgs n))))
                                names)))
      result (reduce (fn [acc _]
                       (let [n (next-one (:done acc))]
                         (if (nil? n)
                           acc
                           {:done (conj (:done acc) n)
                            :order (conj (:order acc) n)})))
                     {:done #{} :order []}
                     names)]
  {"order" (:order result)
   "blocked" (vec (remove (fn [n] (contains? (:done result) n)) names))})
