from decimal import Decimal

names = {customer["id"]: customer["name"] for customer in data["customers"]}
totals = {}
counts = {}

for order in data["orders"]:
    customer = order["customer_id"]
    if customer not in names or order.get("refunded"):
        continue
    totals[customer] = totals.get(customer, Decimal("0")) + Decimal(str(order["amount"]))
    counts[customer] = counts.get(customer, 0) + 1

ranked = sorted(totals.keys(), key=lambda customer: (-totals[customer], customer))
result = []
for customer in ranked[:3]:
    result.append({
        "name": names[customer],
        "total": round(float(totals[customer]), 2),
        "orders": counts[customer],
    })
