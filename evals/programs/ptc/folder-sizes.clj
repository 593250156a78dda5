(defn join-path [folder name]
  (if (= "/" folder)
    (str "/" name)
    (str folder "/" name)))

(defn extension [name]
  (let [i (str/last-index-of name ".")]
    (if (and i (pos? i))
      (str/lower-case (subs name (inc i)))
      "")))

(defn list-entries [path]
  (try
    {:ok true :entries (tool/list_folder {:path path})}
    (catch Exception e {:ok false :entries []})))

(defn walk-folder [acc path]
  (let [r (list-entries path)]
    (if (:ok r)
      (reduce (fn [a entry]
                (let [p (join-path path (:name entry))]
                  (if (= "folder" (:kind entry))
                    (walk-folder a p)
                    (assoc a :files (conj (:files a)
                                          {:path p
                                           :ext (extension (:name entry))
                                           :size (or (:size entry) 0)})))))
              acc
              (:entries r))
      (assoc acc :denied (conj (:denied acc) path)))))

(let [result (walk-folder {:files [] :denied []} "/")
      files (:files result)]
  {"files" (count files)
   "bytes" (reduce + 0 (map :size files))
   "by_extension" (into {} (map (fn [[ext fs]] [ext (reduce + 0 (map :size fs))])
                                (group-by :ext files)))
   "largest" (:path (last (sort-by :size files)))
   "denied" (vec (sort (:denied result)))})
