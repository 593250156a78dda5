neighbours = {}
for road in data["roads"]:
    neighbours.setdefault(road["a"], []).append((road["b"], road["km"]))
    neighbours.setdefault(road["b"], []).append((road["a"], road["km"]))

distance = {"Ash": 0}
previous = {}
done = set()
while True:
    current = None
    for town in distance:
        if town not in done and (current is None or distance[town] < distance[current]):
            current = town
    if current is None:
        break
    done.add(current)
    for other, km in neighbours.get(current, []):
        length = distance[current] + km
        if other not in distance or length < distance[other]:
            distance[other] = length
            previous[other] = current

route = ["Yew"]
while route[-1] != "Ash":
    route.append(previous[route[-1]])
route.reverse()

result = {
    "route": route,
    "km": distance["Yew"],
    "unreachable": sorted(town for town in neighbours if town not in distance),
}
