(-> {:price 20} :price (* 3) (- 5))
;=> 55

(->> (range 10) (filter odd?) (map #(* % %)) (reduce +))
;=> 165

(-> [3 1 2] sort first)
;=> 1

(-> "a-b-c" (split "-") (->> (join "+")))
;=> "a+b+c"

;; A step that is a whole function needs parentheses around it.
(-> 4 (#(- % 1)) ((fn [x] (* x x))))
;=> 9

(as-> 5 n (+ n 1) (* n n) [n n])
;=> [36 36]

(as-> {:a [1 2]} it (:a it) (conj it 3) (count it))
;=> 3

(some-> {:user {:mail "a@b.c"}} :user :mail upper-case)
;=> "A@B.C"

(some-> {:user {}} :user :mail upper-case)
;=> nil

(some->> [1 2 3] (map inc) (filter even?) first)
;=> 2

(some->> nil (map inc))
;=> nil

(let [order {:total 120}] (cond-> order (> (:total order) 100) (assoc :discount 10) false (assoc :never 1)))
;=> {:discount 10 :total 120}

(cond->> [1 2 3 4] true (filter even?) nil (map inc) :always (reduce +))
;=> 6

(-> 1)
;=> 1

(macroexpand-like-name 1)
;! unbound_var

(->)
;! invalid_thread_form

(cond-> 1 true)
;! invalid_thread_form

(as-> 1 [x] x)
;! invalid_thread_form
