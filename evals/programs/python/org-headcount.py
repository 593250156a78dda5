managers = []


def visit(person, depth):
    """Returns the number of persons and the salaries of this subtree."""
    reports = person.get("reports") or []
    total = 0
    cost = person["salary"]
    for report in reports:
        count, salaries = visit(report, depth + 1)
        total += count
        cost += salaries
    if reports:
        managers.append({
            "name": person["name"],
            "depth": depth,
            "direct": len(reports),
            "total": total,
            "cost": cost,
        })
    return total + 1, cost


visit(data["org"], 0)
managers.sort(key=lambda m: (-m["total"], m["name"]))
result = managers
