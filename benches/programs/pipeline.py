import json

def line_total(line):
    return line["qty"] * line["price"]

def order_total(order):
    return sum(map(line_total, order["items"]))

groups = {}
for order in orders:
    if order["status"] in {"shipped", "paid"}:
        total = order_total(order)
        if total > 20:
            groups.setdefault(order["country"], []).append(total)
rows = [{"country": c, "orders": len(t), "revenue": sum(t), "largest": max(t)} for c, t in groups.items()]
rows.sort(key=lambda row: row["revenue"], reverse=True)
answer = json.dumps(rows)
