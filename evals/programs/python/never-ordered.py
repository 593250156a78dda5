def normal(sku):
    return sku.strip().lower()


ordered = {normal(line["sku"]) for order in data["orders"] for line in order["lines"]}

result = {}
for product in data["catalog"]:
    if normal(product["sku"]) not in ordered:
        result.setdefault(product["category"], []).append(product["name"])
for names in result.values():
    names.sort()
