def cheapest_flight(origin, destination, day):
    flights = search_flights(origin=origin, destination=destination, day=day)
    usable = [(f["price"], f["flight"]) for f in flights if f["seats"] >= 2]
    return min(usable) if usable else None


trips = []
for city in data["cities"]:
    options = []
    for day in (1, 2, 3):
        out = cheapest_flight("Home", city, day)
        if out is None:
            continue
        back = cheapest_flight(city, "Home", day + 3)
        if back is None:
            continue
        options.append((out[0] + back[0], day, out[1], back[1]))
    if options:
        price, day, out_flight, back_flight = min(options)
        trips.append({"city": city, "out": out_flight, "back": back_flight, "price": price})

trips.sort(key=lambda t: (t["price"], t["city"]))
result = trips
