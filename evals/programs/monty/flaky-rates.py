from decimal import Decimal

rates = {"EUR": 1.0}


def find_rate(currency):
    for attempt in range(4):
        try:
            return get_rate(currency=currency)
        except RuntimeError as error:
            if "temporarily unavailable" not in str(error):
                return None
    return None


total = Decimal("0")
skipped = []
for invoice in data["invoices"]:
    currency = invoice["currency"]
    if currency not in rates:
        rates[currency] = find_rate(currency)
    rate = rates[currency]
    if rate is None:
        skipped.append(invoice["id"])
    else:
        total += Decimal(str(invoice["amount"])) * Decimal(str(rate))

result = {
    "total": round(float(total), 2),
    "skipped": sorted(skipped),
    "no_rate": sorted(currency for currency in rates if rates[currency] is None),
}
