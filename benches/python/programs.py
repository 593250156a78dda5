"""Sixty programs of data work, in PTC-Lisp and in Python, over the same data. The Python ones stay within what Monty has."""

from __future__ import annotations

from typing import Any

ORDERS: list[dict[str, Any]] = [
    {
        "id": n,
        "customer": f"c{n % 7}",
        "total": n * 1.5,
        "status": "paid" if n % 3 else "open",
        "day": f"2026-0{n % 9 + 1}-1{n % 10}",
        "lines": [{"sku": f"s{n % 5}", "quantity": n % 4 + 1, "price": (n % 5) * 2.5}, {"sku": f"s{(n + 2) % 5}", "quantity": 1, "price": 4.0}],
    }
    for n in range(100)
]
CUSTOMERS: list[dict[str, Any]] = [
    {"id": f"c{n}", "name": f"Name {n}", "country": ["DE", "FR", "IT"][n % 3], "tags": ["a", "b"][: n % 3], "vip": n % 2 == 0}
    for n in range(7)
]
NUMBERS = [(n * 37) % 101 for n in range(200)]
WORDS = "the quick brown fox jumps over the lazy dog and the small cat sleeps under the old tree while the dog runs".split()
LOG = [f"2026-01-0{n % 9 + 1} {['INFO', 'WARN', 'ERROR'][n % 3]} service{n % 4}: took {n * 7 % 90} ms" for n in range(60)]
STOCK: dict[str, Any] = {f"s{n}": {"count": n * 3, "price": n + 0.5} for n in range(5)}
TREE: dict[str, Any] = {"name": "root", "size": 1, "children": [{"name": f"n{n}", "size": n, "children": [{"name": f"n{n}x", "size": 2 * n, "children": []}]} for n in range(6)]}
DATA: dict[str, Any] = {
    "orders": ORDERS, "customers": CUSTOMERS, "numbers": NUMBERS, "words": WORDS, "log": LOG, "stock": STOCK, "tree": TREE,
}

