(defn value-of [server field]
  (let [v (get server field)]
    (if (and (= field "tags") (some? v))
      (set v)
      v)))

(defn changed-fields [a b]
  (->> (concat (keys a) (keys b))
       distinct
       (filter (fn [k] (not= (value-of a k) (value-of b k))))
       sort
       vec))

(let [index (fn [servers] (into {} (map (fn [s] [(:id s) s]) servers)))
      old (index data/before)
      new-ones (index data/after)
      old-ids (vec (sort (keys old)))
      new-ids (vec (sort (keys new-ones)))]
  {"added" (vec (remove (fn [id] (contains? old id)) new-ids))
   "removed" (vec (remove (fn [id] (contains? new-ones id)) old-ids))
   "changed" (->> old-ids
                  (filter (fn [id] (contains? new-ones id)))
                  (map (fn [id] {"id" id
                                 "fields" (changed-fields (get old id) (get new-ones id))}))
                  (filter (fn [c] (seq (get c "fields"))))
                  vec)})
