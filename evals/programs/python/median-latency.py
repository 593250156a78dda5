from statistics import median

times_of = {}
for request in data["requests"]:
    times = times_of.setdefault(request["endpoint"], [])
    if request["ms"] is not None:
        times.append(request["ms"])

rows = []
for endpoint, times in times_of.items():
    times.sort()
    n = len(times)
    rows.append({
        "endpoint": endpoint,
        "count": n,
        "median": median(times) if n else None,
        "p90": times[(9 * n + 9) // 10 - 1] if n else None,
    })

rows.sort(key=lambda row: (
    row["median"] is None,
    -row["median"] if row["median"] is not None else 0,
    row["endpoint"],
))
result = rows