# The data that a program reads, the program in PTC-Lisp, and in Python: statements of which the last one is an expression.
PROGRAMS: list[tuple[str, str, str]] = [
    ("numbers", "(sum data/numbers)", "sum(numbers)"),
    ("numbers", "(count (filter even? data/numbers))", "len([n for n in numbers if n % 2 == 0])"),
    ("numbers", "(apply max data/numbers)", "max(numbers)"),
    ("numbers", "(vec (sort (distinct data/numbers)))", "sorted(set(numbers))"),
    ("numbers", "(mapv #(* % %) (take 20 data/numbers))", "[n * n for n in numbers[:20]]"),
    ("numbers", "(/ (sum data/numbers) 4.0)", "sum(numbers) / 4.0"),
    ("numbers", "(reduce (fn [a n] (+ (* 3 a) n)) 0 (take 30 data/numbers))", "a = 0\nfor n in numbers[:30]:\n    a = 3 * a + n\na"),
    ("numbers", "(mapv vec (partition 2 data/numbers))", "[[numbers[i], numbers[i + 1]] for i in range(0, len(numbers) - 1, 2)]"),
    ("numbers", "(mapv - (rest data/numbers) data/numbers)", "[b - a for a, b in zip(numbers, numbers[1:])]"),
    ("numbers", "(vec (take-while #(< % 90) data/numbers))", "r = []\nfor n in numbers:\n    if n >= 90:\n        break\n    r.append(n)\nr"),
    ("numbers", "(frequencies (map #(str (mod % 5)) data/numbers))", "r = {}\nfor n in numbers:\n    k = str(n % 5)\n    r[k] = r.get(k, 0) + 1\nr"),
    ("numbers", "(vec (reductions + (take 20 data/numbers)))", "r = []\ns = 0\nfor n in numbers[:20]:\n    s += n\n    r.append(s)\nr"),
    ("numbers", "(vec (reverse (sort data/numbers)))", "sorted(numbers, reverse=True)"),
    ("numbers", "(loop [a 0 b 1 n 0] (if (< n 60) (recur b (+ a b) (inc n)) a))", "a, b = 0, 1\nfor n in range(60):\n    a, b = b, a + b\na"),
    ("numbers", "(loop [i 0 s 0] (if (< i 400) (recur (inc i) (if (zero? (mod i 3)) (+ s i) s)) s))", "s = 0\nfor i in range(400):\n    if i % 3 == 0:\n        s += i\ns"),
    ("numbers", "(let [m (/ (sum data/numbers) 200.0)] (sum (map #(* (- % m) (- % m)) data/numbers)))", "m = sum(numbers) / 200.0\nsum([(n - m) * (n - m) for n in numbers])"),
    ("numbers", "(count (for [a (take 20 data/numbers) b (take 20 data/numbers) :when (= 100 (+ a b))] 1))", "len([1 for a in numbers[:20] for b in numbers[:20] if a + b == 100])"),
    ("numbers", "(vec (keep-indexed (fn [i n] (when (> n 95) i)) data/numbers))", "[i for i, n in enumerate(numbers) if n > 95]"),
    ("words", "(frequencies data/words)", "r = {}\nfor w in words:\n    r[w] = r.get(w, 0) + 1\nr"),
    ("words", '(clojure.string/join "-" (map clojure.string/upper-case data/words))', '"-".join([w.upper() for w in words])'),
    ("words", "(mapv count data/words)", "[len(w) for w in words]"),
    ("words", "(vec (sort (set data/words)))", "sorted(set(words))"),
    ("words", "(mapv #(subs % 0 1) data/words)", "[w[0:1] for w in words]"),
    ("words", '(count (filter #(clojure.string/starts-with? % "t") data/words))', 'len([w for w in words if w.startswith("t")])'),
    ("words", '(clojure.string/replace (clojure.string/join " " data/words) "the" "a")', '" ".join(words).replace("the", "a")'),
    ("words", "(group-by #(subs % 0 1) data/words)", "r = {}\nfor w in words:\n    r.setdefault(w[0], []).append(w)\nr"),
    ("words", "(mapv clojure.string/reverse data/words)", "[w[::-1] for w in words]"),
    ("words", "(zipmap data/words (range 100))", "r = {}\ni = 0\nfor w in words:\n    r[w] = i\n    i += 1\nr"),
    ("words", "(apply str (map #(subs % 0 1) data/words))", '"".join([w[0] for w in words])'),
    ("log", '(count (filter #(clojure.string/includes? % "ERROR") data/log))', 'len([l for l in log if "ERROR" in l])'),
    ("log", '(mapv #(nth (clojure.string/split % #" ") 1) data/log)', '[l.split(" ")[1] for l in log]'),
    ("log", '(sum (map #(parse-long (nth (clojure.string/split % #" ") 4)) data/log))', 'sum([int(l.split(" ")[4]) for l in log])'),
    ("log", '(frequencies (map #(nth (clojure.string/split % #" ") 2) data/log))', 'r = {}\nfor l in log:\n    k = l.split(" ")[2]\n    r[k] = r.get(k, 0) + 1\nr'),
    ("log", '(update-vals (group-by #(subs % 0 10) data/log) count)', "r = {}\nfor l in log:\n    r[l[0:10]] = r.get(l[0:10], 0) + 1\nr"),
    ("log", '(vec (take 5 (sort-by #(parse-long (nth (clojure.string/split % #" ") 4)) data/log)))', 'sorted(log, key=lambda l: int(l.split(" ")[4]))[:5]'),
    ("orders", '(sum (map :total (filter #(= "paid" (:status %)) data/orders)))', 'sum([o["total"] for o in orders if o["status"] == "paid"])'),
    ("orders", "(update-vals (group-by :customer data/orders) #(sum (map :total %)))", 'r = {}\nfor o in orders:\n    r[o["customer"]] = r.get(o["customer"], 0) + o["total"]\nr'),
    ("orders", "(mapv :id (take 3 (sort-by :total > data/orders)))", '[o["id"] for o in sorted(orders, key=lambda o: -o["total"])[:3]]'),
    ("orders", "(frequencies (map :status data/orders))", 'r = {}\nfor o in orders:\n    r[o["status"]] = r.get(o["status"], 0) + 1\nr'),
    ("orders", "(sum (for [o data/orders l (:lines o)] (* (:quantity l) (:price l))))", 'sum([l["quantity"] * l["price"] for o in orders for l in o["lines"]])'),
    ("orders", "(vec (distinct (mapcat #(map :sku (:lines %)) data/orders)))", 'r = []\nfor o in orders:\n    for l in o["lines"]:\n        if l["sku"] not in r:\n            r.append(l["sku"])\nr'),
    ("orders", "(mapv #(select-keys % [:id :total]) (take 10 data/orders))", '[{"id": o["id"], "total": o["total"]} for o in orders[:10]]'),
    ("orders", '(mapv #(assoc % :gross (* 1.19 (:total %))) (take 10 data/orders))', 'r = []\nfor o in orders[:10]:\n    c = dict(o)\n    c["gross"] = 1.19 * o["total"]\n    r.append(c)\nr'),
    ("orders", "(let [t (map :total data/orders)] {:min (apply min t) :max (apply max t) :mean (/ (sum t) (count t))})", 't = [o["total"] for o in orders]\n{"min": min(t), "max": max(t), "mean": sum(t) / len(t)}'),
    ("orders", "(into {} (map (fn [o] [(str (:id o)) (:status o)]) data/orders))", '{str(o["id"]): o["status"] for o in orders}'),
    ("orders", "(vec (sort (set (map #(subs (:day %) 0 7) data/orders))))", 'sorted(set([o["day"][0:7] for o in orders]))'),
    ("orders", '(count (filter #(and (> (:total %) 50) (not= "open" (:status %))) data/orders))', 'len([o for o in orders if o["total"] > 50 and o["status"] != "open"])'),
    ("orders", "(reduce (fn [m o] (update m (:customer o) (fnil inc 0))) {} data/orders)", 'r = {}\nfor o in orders:\n    if o["customer"] in r:\n        r[o["customer"]] += 1\n    else:\n        r[o["customer"]] = 1\nr'),
    ("orders", "(:id (first (filter #(> (:total %) 100) data/orders)))", 'r = None\nfor o in orders:\n    if o["total"] > 100:\n        r = o["id"]\n        break\nr'),
    ("orders", '(mapv #(str "#" (:id %) ": " (:status %)) (take 20 data/orders))', '[f"#{o[\'id\']}: {o[\'status\']}" for o in orders[:20]]'),
    ("orders customers", "(let [by (into {} (map (fn [c] [(:id c) (:name c)]) data/customers))] (mapv #(get by (:customer %)) data/orders))", 'by = {c["id"]: c["name"] for c in customers}\n[by[o["customer"]] for o in orders]'),
    ("orders customers", "(let [by (into {} (map (juxt :id :country) data/customers))] (update-vals (group-by #(get by (:customer %)) data/orders) #(sum (map :total %))))", 'by = {c["id"]: c["country"] for c in customers}\nr = {}\nfor o in orders:\n    k = by[o["customer"]]\n    r[k] = r.get(k, 0) + o["total"]\nr'),
    ("orders customers", "(let [vip (set (map :id (filter :vip data/customers)))] (count (filter #(contains? vip (:customer %)) data/orders)))", 'vip = set([c["id"] for c in customers if c["vip"]])\nlen([o for o in orders if o["customer"] in vip])'),
    ("customers", "(mapv :name (sort-by (juxt :country :name) data/customers))", '[c["name"] for c in sorted(customers, key=lambda c: (c["country"], c["name"]))]'),
    ("customers", "(update-vals (group-by :country data/customers) #(mapv :id %))", 'r = {}\nfor c in customers:\n    r.setdefault(c["country"], []).append(c["id"])\nr'),
    ("customers", "(sum (map #(count (:tags %)) data/customers))", 'sum([len(c["tags"]) for c in customers])'),
    ("stock", "(sum (map (fn [[k v]] (* (:count v) (:price v))) data/stock))", 'sum([v["count"] * v["price"] for v in stock.values()])'),
    ("stock", "(vec (sort (map key (filter (fn [[k v]] (> (:count v) 5)) data/stock))))", 'sorted([k for k, v in stock.items() if v["count"] > 5])'),
    ("tree", "(letfn [(size [t] (+ (:size t) (sum (map size (:children t)))))] (size data/tree))", 'def size(t):\n    s = t["size"]\n    for c in t["children"]:\n        s += size(c)\n    return s\nsize(tree)'),
    ("tree", "(mapv :name (mapcat :children (:children data/tree)))", '[g["name"] for c in tree["children"] for g in c["children"]]'),
]
assert len(PROGRAMS) == 60
