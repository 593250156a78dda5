(defn set-ok? [service name value]
  (try
    (let [r (tool/set_config {:service service :name name :value value})]
      (not= false (:ok r)))
    (catch Exception e false)))

(defn undo [service cfg name]
  (if (contains? cfg name)
    (tool/set_config {:service service :name name :value (get cfg name)})
    (tool/unset_config {:service service :name name})))

(defn roll-out [service]
  (let [cfg (tool/get_config {:service service})]
    (if (= true (:locked cfg))
      {:service service :status "locked" :done []}
      (let [todo (vec (filter (fn [n]
                                (or (not (contains? cfg n))
                                    (not= (get cfg n) (get data/wanted n))))
                              (sort (keys data/wanted))))
            result (reduce (fn [acc n]
                             (if (set-ok? service n (get data/wanted n))
                               {:failed false :done (conj (:done acc) n)}
                               (reduced {:failed true :done (:done acc)})))
                           {:failed false :done []}
                           todo)]
        (if (:failed result)
          (do
            (doseq [n (reverse (:done result))]
              (undo service cfg n))
            {:service service :status "rolled_back" :done []})
          {:service service :status "ok" :done (:done result)})))))

(let [results (reduce (fn [acc s] (conj acc (roll-out s))) [] data/services)
      with-status (fn [st] (mapv :service (filter (fn [r] (= st (:status r))) results)))]
  {"changed" (into {} (map (fn [r] [(:service r) (:done r)])
                           (filter (fn [r] (seq (:done r))) results)))
   "locked" (with-status "locked")
   "rolled_back" (with-status "rolled_back")})
