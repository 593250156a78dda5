import csv
import io
from decimal import Decimal, ROUND_HALF_UP

totals = {}
longest = ""
for row in csv.DictReader(io.StringIO(data["csv"], newline="")):
    amount = Decimal(row["price"].strip()) * Decimal(row["qty"].strip())
    category = row["category"]
    totals[category] = totals.get(category, Decimal(0)) + amount
    if len(row["title"]) > len(longest):
        longest = row["title"]

cent = Decimal("0.01")
result = {
    "totals": {
        category: float(total.quantize(cent, rounding=ROUND_HALF_UP))
        for category, total in totals.items()
    },
    "longest": longest,
}
