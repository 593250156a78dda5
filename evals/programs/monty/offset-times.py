from datetime import datetime

events_of = {}
for event in data["events"]:
    moment = datetime.fromisoformat(event["at"].replace("Z", "+00:00"))
    events_of.setdefault(event["parcel"], []).append((moment, event["type"]))

result = {}
for parcel in events_of:
    events = sorted(events_of[parcel], key=lambda pair: pair[0])
    longest = None
    longest_seconds = None
    for i in range(1, len(events)):
        seconds = (events[i][0] - events[i - 1][0]).total_seconds()
        if longest_seconds is None or seconds > longest_seconds:
            longest_seconds = seconds
            longest = {"after": events[i - 1][1], "minutes": int(seconds // 60)}
    span = (events[-1][0] - events[0][0]).total_seconds()
    result[parcel] = {
        "first": events[0][1],
        "last": events[-1][1],
        "minutes": int(span // 60),
        "longest_wait": longest,
    }
