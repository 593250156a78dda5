import heapq

roads = {}
for road in data["roads"]:
    roads.setdefault(road["a"], []).append((road["b"], road["km"]))
    roads.setdefault(road["b"], []).append((road["a"], road["km"]))

distance = {"Ash": 0}
previous = {}
done = set()
heap = [(0, "Ash")]
while heap:
    km, town = heapq.heappop(heap)
    if town in done:
        continue
    done.add(town)
    for other, length in roads.get(town, []):
        candidate = km + length
        if other not in distance or candidate < distance[other]:
            distance[other] = candidate
            previous[other] = town
            heapq.heappush(heap, (candidate, other))

route = ["Yew"]
while route[-1] != "Ash":
    route.append(previous[route[-1]])
route.reverse()

result = {
    "route": route,
    "km": distance["Yew"],
    "unreachable": sorted(town for town in roads if town not in distance),
}
