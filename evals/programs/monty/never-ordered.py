ordered = set()
for order in data["orders"]:
    for line in order.get("lines") or []:
        sku = line.get("sku")
        if sku is not None:
            ordered.add(sku.strip().upper())

result = {}
for product in data["catalog"]:
    if product["sku"].strip().upper() not in ordered:
        result.setdefault(product["category"], []).append(product["name"])

for category in result:
    result[category] = sorted(result[category])
