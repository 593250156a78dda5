sessions_of = {}
for session in data["sessions"]:
    sessions_of.setdefault(session["room"], []).append((session["start"], session["end"]))

result = {}
for room in sessions_of:
    sessions = sorted(sessions_of[room])
    peak = 0
    minute = None
    idle = 0
    busy_until = sessions[0][0]
    for start, end in sessions:
        running = sum(1 for s, e in sessions if s <= start and start < e)
        if running > peak:
            peak = running
            minute = start
        if start > busy_until:
            idle += start - busy_until
        busy_until = max(busy_until, end)
    result[room] = {"peak": peak, "minute": minute, "idle": idle}
