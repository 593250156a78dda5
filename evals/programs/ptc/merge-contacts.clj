(defn email-key [c]
  (str/lower-case (str/trim (:email c))))

(defn latest-value [records field]
  (first (remove (fn [v] (or (nil? v) (= "" v)))
                 (map (fn [r] (get r field)) records))))

(->> (group-by email-key data/contacts)
     (map (fn [[email rs]]
            (let [newest-first (reverse (sort-by :updated rs))]
              {"email" email
               "name" (latest-value newest-first "name")
               "phone" (latest-value newest-first "phone")
               "city" (latest-value newest-first "city")
               "records" (count rs)})))
     (sort-by (fn [r] (get r "email")))
     vec)
