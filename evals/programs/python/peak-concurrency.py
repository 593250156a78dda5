changes_of = {}
for session in data["sessions"]:
    changes = changes_of.setdefault(session["room"], {})
    changes[session["start"]] = changes.get(session["start"], 0) + 1
    changes[session["end"]] = changes.get(session["end"], 0) - 1

result = {}
for room, changes in changes_of.items():
    times = sorted(changes)
    running = 0
    peak = 0
    peak_minute = times[0]
    idle = 0
    previous = times[0]
    for time in times:
        if running == 0:
            idle += time - previous
        running += changes[time]
        if running > peak:
            peak = running
            peak_minute = time
        previous = time
    result[room] = {"peak": peak, "minute": peak_minute, "idle": idle}
