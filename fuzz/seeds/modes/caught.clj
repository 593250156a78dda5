(defn f ([n] (f n [])) ([n v] (if (= n 0) (throw (ex-info "deep" {:v v})) (f (dec n) (conj v (str n))))))
(letfn [(a [n] (if (= n 0) (f 3) (b (dec n)))) (b [n] (try (a n) (finally (println n))))]
  [(try (a 3) (catch ArithmeticException e 1) (catch ExceptionInfo e (ex-data e)))
   (map (fn [x] (try (/ 1 x) (catch Exception e [(:reason e) (ex-message e)]))) [1 0 2])
   (try (fail [1 2]) (catch Exception e (:data e)))])
