change = {}
for transaction in data["transactions"]:
    month = transaction["date"][:7]
    cents = transaction["cents"]
    if transaction["kind"] == "out":
        cents = -cents
    change[month] = change.get(month, 0) + cents

balance = data["opening_cents"]
result = []
for number in range(1, 10):
    month = "2026-0" + str(number)
    balance += change.get(month, 0)
    result.append({"month": month, "balance": round(balance / 100, 2)})
