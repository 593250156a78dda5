change = {}
for transaction in data["transactions"]:
    month = transaction["date"][:7]
    sign = 1 if transaction["kind"] == "in" else -1
    change[month] = change.get(month, 0) + sign * transaction["cents"]

balance = data["opening_cents"]
result = []
for number in range(1, 10):
    month = f"2026-{number:02d}"
    balance += change.get(month, 0)
    result.append({"month": month, "balance": round(balance / 100, 2)})
