from datetime import date, timedelta

days_of = {}
for workout in data["workouts"]:
    days_of.setdefault(workout["who"], set()).add(date.fromisoformat(workout["day"]))

one_day = timedelta(days=1)
result = {}
for who, days in days_of.items():
    best = None
    start = previous = None
    length = 0
    for day in sorted(days):
        if previous is not None and day - previous == one_day:
            length += 1
        else:
            start = day
            length = 1
        previous = day
        if best is None or length > best["days"]:
            best = {"start": start.isoformat(), "end": day.isoformat(), "days": length}
    result[who] = best
