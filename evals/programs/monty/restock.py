import re
from decimal import Decimal

ordered = {}
cost = Decimal("0")

for item in data["items"]:
    sku = item["sku"]
    pack = item["pack"]
    stock = get_stock(sku=sku)
    available = stock["stock"] + stock["on_order"]
    if available >= item["minimum"]:
        continue
    needed = item["target"] - available
    if needed <= 0:
        continue
    quantity = (needed + pack - 1) // pack * pack
    try:
        place_order(sku=sku, quantity=quantity)
    except RuntimeError as error:
        match = re.search(r"max (\d+)", str(error))
        if not match:
            raise
        quantity = int(match.group(1)) // pack * pack
        if quantity > 0:
            place_order(sku=sku, quantity=quantity)
    if quantity > 0:
        ordered[sku] = quantity
        cost += Decimal(str(quantity)) * Decimal(str(item["price"]))

result = {"ordered": ordered, "cost": round(float(cost), 2)}
