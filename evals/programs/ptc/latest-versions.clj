(defn prerelease? [version]
  (str/includes? version "-"))

(defn version-key [version]
  (let [numbers (mapv parse-long (re-seq #"\d+" version))
        padded (vec (take 10 (concat numbers (repeat 10 0))))]
    (conj padded (count version))))

(into {}
      (map (fn [[package rs]]
             (let [versions (map :version rs)
                   stable (vec (remove prerelease? versions))]
               [package
                {"stable" (if (seq stable)
                            (last (sort-by version-key stable))
                            nil)
                 "versions" (count versions)
                 "prereleases" (count (filter prerelease? versions))}]))
           (group-by :package data/releases)))
