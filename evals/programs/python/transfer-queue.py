REASONS = ("insufficient funds", "unknown account", "same account")

done = 0
refused = []
accounts = {}
for item in data["transfers"]:
    accounts[item["from"]] = True
    accounts[item["to"]] = True
    try:
        transfer(from_account=item["from"], to_account=item["to"], amount=item["amount"])
        done += 1
    except RuntimeError as error:
        text = str(error)
        reason = next((r for r in REASONS if r in text), text)
        refused.append({"id": item["id"], "reason": reason})

balances = {}
for account in accounts:
    try:
        balances[account] = get_balance(account=account)
    except RuntimeError:
        pass

result = {"done": done, "refused": refused, "balances": balances}
