from decimal import Decimal

seen = set()
sums = {}
pages = 0

page = list_orders()
while True:
    pages += 1
    for order in page["items"]:
        if order["id"] in seen:
            continue
        seen.add(order["id"])
        status = order["status"]
        sums[status] = sums.get(status, Decimal("0")) + Decimal(str(order["amount"]))
    if page["next"] is None:
        break
    page = list_orders(cursor=page["next"])

result = {
    "orders": len(seen),
    "by_status": {status: round(float(total), 2) for status, total in sums.items()},
    "pages": pages,
}
