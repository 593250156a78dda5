neighbours = {}
for person in data["people"]:
    neighbours.setdefault(person, set())
for a, b in data["links"]:
    neighbours.setdefault(a, set()).add(b)
    neighbours.setdefault(b, set()).add(a)

seen = set()
groups = []
for person in neighbours:
    if person in seen:
        continue
    seen.add(person)
    group = []
    todo = [person]
    while todo:
        current = todo.pop()
        group.append(current)
        for other in neighbours[current]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    groups.append(sorted(group))

groups.sort(key=lambda group: (-len(group), group[0]))
result = groups
