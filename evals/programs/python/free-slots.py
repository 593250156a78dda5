def to_minutes(text):
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def to_text(minutes):
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


DAY_START = to_minutes("09:00")
DAY_END = to_minutes("17:30")
attendees = set(data["attendees"])

busy = []
for meeting in data["meetings"]:
    if meeting["who"] not in attendees:
        continue
    start = max(to_minutes(meeting["from"]), DAY_START)
    end = min(to_minutes(meeting["to"]), DAY_END)
    if start < end:
        busy.append((start, end))
busy.sort()
busy.append((DAY_END, DAY_END))

result = []
free_from = DAY_START
for start, end in busy:
    if start - free_from >= 30:
        result.append({
            "start": to_text(free_from),
            "end": to_text(start),
            "minutes": start - free_from,
        })
    free_from = max(free_from, end)
