cells = {}
month_set = set()
for sale in data["sales"]:
    product = sale["product"]
    month = sale["date"][:7]
    month_set.add(month)
    row = cells.setdefault(product, {})
    row[month] = row.get(month, 0) + sale["units"]

months = sorted(month_set)
rows = []
for product in sorted(cells.keys()):
    values = [cells[product].get(month, 0) for month in months]
    rows.append({"product": product, "cells": values, "total": sum(values)})

totals = [sum(cells[product].get(month, 0) for product in cells) for month in months]
result = {"months": months, "rows": rows, "totals": totals}
