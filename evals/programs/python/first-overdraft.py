states = {}
for entry in data["entries"]:
    account = entry["account"]
    state = states.setdefault(account, {"account": account, "entry": None, "balance": 0})
    if state["entry"] is not None:
        continue
    state["balance"] += entry["amount"]
    if state["balance"] < 0:
        state["entry"] = entry["id"]

result = [states[account] for account in sorted(states)]
