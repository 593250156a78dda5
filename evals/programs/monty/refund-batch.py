from datetime import date


def to_date(text):
    return date(int(text[0:4]), int(text[5:7]), int(text[8:10]))


paid = []
refused = {}
amount = 0

for claim in data["claims"]:
    try:
        order = get_order(order=claim["order"])
    except RuntimeError:
        refused[claim["id"]] = "unknown"
        continue
    if order["delivered"] is None or (to_date(claim["date"]) - to_date(order["delivered"])).days > 30:
        refused[claim["id"]] = "late"
        continue
    if claim["amount"] > order["total"] - order["refunded"]:
        refused[claim["id"]] = "too much"
        continue
    before = order["refunded"]
    made = False
    while not made:
        try:
            refund(order=claim["order"], amount=claim["amount"])
            made = True
        except RuntimeError as error:
            if "gateway timeout" not in str(error):
                raise
            made = get_order(order=claim["order"])["refunded"] > before
    paid.append(claim["id"])
    amount += claim["amount"]

result = {"paid": paid, "refused": refused, "amount": amount}
