packages = data["packages"]

remaining = {}
for name in packages:
    remaining[name] = set(dep for dep in packages[name] if dep in packages)

order = []
done = set()
while True:
    ready = [name for name in remaining if name not in done and all(dep in done for dep in remaining[name])]
    if not ready:
        break
    nxt = min(ready)
    order.append(nxt)
    done.add(nxt)

blocked = sorted(name for name in packages if name not in done)
result = {"order": order, "blocked": blocked}
