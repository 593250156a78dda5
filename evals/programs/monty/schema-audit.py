def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def good_email(value):
    if not isinstance(value, str):
        return False
    parts = value.split("@")
    if len(parts) != 2:
        return False
    return len(parts[0]) > 0 and "." in parts[1][1:-1]


def good_tags(value):
    return isinstance(value, list) and all(isinstance(tag, str) for tag in value)


issues = {}
ok = 0
seen = set()

for number, row in enumerate(data["rows"]):
    found = []

    row_id = row.get("id")
    if not is_whole(row_id) or row_id <= 0:
        found.append("bad id")
    elif row_id in seen:
        found.append("duplicate id")
    else:
        seen.add(row_id)

    if not good_email(row.get("email")):
        found.append("bad email")

    age = row.get("age")
    if age is not None and (not is_whole(age) or age < 0 or age > 130):
        found.append("bad age")

    if not good_tags(row.get("tags")):
        found.append("bad tags")

    for issue in found:
        issues.setdefault(issue, []).append(number)
    if not found:
        ok += 1

result = {"issues": issues, "ok": ok}
