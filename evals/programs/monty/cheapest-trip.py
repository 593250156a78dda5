trips = []
for city in data["cities"]:
    best = None
    for day in [1, 2, 3]:
        outs = [f for f in search_flights(origin="Home", destination=city, day=day) if f["seats"] >= 2]
        if not outs:
            continue
        backs = [f for f in search_flights(origin=city, destination="Home", day=day + 3) if f["seats"] >= 2]
        for o in outs:
            for b in backs:
                key = (o["price"] + b["price"], day, o["flight"], b["flight"])
                if best is None or key < best:
                    best = key
    if best is not None:
        trips.append({"city": city, "out": best[2], "back": best[3], "price": best[0]})

trips.sort(key=lambda t: (t["price"], t["city"]))
result = trips
