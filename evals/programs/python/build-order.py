import heapq

packages = data["packages"]

remaining = {}
dependents = {}
for name, deps in packages.items():
    needed = {d for d in deps if d in packages}
    remaining[name] = len(needed)
    for d in needed:
        dependents.setdefault(d, []).append(name)

heap = [name for name, count in remaining.items() if count == 0]
heapq.heapify(heap)
order = []
while heap:
    name = heapq.heappop(heap)
    order.append(name)
    for other in dependents.get(name, []):
        remaining[other] -= 1
        if remaining[other] == 0:
            heapq.heappush(heap, other)

installed = set(order)
blocked = sorted(name for name in packages if name not in installed)
result = {"order": order, "blocked": blocked}
