from decimal import Decimal

days = []
closes = []
for row in sorted(data["prices"], key=lambda row: row["day"]):
    if row["close"] is None:
        if not closes:
            continue
        close = closes[-1]
    else:
        close = Decimal(str(row["close"]))
    days.append(row["day"])
    closes.append(close)

last = None
highest_day = None
highest_sum = None
above = 0
for i in range(4, len(closes)):
    window = sum(closes[i - 4:i + 1], Decimal("0"))
    last = window
    if highest_sum is None or window > highest_sum:
        highest_sum = window
        highest_day = days[i]
    if closes[i] * 5 > window:
        above += 1

drop_day = None
drop = Decimal("0")
for i in range(1, len(closes)):
    fall = closes[i - 1] - closes[i]
    if fall > drop:
        drop = fall
        drop_day = days[i]

result = {
    "last": round(float(last / 5), 3),
    "highest": {"day": highest_day, "mean": round(float(highest_sum / 5), 3)},
    "above": above,
    "biggest_drop": {"day": drop_day, "drop": round(float(drop), 2)},
}
