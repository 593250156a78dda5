times_of = {}
for request in data["requests"]:
    times = times_of.setdefault(request["endpoint"], [])
    if request["ms"] is not None:
        times.append(request["ms"])

known = []
unknown = []
for endpoint in times_of:
    times = sorted(times_of[endpoint])
    n = len(times)
    if n == 0:
        unknown.append({"endpoint": endpoint, "count": 0, "median": None, "p90": None})
        continue
    if n % 2 == 1:
        median = times[n // 2]
    else:
        median = (times[n // 2 - 1] + times[n // 2]) / 2
    position = (9 * n + 9) // 10  # ceil(0.9 * n) in whole numbers
    known.append({"endpoint": endpoint, "count": n, "median": median, "p90": times[position - 1]})

known.sort(key=lambda row: (-row["median"], row["endpoint"]))
unknown.sort(key=lambda row: row["endpoint"])
result = known + unknown
