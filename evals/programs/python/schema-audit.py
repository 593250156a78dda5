def is_whole(value):
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def is_email(value):
    if not isinstance(value, str) or value.count("@") != 1:
        return False
    local, domain = value.split("@")
    return local != "" and "." in domain[1:-1]


def is_tags(value):
    return isinstance(value, list) and all(isinstance(tag, str) for tag in value)


issues = {}
ok = 0
seen_ids = set()
for number, row in enumerate(data["rows"]):
    found = []

    row_id = row.get("id")
    if not is_whole(row_id) or row_id <= 0:
        found.append("bad id")
    elif row_id in seen_ids:
        found.append("duplicate id")
    else:
        seen_ids.add(row_id)

    if not is_email(row.get("email")):
        found.append("bad email")

    age = row.get("age")
    if age is not None and not (is_whole(age) and 0 <= age <= 130):
        found.append("bad age")

    if not is_tags(row.get("tags")):
        found.append("bad tags")

    for issue in found:
        issues.setdefault(issue, []).append(number)
    if not found:
        ok += 1

result = {"issues": issues, "ok": ok}
