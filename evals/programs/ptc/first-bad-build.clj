;; lo passes, hi fails; rounding up keeps one call free in case build 200 is the first bad one
(loop [lo 1 hi 200 author nil]
  (if (= 1 (- hi lo))
    {"first_bad" hi
     "author" (if (nil? author)
                (:author (tool/build_status {:build hi}))
                author)}
    (let [mid (quot (+ lo hi 1) 2)
          r (tool/build_status {:build mid})]
      (if (:passes r)
        (recur mid hi author)
        (recur lo mid (:author r))))))
