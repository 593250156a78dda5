(let [words (vec (filter (fn [w] (>= (count w) 4))
                         (map str/lower-case (re-seq #"[a-zA-Z]+" data/text))))
      counts (frequencies words)
      distinct-words (vec (keys counts))]
  {"top" (->> counts
              (map (fn [[w n]] {"word" w "count" n}))
              (sort-by (fn [r] [(- (get r "count")) (get r "word")]))
              (take 6)
              vec)
   "distinct" (count distinct-words)
   "longest" (first (sort-by (fn [w] [(- (count w)) w]) distinct-words))})
