(let [numbers (loop [i 0 x 42 all []]
                (if (< i 300000)
                  (recur (inc i) (rem (* x 16807) 2147483647) (conj all x))
                  all))]
  (nth (sort (fn [a b] (< a b)) numbers) 150000))
