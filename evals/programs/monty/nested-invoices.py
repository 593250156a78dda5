from decimal import Decimal

net_of = {}
saved_of = {}
items_of = {}

for invoice in data["invoices"]:
    name = invoice["customer"]["name"]
    if name not in net_of:
        net_of[name] = Decimal("0")
        saved_of[name] = Decimal("0")
        items_of[name] = set()
    for line in invoice["lines"]:
        gross = Decimal(str(line["qty"])) * Decimal(str(line["price"]))
        discount = line.get("discount")
        off = Decimal("0")
        if discount:
            if discount.get("percent") is not None:
                off = gross * Decimal(str(discount["percent"])) / 100
            elif discount.get("fixed") is not None:
                off = min(Decimal(str(discount["fixed"])), gross)
        net_of[name] += gross - off
        saved_of[name] += off
        items_of[name].add(line["item"])

result = {}
for name in net_of:
    result[name] = {
        "net": round(float(net_of[name]), 2),
        "saved": round(float(saved_of[name]), 2),
        "items": sorted(items_of[name]),
    }
