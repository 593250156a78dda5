import re

LINE = re.compile(r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}):\d{2}Z ([A-Z]+) ([^\s:]+): (.+)")
TOOK = re.compile(r"request took (\d+)ms")

levels = {}
slowest = {}
error_minutes = set()
for line in data["log"]:
    match = LINE.fullmatch(line)
    if match is None:
        continue
    minute, level, service, message = match.groups()
    levels[level] = levels.get(level, 0) + 1
    if level == "ERROR":
        error_minutes.add(minute)
    took = TOOK.fullmatch(message.strip())
    if took is not None:
        slowest[service] = max(slowest.get(service, 0), int(took.group(1)))

result = {"levels": levels, "slowest": slowest, "minutes": len(error_minutes)}
