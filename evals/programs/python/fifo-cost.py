from collections import deque
from decimal import Decimal, ROUND_HALF_UP


def money(amount):
    return float(amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP))


stock = {}
cost_of_sales = {}
short = {}

for move in data["moves"]:
    item = move["item"]
    if item not in stock:
        stock[item] = deque()
        cost_of_sales[item] = Decimal(0)
        short[item] = 0
    lots = stock[item]
    if move["type"] == "buy":
        lots.append([move["qty"], Decimal(str(move["cost"]))])
    elif move["type"] == "sell":
        need = move["qty"]
        while need > 0 and lots:
            lot = lots[0]
            take = min(need, lot[0])
            cost_of_sales[item] += take * lot[1]
            lot[0] -= take
            need -= take
            if lot[0] == 0:
                lots.popleft()
        short[item] += need

result = {
    item: {
        "cost_of_sales": money(cost_of_sales[item]),
        "left": sum(qty for qty, _ in lots),
        "value": money(sum((qty * cost for qty, cost in lots), Decimal(0))),
        "short": short[item],
    }
    for item, lots in stock.items()
}
