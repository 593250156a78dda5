units = {}
for sale in data["sales"]:
    row = units.setdefault(sale["product"], {})
    month = sale["date"][:7]
    row[month] = row.get(month, 0) + sale["units"]

months = sorted({month for row in units.values() for month in row})

rows = []
for product in sorted(units):
    cells = [units[product].get(month, 0) for month in months]
    rows.append({"product": product, "cells": cells, "total": sum(cells)})

totals = [sum(row["cells"][i] for row in rows) for i in range(len(months))]

result = {"months": months, "rows": rows, "totals": totals}
