(loop [i 0 sum 0] (if (< i 5000000) (recur (inc i) (+ sum i)) sum))
