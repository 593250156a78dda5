rows = []


def visit(person, depth):
    reports = person.get("reports") or []
    total = 0
    cost = person["salary"]
    for report in reports:
        below, below_cost = visit(report, depth + 1)
        total += 1 + below
        cost += below_cost
    if reports:
        rows.append({
            "name": person["name"],
            "depth": depth,
            "direct": len(reports),
            "total": total,
            "cost": cost,
        })
    return total, cost


visit(data["org"], 0)
rows.sort(key=lambda row: (-row["total"], row["name"]))
result = rows
