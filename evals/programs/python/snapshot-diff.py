def value_of(server, field):
    value = server.get(field)
    if field == "tags" and isinstance(value, list):
        return sorted(set(value))
    return value


before = {server["id"]: server for server in data["before"]}
after = {server["id"]: server for server in data["after"]}

changed = []
for server_id in sorted(before.keys() & after.keys()):
    old = before[server_id]
    new = after[server_id]
    fields = sorted(
        field for field in old.keys() | new.keys()
        if value_of(old, field) != value_of(new, field)
    )
    if fields:
        changed.append({"id": server_id, "fields": fields})

result = {
    "added": sorted(after.keys() - before.keys()),
    "removed": sorted(before.keys() - after.keys()),
    "changed": changed,
}
