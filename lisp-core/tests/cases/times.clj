;; Dates with a time.
[(str (LocalDateTime/parse "2024-01-31T10:00")) (str (LocalDateTime/parse "2024-01-31T10:00:00.120")) (str (LocalDateTime/of 2024 "MARCH" 1 0 0 5))]
;=> ["2024-01-31T10:00" "2024-01-31T10:00:00.120" "2024-03-01T00:00:05"]

(LocalDateTime/parse "2024-01-31T10:00Z")
;! java_domain_error

(LocalDateTime/parse "2024-01-31T24:00")
;! java_domain_error

(LocalDateTime/parse nil)
;! java_domain_error

(let [t (LocalDateTime/of 2024 2 28 23 30)]
  (map str [(.plusDays t 1) (.plusMonths t 1) (.plusYears t -1) (.plusHours t 1) (.minusMinutes t 31) (.plusSeconds t 90) (.plus t (Duration/ofDays 2)) (.withDayOfMonth t 1) (.withHour t 0)]))
;=> ["2024-02-29T23:30" "2024-03-28T23:30" "2023-02-28T23:30" "2024-02-29T00:30" "2024-02-28T22:59" "2024-02-28T23:31:30" "2024-03-01T23:30" "2024-02-01T23:30" "2024-02-28T00:30"]

(let [a (LocalDateTime/of 2024 2 28 10 0) b (LocalDateTime/of 2024 2 28 11 0)]
  [(.isBefore a b) (.isAfter a b) (.isEqual a a) (= a (LocalDateTime/parse "2024-02-28T10:00")) (compare a b) (.compareTo b a) (first (sort [b a])) (str (Duration/between a b))])
;=> [true false true true -1 1 "2024-02-28T10:00" "PT1H"]

(count (set [(LocalDateTime/of 2024 1 1 0 0) (LocalDateTime/of 2024 1 1 0 0 0) (LocalDate/of 2024 1 1) (Instant/parse "2024-01-01T00:00:00Z")]))
;=> 3

(let [a (LocalDateTime/of 2024 1 31 12 0) b (LocalDateTime/of 2024 3 31 11 59)]
  (map (fn [unit] (.between unit a b)) [ChronoUnit/MONTHS ChronoUnit/WEEKS ChronoUnit/DAYS ChronoUnit/HOURS ChronoUnit/MINUTES ChronoUnit/YEARS]))
;=> [1 8 59 1439 86399 0]

[(.until (LocalDate/of 2024 2 1) (LocalDate/of 2024 3 1) ChronoUnit/DAYS) (.getDayOfWeek (LocalDateTime/of 2024 2 29 1 1)) (.getHour (Instant/parse "2024-01-01T23:00:00Z"))]
;=> [29 "THURSDAY" 23]

[(str (.toInstant (LocalDateTime/of 2024 1 1 0 0) ZoneOffset/UTC)) (str (.toLocalDate (.atZone (Instant/parse "2024-01-01T23:00:00Z") (ZoneId/of "UTC")))) (str (LocalDateTime/ofInstant (Instant/ofEpochMilli 1500) ZoneOffset/UTC))]
;=> ["2024-01-01T00:00:00Z" "2024-01-01" "1970-01-01T00:00:01.500"]

(.atZone (LocalDateTime/of 2024 1 1 0 0) (ZoneId/of "America/New_York"))
;! java_domain_error

[(str (LocalDateTime/now)) (str (LocalDate/now)) (= (.toInstant (LocalDateTime/now) ZoneOffset/UTC) (Instant/now))]
;=> ["2023-11-14T22:13:20" "2023-11-14" true]

[(str (.truncatedTo (LocalDateTime/parse "2024-01-31T10:20:30.5") ChronoUnit/MINUTES)) (str (.truncatedTo (Duration/ofMillis 61500) ChronoUnit/MINUTES)) (str (.truncatedTo (Instant/ofEpochMilli -1) ChronoUnit/DAYS))]
;=> ["2024-01-31T10:20" "PT1M" "1969-12-31T00:00:00Z"]

;; By a pattern.
(let [t (LocalDateTime/of 2024 2 9 15 4 5 67000000) f (fn [p] (.format t (DateTimeFormatter/ofPattern p)))]
  (map f ["yyyy-MM-dd HH:mm:ss.SSS" "d.M.yy" "EEEE, d MMMM uuuu" "h:mm a" "hh 'o''clock'" "QQQ yyyy" "DDD" "yyyyMMddHHmmss"]))
