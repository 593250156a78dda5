import re
from decimal import Decimal, ROUND_HALF_UP

ordered = {}
cost = Decimal(0)

for item in data["items"]:
    sku = item["sku"]
    pack = item["pack"]
    stock = get_stock(sku=sku)
    available = stock["stock"] + stock["on_order"]
    if available >= item["minimum"]:
        continue
    quantity = -(-(item["target"] - available) // pack) * pack
    if quantity <= 0:
        continue
    try:
        place_order(sku=sku, quantity=quantity)
    except RuntimeError as error:
        match = re.search(r"max (\d+)", str(error))
        if match is None:
            raise
        quantity = int(match.group(1)) // pack * pack
        if quantity <= 0:
            continue
        place_order(sku=sku, quantity=quantity)
    ordered[sku] = quantity
    cost += quantity * Decimal(str(item["price"]))

result = {
    "ordered": ordered,
    "cost": float(cost.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)),
}
