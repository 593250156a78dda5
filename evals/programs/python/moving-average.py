from decimal import Decimal, ROUND_HALF_UP


def rounded(value, digits):
    return float(value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


days = []
closes = []
for price in sorted(data["prices"], key=lambda p: p["day"]):
    if price["close"] is not None:
        close = Decimal(str(price["close"]))
    else:
        close = closes[-1]
    days.append(price["day"])
    closes.append(close)

highest_day = None
highest_mean = None
last_mean = None
above = 0
for i in range(4, len(closes)):
    mean = sum(closes[i - 4:i + 1]) / 5
    last_mean = mean
    if highest_mean is None or mean > highest_mean:
        highest_day, highest_mean = days[i], mean
    if closes[i] > mean:
        above += 1

drop_day = None
biggest_drop = None
for i in range(1, len(closes)):
    drop = closes[i - 1] - closes[i]
    if biggest_drop is None or drop > biggest_drop:
        drop_day, biggest_drop = days[i], drop

result = {
    "last": rounded(last_mean, 3),
    "highest": {"day": highest_day, "mean": rounded(highest_mean, 3)},
    "above": above,
    "biggest_drop": {"day": drop_day, "drop": rounded(biggest_drop, 2)},
}