;=> ["2024-02-09 15:04:05.067" "9.2.24" "Friday, 9 February 2024" "3:04 PM" "03 o'clock" "Q1 2024" "040" "20240209150405"]

(let [p (fn [pattern text] (str (LocalDateTime/parse text (DateTimeFormatter/ofPattern pattern))))]
  [(p "dd/MM/yyyy HH:mm" "31/01/2024 08:05") (p "yyyyMMddHHmm" "202401310805") (p "MMM d, yyyy h:mm a" "Jan 31, 2024 12:05 AM") (p "EEE d MMMM yy H:m:s.SS" "Wed 31 January 24 8:5:9.25")])
;=> ["2024-01-31T08:05" "2024-01-31T08:05" "2024-01-31T00:05" "2024-01-31T08:05:09.250"]

[(str (LocalDate/parse "31-Jan-2024" (DateTimeFormatter/ofPattern "dd-MMM-yyyy"))) (str (LocalDate/parse "2024-02-30" (DateTimeFormatter/ofPattern "yyyy-MM-dd")))]
;=> ["2024-01-31" "2024-02-29"]

[(.format (LocalDate/of 2024 2 9) DateTimeFormatter/BASIC_ISO_DATE) (.format DateTimeFormatter/ISO_LOCAL_DATE_TIME (LocalDateTime/of 2024 2 9 1 2)) (.format (Instant/ofEpochSecond 0) (DateTimeFormatter/ofPattern "yyyy-MM-dd'T'HH:mmX"))]
;=> ["20240209" "2024-02-09T01:02:00" "1970-01-01T00:00Z"]

(LocalDate/parse "Tue 31 Jan 2024" (DateTimeFormatter/ofPattern "EEE d MMM yyyy"))
;! java_domain_error

(LocalDate/parse "2024-01-31x" (DateTimeFormatter/ofPattern "yyyy-MM-dd"))
;! java_domain_error

(.format (LocalDate/of 2024 2 9) (DateTimeFormatter/ofPattern "HH:mm"))
;! java_domain_error

(DateTimeFormatter/ofPattern "YYYY-bb")
;! java_domain_error

(DateTimeFormatter/ofPattern "yyyy 'at")
;! java_domain_error

(json/generate-string {:at (str (LocalDateTime/of 2024 2 9 1 2))})
;=> "{\"at\":\"2024-02-09T01:02\"}"

;; A time moved by so many of a unit.

(let [d (LocalDate/of 2024 1 31) t (LocalDateTime/of 2024 1 31 23 0) i (Instant/parse "2024-01-31T23:00:00Z")]
  [(map str [(.plus d 3 ChronoUnit/DAYS) (.plus d 1 ChronoUnit/WEEKS) (.plus d 1 ChronoUnit/MONTHS) (.minus d 3 ChronoUnit/YEARS)])
   (map str [(.plus t 3 ChronoUnit/HOURS) (.plus t 1 ChronoUnit/MONTHS) (.minus t 1 ChronoUnit/DAYS) (.plus t 5 ChronoUnit/MILLIS)])
   (map str [(.plus i 3 ChronoUnit/DAYS) (.minus i 90 ChronoUnit/MINUTES) (.plus i 1 java.time.temporal.ChronoUnit/SECONDS)])
   (map str [(.plus (Duration/ofDays 1) 1 ChronoUnit/DAYS) (.minus (Duration/ofHours 1) 1 ChronoUnit/SECONDS)])])
;=> [["2024-02-03" "2024-02-07" "2024-02-29" "2021-01-31"] ["2024-02-01T02:00" "2024-02-29T23:00" "2024-01-30T23:00" "2024-01-31T23:00:00.005"] ["2024-02-03T23:00:00Z" "2024-01-31T21:30:00Z" "2024-01-31T23:00:01Z"] ["PT48H" "PT59M59S"]]

(.plus (Instant/ofEpochSecond 0) 1 ChronoUnit/WEEKS)
;! java_domain_error

(.plus (LocalDate/of 2024 1 1) "3" ChronoUnit/DAYS)
;! java_type_error

(.plus (LocalDate/of 2024 1 1) 3 :days)
;! java_type_error

;; A pattern has a most, before it is gone through.

(try (DateTimeFormatter/ofPattern (apply str (repeat 10001 "."))) (catch Exception e (str/includes? (ex-message e) "more than 10000 bytes")))
;=> true

(.format (LocalDate/of 2024 2 9) (DateTimeFormatter/ofPattern (apply str (repeat 10 "."))))
;=> ".........."
