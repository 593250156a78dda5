neighbors = {person: [] for person in data["people"]}
for a, b in data["links"]:
    neighbors.setdefault(a, []).append(b)
    neighbors.setdefault(b, []).append(a)

seen = set()
groups = []
for person in neighbors:
    if person in seen:
        continue
    seen.add(person)
    group = []
    pending = [person]
    while pending:
        current = pending.pop()
        group.append(current)
        for other in neighbors[current]:
            if other not in seen:
                seen.add(other)
                pending.append(other)
    groups.append(sorted(group))

groups.sort(key=lambda group: (-len(group), group[0]))
result = groups
