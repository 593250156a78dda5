(def reasons ["insufficient funds" "unknown account" "same account"])

(defn reason-in [text]
  (first (filter (fn [r] (str/includes? text r)) reasons)))

(defn carry-out [t]
  (try
    (do
      (tool/transfer {:from_account (:from t) :to_account (:to t) :amount (:amount t)})
      nil)
    (catch Exception e
      {"id" (:id t)
       "reason" (reason-in (str (:message e) " " (:data e)))})))

(defn balance-of [account]
  (try
    (tool/get_balance {:account account})
    (catch Exception e nil)))

(let [results (reduce (fn [acc t] (conj acc (carry-out t))) [] data/transfers)
      accounts (vec (sort (distinct (mapcat (fn [t] [(:from t) (:to t)]) data/transfers))))
      balances (reduce (fn [m a]
                         (let [b (balance-of a)]
                           (if (nil? b) m (assoc m a b))))
                       {}
                       accounts)]
  {"done" (count (filter nil? results))
   "refused" (vec (remove nil? results))
   "balances" balances})
