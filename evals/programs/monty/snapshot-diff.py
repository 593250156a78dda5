before = {server["id"]: server for server in data["before"]}
after = {server["id"]: server for server in data["after"]}


def value_of(server, field):
    value = server.get(field)
    if field == "tags" and isinstance(value, list):
        return sorted(set(value))
    return value


changed = []
for server_id in sorted(before.keys()):
    if server_id not in after:
        continue
    old = before[server_id]
    new = after[server_id]
    names = set(old.keys()) | set(new.keys())
    fields = sorted(name for name in names if value_of(old, name) != value_of(new, name))
    if fields:
        changed.append({"id": server_id, "fields": fields})

result = {
    "added": sorted(server_id for server_id in after if server_id not in before),
    "removed": sorted(server_id for server_id in before if server_id not in after),
    "changed": changed,
}
