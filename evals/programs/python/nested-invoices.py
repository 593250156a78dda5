from decimal import Decimal, ROUND_HALF_UP


def dec(value):
    return Decimal(str(value))


def money(value):
    return float(value.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


net = {}
saved = {}
items = {}
for invoice in data["invoices"]:
    name = invoice["customer"]["name"]
    net.setdefault(name, Decimal(0))
    saved.setdefault(name, Decimal(0))
    items.setdefault(name, set())
    for line in invoice["lines"]:
        gross = dec(line["qty"]) * dec(line["price"])
        discount = line.get("discount") or {}
        off = Decimal(0)
        if discount.get("percent") is not None:
            off = gross * dec(discount["percent"]) / 100
        elif discount.get("fixed") is not None:
            off = dec(discount["fixed"])
        off = min(off, gross)
        net[name] += gross - off
        saved[name] += off
        items[name].add(line["item"])

result = {
    name: {"net": money(net[name]), "saved": money(saved[name]), "items": sorted(items[name])}
    for name in net
}
