from datetime import date

days_of = {}
for workout in data["workouts"]:
    days_of.setdefault(workout["who"], set()).add(workout["day"])

result = {}
for who in days_of:
    best = None
    start = None
    previous = None
    length = 0
    for text in sorted(days_of[who]):
        parts = text.split("-")
        current = date(int(parts[0]), int(parts[1]), int(parts[2]))
        if previous is not None and (current - previous).days == 1:
            length += 1
        else:
            start = text
            length = 1
        previous = current
        if best is None or length > best["days"]:
            best = {"start": start, "end": text, "days": length}
    result[who] = best
