(defn valid-id? [v]
  (and (integer? v) (> v 0)))

(defn valid-email? [v]
  (and (string? v)
       (some? (re-matches #"[^@]+@[^@]+\.[^@]+" v))))

(defn valid-age? [v]
  (or (nil? v)
      (and (integer? v) (<= 0 v 130))))

(defn valid-tags? [v]
  (and (vector? v) (every? string? v)))

(defn row-issues [row seen]
  (let [id (:id row)]
    (remove nil?
            [(when (not (valid-id? id)) "bad id")
             (when (and (valid-id? id) (contains? seen id)) "duplicate id")
             (when (not (valid-email? (:email row))) "bad email")
             (when (not (valid-age? (:age row))) "bad age")
             (when (not (valid-tags? (:tags row))) "bad tags")])))

(let [result (reduce (fn [acc [i row]]
                       (let [issues (vec (row-issues row (:seen acc)))]
                         {:seen (if (valid-id? (:id row))
                                  (conj (:seen acc) (:id row))
                                  (:seen acc))
                          :ok (if (seq issues) (:ok acc) (inc (:ok acc)))
                          :issues (reduce (fn [m issue]
                                            (assoc m issue (conj (get m issue []) i)))
                                          (:issues acc)
                                          issues)}))
                     {:seen #{} :ok 0 :issues {}}
                     (map-indexed (fn [i row] [i row]) data/rows))]
  {"issues" (:issues result)
   "ok" (:ok result)})
