; Functions of the language written in the language. They are rare; the others are native.

(defn walk [inner outer form]
  (let [each (if (map? inner) (fn [x] (inner x)) inner)]
    (outer
     (cond
       (map? form) (into {} (map (fn [entry] (inner entry)) form))
       (set? form) (set (map each form))
       (vector? form) (mapv each form)
       :else form))))

(defn postwalk [f form]
  (f (cond
       (map? form) (into {} (map (fn [[k v]] [(postwalk f k) (postwalk f v)]) form))
       (set? form) (set (map (fn [x] (postwalk f x)) form))
       (vector? form) (mapv (fn [x] (postwalk f x)) form)
       :else form)))

(defn prewalk [f form]
  (let [form (f form)]
    (cond
      (map? form) (into {} (map (fn [[k v]] [(prewalk f k) (prewalk f v)]) form))
      (set? form) (set (map (fn [x] (prewalk f x)) form))
      (vector? form) (mapv (fn [x] (prewalk f x)) form)
      :else form)))

(defn tree-seq [branch? children root]
  (if (branch? root)
    (reduce (fn [out child] (into out (tree-seq branch? children child))) [root] (children root))
    [root]))

(defn max-key [f x & more]
  (if (empty? more)
    x
    (let [y (first more)
          kx (f x)
          ky (f y)]
      (first (reduce (fn [[best k] z] (let [kz (f z)] (if (>= kz k) [z kz] [best k])))
                     (if (> kx ky) [x kx] [y ky])
                     (rest more))))))

(defn min-key [f x & more]
  (if (empty? more)
    x
    (let [y (first more)
          kx (f x)
          ky (f y)]
      (first (reduce (fn [[best k] z] (let [kz (f z)] (if (<= kz k) [z kz] [best k])))
                     (if (< kx ky) [x kx] [y ky])
                     (rest more))))))

(defn clojure.string.escape [s cmap]
  (join (map (fn [c] (let [by (cmap c)] (if (nil? by) c by))) (split s ""))))

(defn subset? [set1 set2]
  (and (<= (count set1) (count set2)) (every? (fn [x] (contains? set2 x)) set1)))

(defn superset? [set1 set2]
  (subset? set2 set1))

(defn clojure.set.select [pred xset]
  (set (filter (fn [x] (pred x)) xset)))

(defn clojure.set.project [xrel ks]
  (set (map (fn [x] (select-keys x ks)) xrel)))

(defn clojure.set.rename [xrel kmap]
  (set (map (fn [x] (rename-keys x kmap)) xrel)))

(defn clojure.set.index [xrel ks]
  (reduce (fn [m x]
            (let [part (select-keys x ks)]
              (assoc m part (conj (get m part #{}) x))))
          {}
          xrel))

(defn clojure.set.join [xrel yrel & more]
  (if (or (empty? xrel) (empty? yrel))
    #{}
    (let [swap (> (count xrel) (count yrel))
          small (if swap yrel xrel)
          large (if swap xrel yrel)
          keys-of (fn [xrel] (set (keys (first (seq xrel)))))
          km (if (empty? more)
               (into {} (map (fn [k] [k k]) (intersection (keys-of xrel) (keys-of yrel))))
               (if swap (first more) (map-invert (first more))))
          places (clojure.set/index small (vec (vals km)))]
      (reduce (fn [out x]
                (let [found (get places (rename-keys (select-keys x (vec (keys km))) km))]
                  (if found (into out (map (fn [y] (merge y x)) found)) out)))
              #{}
              large))))

(defn keywordize-keys [form]
  (cond
    (map? form) (update-keys (update-vals form keywordize-keys)
                             (fn [k] (if (string? k) (keyword k) (keywordize-keys k))))
    (set? form) (set (map keywordize-keys form))
    (vector? form) (mapv keywordize-keys form)
    :else form))

(defn stringify-keys [form]
  (cond
    (map? form) (update-keys (update-vals form stringify-keys)
                             (fn [k] (if (keyword? k) (name k) (stringify-keys k))))
    (set? form) (set (map stringify-keys form))
    (vector? form) (mapv stringify-keys form)
    :else form))

; A vector is a path for get, and a keyword finds a string; a set that holds the key is found only as it is.
(defn prewalk-replace [smap form]
  (let [exact (into {} (map (fn [[k v]] [#{k} v]) smap))]
    (prewalk (fn [x] (get exact #{x} x)) form)))

(defn postwalk-replace [smap form]
  (let [exact (into {} (map (fn [[k v]] [#{k} v]) smap))]
    (postwalk (fn [x] (get exact #{x} x)) form)))

(defn run! [f coll]
  (reduce (fn [_ x] (f x) nil) nil coll)
  nil)

(defn trampoline [f & args]
  (loop [value (apply f args)]
    (if (fn? value) (recur (value)) value)))

(defn comparator [pred]
  (fn [a b] (cond (pred a b) -1 (pred b a) 1 :else 0)))

(defn iteration [step & {:keys [somef vf kf initk] :or {somef some? vf identity kf identity}}]
  (loop [result (step initk) out []]
    (if (somef result)
      (let [out (conj out (vf result))
            k (kf result)]
        (if (some? k) (recur (step k) out) out))
      out)))
