from datetime import datetime, timedelta

MINUTE = timedelta(minutes=1)

events_of = {}
for event in data["events"]:
    moment = datetime.fromisoformat(event["at"])
    events_of.setdefault(event["parcel"], []).append((moment, event["type"]))

result = {}
for parcel, events in events_of.items():
    events.sort(key=lambda e: e[0])
    longest = None
    after = None
    for (before, kind), (following, _) in zip(events, events[1:]):
        wait = following - before
        if longest is None or wait > longest:
            longest = wait
            after = kind
    result[parcel] = {
        "first": events[0][1],
        "last": events[-1][1],
        "minutes": (events[-1][0] - events[0][0]) // MINUTE,
        "longest_wait": None if longest is None else {"after": after, "minutes": longest // MINUTE},
    }
