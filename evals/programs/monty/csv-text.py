import csv
from decimal import Decimal

lines = [line for line in data["csv"].splitlines() if line]
totals = {}
longest = ""
for row in csv.DictReader(lines):
    category = row["category"]
    amount = Decimal(row["price"].strip()) * Decimal(row["qty"].strip())
    totals[category] = totals.get(category, Decimal("0")) + amount
    if len(row["title"]) > len(longest):
        longest = row["title"]

result = {
    "totals": {category: round(float(total), 2) for category, total in totals.items()},
    "longest": longest,
}
