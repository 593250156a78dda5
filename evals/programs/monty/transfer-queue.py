reasons = ["insufficient funds", "unknown account", "same account"]

done = 0
refused = []
accounts = []

for item in data["transfers"]:
    for account in [item["from"], item["to"]]:
        if account not in accounts:
            accounts.append(account)
    try:
        transfer(from_account=item["from"], to_account=item["to"], amount=item["amount"])
        done += 1
    except RuntimeError as error:
        text = str(error)
        reason = text
        for candidate in reasons:
            if candidate in text:
                reason = candidate
                break
        refused.append({"id": item["id"], "reason": reason})

balances = {}
for account in accounts:
    try:
        balances[account] = get_balance(account=account)
    except RuntimeError:
        pass

result = {"done": done, "refused": refused, "balances": balances}
