from decimal import Decimal

lots = {}
sold = {}
short = {}

for move in data["moves"]:
    item = move["item"]
    if item not in lots:
        lots[item] = []
        sold[item] = Decimal("0")
        short[item] = 0
    qty = move["qty"]
    if move["type"] == "buy":
        lots[item].append([qty, Decimal(str(move["cost"]))])
    elif move["type"] == "sell":
        queue = lots[item]
        while qty > 0 and queue:
            lot = queue[0]
            take = min(qty, lot[0])
            sold[item] += Decimal(str(take)) * lot[1]
            lot[0] -= take
            qty -= take
            if lot[0] == 0:
                queue.pop(0)
        short[item] += qty

result = {}
for item in lots:
    left = 0
    value = Decimal("0")
    for lot in lots[item]:
        left += lot[0]
        value += Decimal(str(lot[0])) * lot[1]
    result[item] = {
        "cost_of_sales": round(float(sold[item]), 2),
        "left": left,
        "value": round(float(value), 2),
        "short": short[item],
    }
