(count (str/join "," (map (fn [i] (format "item-%d=%d" i (* i 7))) (range 200000))))
