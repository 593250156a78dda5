(defn read-order [id]
  (try
    (tool/get_order {:order id})
    (catch Exception e nil)))

(defn late? [claim order]
  (or (nil? (:delivered order))
      (.isAfter (LocalDate/parse (:date claim))
                (.plusDays (LocalDate/parse (:delivered order)) 30))))

(defn try-refund [claim]
  (try
    (do
      (tool/refund {:order (:order claim) :amount (:amount claim)})
      {:ok true})
    (catch Exception e
      {:ok false :text (str (:message e) " " (:data e))})))

(defn pay [claim before]
  (loop [r (try-refund claim)]
    (cond
      (:ok r) true
      (not (str/includes? (:text r) "gateway timeout")) (fail (:text r))
      (> (:refunded (tool/get_order {:order (:order claim)})) before) true
      :else (recur (try-refund claim)))))

(defn handle [acc claim]
  (let [order (read-order (:order claim))
        reason (cond
                 (nil? order) "unknown"
                 (late? claim order) "late"
                 (> (:amount claim) (- (:total order) (:refunded order))) "too much"
                 :else nil)]
    (if reason
      (assoc acc :refused (assoc (:refused acc) (:id claim) reason))
      (do
        (pay claim (:refunded order))
        (assoc acc
               :paid (conj (:paid acc) (:id claim))
               :amount (+ (:amount acc) (:amount claim)))))))

(let [result (reduce handle {:paid [] :refused {} :amount 0} data/claims)]
  {"paid" (:paid result)
   "refused" (:refused result)
   "amount" (:amount result)})
