(def empty-item {:lots [] :cos 0 :short 0})

(defn sell [st qty]
  (let [r (reduce (fn [acc [q c]]
                    (let [taken (min q (:need acc))
                          remaining (- q taken)]
                      {:need (- (:need acc) taken)
                       :cos (+ (:cos acc) (* taken c))
                       :lots (if (pos? remaining)
                               (conj (:lots acc) [remaining c])
                               (:lots acc))}))
                  {:need qty :cos (:cos st) :lots []}
                  (:lots st))]
    {:lots (:lots r)
     :cos (:cos r)
     :short (+ (:short st) (:need r))}))

(defn apply-move [state m]
  (let [st (get state (:item m) empty-item)]
    (assoc state (:item m)
           (if (= "buy" (:type m))
             (assoc st :lots (conj (:lots st) [(:qty m) (:cost m)]))
             (sell st (:qty m))))))

(into {}
      (map (fn [[item st]]
             [item {"cost_of_sales" (round (:cos st) 2)
                    "left" (reduce + 0 (map first (:lots st)))
                    "value" (round (reduce + 0 (map (fn [[q c]] (* q c)) (:lots st))) 2)
                    "short" (:short st)}])
           (reduce apply-move {} data/moves)))
