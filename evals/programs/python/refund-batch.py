from datetime import date

paid = []
refused = {}
amount = 0


def day(text):
    return date.fromisoformat(text[:10])


def pay(order_id, value, refunded_before):
    """Calls refund until the refund is made, but never makes it twice."""
    while True:
        try:
            refund(order=order_id, amount=value)
            return
        except RuntimeError as error:
            if "gateway timeout" not in str(error):
                raise
        if get_order(order=order_id)["refunded"] > refunded_before:
            return


for claim in data["claims"]:
    try:
        order = get_order(order=claim["order"])
    except RuntimeError:
        refused[claim["id"]] = "unknown"
        continue
    if order["delivered"] is None or (day(claim["date"]) - day(order["delivered"])).days > 30:
        refused[claim["id"]] = "late"
    elif claim["amount"] > order["total"] - order["refunded"]:
        refused[claim["id"]] = "too much"
    else:
        pay(claim["order"], claim["amount"], order["refunded"])
        paid.append(claim["id"])
        amount += claim["amount"]

result = {"paid": paid, "refused": refused, "amount": amount}
