counts = {}
cents = {}
for order in data["orders"]:
    if order["status"] != "completed":
        continue
    region = order["region"]
    counts[region] = counts.get(region, 0) + 1
    cents[region] = cents.get(region, 0) + order["quantity"] * order["unit_price"]

result = []
for region in sorted(counts.keys(), key=lambda name: (-cents[name], name)):
    result.append({
        "region": region,
        "orders": counts[region],
        "revenue": round(cents[region] / 100, 2),
    })
