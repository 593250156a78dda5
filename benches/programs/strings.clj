(let [table (into {} (map (fn [i] [(str "key-" i) i]) (range 200000)))]
  (reduce (fn [sum i] (+ sum (get table (str "key-" i)))) 0 (range 200000)))
