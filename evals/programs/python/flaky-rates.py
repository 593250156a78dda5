from decimal import Decimal, ROUND_HALF_UP


def fetch_rate(currency):
    for _ in range(4):
        try:
            return Decimal(str(get_rate(currency=currency)))
        except RuntimeError as error:
            if "temporarily unavailable" not in str(error):
                return None
    return None


rates = {"EUR": Decimal(1)}
total = Decimal(0)
skipped = []
for invoice in data["invoices"]:
    currency = invoice["currency"]
    if currency not in rates:
        rates[currency] = fetch_rate(currency)
    rate = rates[currency]
    if rate is None:
        skipped.append(invoice["id"])
    else:
        total += Decimal(str(invoice["amount"])) * rate

result = {
    "total": float(total.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)),
    "skipped": sorted(skipped),
    "no_rate": sorted(currency for currency, rate in rates.items() if rate is None),
}
