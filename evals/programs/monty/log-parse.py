import re

levels = {}
slowest = {}
minutes = set()

for line in data["log"]:
    match = re.match(r"^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}):\d{2}Z ([A-Z]+) ([^\s:]+): (.*)$", line)
    if not match:
        continue
    minute = match.group(1)
    level = match.group(2)
    service = match.group(3)
    message = match.group(4)
    levels[level] = levels.get(level, 0) + 1
    if level == "ERROR":
        minutes.add(minute)
    took = re.search(r"\brequest took (\d+)ms\b", message)
    if took:
        duration = int(took.group(1))
        if service not in slowest or duration > slowest[service]:
            slowest[service] = duration

result = {"levels": levels, "slowest": slowest, "minutes": len(minutes)}
