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
    (first (reduce (fn [[best k] y] (let [ky (f y)] (if (> ky k) [y ky] [best k]))) [x (f x)] more))))

(defn min-key [f x & more]
  (if (empty? more)
    x
    (first (reduce (fn [[best k] y] (let [ky (f y)] (if (< ky k) [y ky] [best k]))) [x (f x)] more))))
