from decimal import Decimal, ROUND_HALF_UP

names = {customer["id"]: customer["name"] for customer in data["customers"]}

totals = {}
counts = {}
for order in data["orders"]:
    customer = order["customer_id"]
    if customer not in names or order.get("refunded"):
        continue
    totals[customer] = totals.get(customer, Decimal(0)) + Decimal(str(order["amount"]))
    counts[customer] = counts.get(customer, 0) + 1

top = sorted(totals, key=lambda c: (-totals[c], c))[:3]
result = [
    {
        "name": names[customer],
        "total": float(totals[customer].quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)),
        "orders": counts[customer],
    }
    for customer in top
]
