from decimal import Decimal, ROUND_HALF_UP

orders = {}
pages = 0
cursor = None
while True:
    page = list_orders() if cursor is None else list_orders(cursor=cursor)
    pages += 1
    for order in page["items"]:
        orders.setdefault(order["id"], order)
    cursor = page["next"]
    if cursor is None:
        break

sums = {}
for order in orders.values():
    status = order["status"]
    sums[status] = sums.get(status, Decimal(0)) + Decimal(str(order["amount"]))

result = {
    "orders": len(orders),
    "by_status": {
        status: float(amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))
        for status, amount in sums.items()
    },
    "pages": pages,
}
