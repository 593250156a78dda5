def to_minutes(text):
    parts = text.split(":")
    return int(parts[0]) * 60 + int(parts[1])


def two(number):
    return "0" + str(number) if number < 10 else str(number)


def to_text(minutes):
    return two(minutes // 60) + ":" + two(minutes % 60)


day_start = to_minutes("09:00")
day_end = to_minutes("17:30")
attendees = set(data["attendees"])

busy = []
for meeting in data["meetings"]:
    if meeting["who"] in attendees:
        start = max(to_minutes(meeting["from"]), day_start)
        end = min(to_minutes(meeting["to"]), day_end)
        if start < end:
            busy.append((start, end))
busy.sort()
busy.append((day_end, day_end))

result = []
free_from = day_start
for start, end in busy:
    if start - free_from >= 30:
        result.append({"start": to_text(free_from), "end": to_text(start), "minutes": start - free_from})
    free_from = max(free_from, end)
