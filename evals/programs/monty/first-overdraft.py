balances = {}
first = {}

for entry in data["entries"]:
    account = entry["account"]
    balances[account] = balances.get(account, 0) + entry["amount"]
    if balances[account] < 0 and account not in first:
        first[account] = (entry["id"], balances[account])

result = []
for account in sorted(balances.keys()):
    if account in first:
        entry_id, balance = first[account]
        result.append({"account": account, "entry": entry_id, "balance": balance})
    else:
        result.append({"account": account, "entry": None, "balance": balances[account]})
