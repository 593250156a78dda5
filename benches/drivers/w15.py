"""The programs over data sets for CPython, text to text. Each line of standard input asks for runs of one program,
{"program", "file", "runs"}; each line of the answer has their median in microseconds and what the program answers."""

import json
import math
import re
import sys
import time
from collections import Counter, defaultdict


def cents(x):
    return round(100 * x) / 100


def group_by(rows, key):
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def most_first(counts):
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))


def cars_errors(cars):
    return sum(car["Horsepower"] for car in cars)


def sort_set(graph):
    return sorted({link["source"] for link in graph["links"]})


def cars_fields(cars):
    gaps = {key: sum(car.get(key) is None for car in cars) for key in sorted(cars[0])}
    return {key: n for key, n in gaps.items() if n > 0}


def mpg_by_origin(cars):
    groups = group_by(
        (car for car in cars if car["Miles_per_Gallon"] is not None), lambda car: (car["Origin"], car["Cylinders"])
    )
    rows = [
        {"origin": origin, "cylinders": cylinders, "n": len(group),
         "mpg": cents(sum(car["Miles_per_Gallon"] for car in group) / len(group))}
        for (origin, cylinders), group in groups.items()
        if len(group) >= 5
    ]
    return sorted(rows, key=lambda row: -row["mpg"])


def growth(rows):
    gains = []
    for country, years in group_by(rows, lambda row: row["country"]).items():
        years.sort(key=lambda row: row["year"])
        gains.append((country, cents(years[-1]["life_expect"] - years[0]["life_expect"])))
    gains.sort(key=lambda gain: (-gain[1], gain[0]))
    return [{"rank": rank, "country": country, "gain": gain} for rank, (country, gain) in enumerate(gains[:10], 1)]


def degree(graph):
    names = {node["index"]: node["name"] for node in graph["nodes"]}
    neighbours = defaultdict(list)
    for link in graph["links"]:
        source, target, value = link["source"], link["target"], link["value"]
        neighbours[source].append((-value, target))
        neighbours[target].append((-value, source))
    rows = [
        {"name": names[node], "degree": len(edges), "closest": names[min(edges)[1]]}
        for node, edges in neighbours.items()
    ]
    return sorted(rows, key=lambda row: (-row["degree"], row["name"]))[:10]


def title(film):
    return "" if film["Title"] is None else str(film["Title"])


def directors(films):
    rated = (film for film in films if film["Director"] and film["IMDB Rating"] is not None)
    rows = [
        {"director": director, "films": len(group),
         "mean": cents(sum(film["IMDB Rating"] for film in group) / len(group)),
         "best": title(min(group, key=lambda film: (-film["IMDB Rating"], title(film))))}
        for director, group in group_by(rated, lambda film: film["Director"]).items()
        if len(group) >= 5
    ]
    return sorted(rows, key=lambda row: (-row["mean"], row["director"]))[:12]


def json_roundtrip(films):
    keys = ("Title", "US Gross", "Release Date")
    small = [{key: film[key] for key in keys if key in film} for film in films[:40]]
    text = json.dumps(small, separators=(",", ":"), ensure_ascii=False)
    back = json.loads(text)
    gross = sum(film["US Gross"] for film in back if film.get("US Gross") is not None)
    return {"same": small == back, "chars": len(text), "sum": gross}


DATE = re.compile(r"([A-Z][a-z]{2}) \d{1,2} (\d{4})")


def release_months(films):
    dates = (DATE.fullmatch(film["Release Date"]) for film in films)
    return most_first(Counter(date[1] for date in dates if date))


def describe(penguins):
    rows = []
    for species, birds in group_by(penguins, lambda penguin: penguin["Species"]).items():
        sexes = group_by(birds, lambda penguin: penguin["Sex"] if penguin["Sex"] in ("MALE", "FEMALE") else "?")
        for sex, group in sexes.items():
            masses = [penguin["Body Mass (g)"] for penguin in group if penguin["Body Mass (g)"] is not None]
            if masses:
                flippers = (penguin["Flipper Length (mm)"] for penguin in group)
                rows.append({
                    "species": species, "sex": sex, "n": len(group), "mass": round(sum(masses) / len(masses)),
                    "flipper": max(length for length in flippers if length is not None),
                })
    return sorted(rows, key=lambda row: (row["species"], row["sex"]))


def histogram(quakes):
    magnitudes = (feature["properties"]["mag"] for feature in quakes["features"])
    return sorted(Counter(math.floor(2 * mag) / 2 for mag in magnitudes if mag is not None).items())


PLACE = re.compile(r"of (.*)$")


def strongest(quakes):
    events = [feature["properties"] for feature in quakes["features"] if feature["properties"]["mag"] is not None]
    events.sort(key=lambda event: (-event["mag"], event["place"]))
    rows = []
    for event in events[:8]:
        found = PLACE.search(event["place"])
        rows.append({"mag": event["mag"], "where": found[1] if found else event["place"], "ms": event["time"]})
    return rows


def rolling(rows):
    months = sorted(
        (row for row in rows if row["series"] == "Construction"), key=lambda row: (row["year"], row["month"])
    )
    rates = [row["rate"] for row in months]
    return [f"{(rates[i] + rates[i - 1] + rates[i - 2]) / 3:.2f}" for i in range(2, min(30, len(rates)))]


LINE = re.compile(r"^(\S+) (INFO|WARN|ERROR) \[(\w+)\] (.*)$")
USER = re.compile(r"user=(u\d+)")
MS = re.compile(r"(\d+)ms")
REQUEST = re.compile(r"^(GET|POST|PUT) ")
ROUTE = re.compile(r"^(\w+) (/v1/\w+)")


def parse_line(text):
    line = LINE.search(text)
    if not line:
        return None
    at, level, service, message = line.groups()
    user, ms = USER.search(message), MS.search(message)
    return {"at": at, "level": level, "service": service, "message": message,
            "user": user and user[1], "ms": ms and int(ms[1])}


def cause(message):
    if "timeout" in message:
        return "timeout"
    if "TypeError" in message:
        return "bug"
    return "http-500" if " 500 " in message else "network"


def route_row(route, lines):
    times = sorted(line["ms"] for line in lines if line["ms"] is not None)
    return {"route": route, "n": len(lines), "median": times[len(times) // 2], "worst": times[-1]}


def logs(texts):
    lines = [line for line in map(parse_line, texts) if line]
    requests = (line for line in lines if REQUEST.search(line["message"]))
    errors = [line for line in lines if line["level"] == "ERROR"]
    routes = group_by(requests, lambda line: ROUTE.search(line["message"])[0])
    return {
        "lines": len(texts),
        "unreadable": len(texts) - len(lines),
        "levels": Counter(line["level"] for line in lines),
        "errors-by-service": [service for service, _ in most_first(Counter(line["service"] for line in errors))],
        "routes": [route_row(*entry) for entry in sorted(routes.items(), key=lambda entry: entry[0])],
        "users-with-errors": sorted({line["user"] for line in errors if line["user"]}),
        "busiest-hour": most_first(Counter(line["at"][:13] for line in lines))[0][0],
        "causes": Counter(cause(line["message"]) for line in errors),
    }


def order_total(order):
    lines = (item["price"] * item["qty"] * (1 - (item.get("discount") or 0)) for item in order["items"])
    return sum(lines) + (order.get("shipping") or 0)


def country_row(country, orders):
    units = Counter()
    for order in orders:
        for item in order["items"]:
            units[item["sku"]] += item["qty"]
    customers = Counter(order["customer"]["id"] for order in orders)
    return {
        "country": country,
        "orders": len(orders),
        "revenue": cents(sum(map(order_total, orders))),
        "with-coupon": sum(1 for order in orders if order.get("coupon")),
        "best-seller": min(units.items(), key=lambda entry: (-entry[1], entry[0]))[0],
        "repeat-customers": sum(1 for n in customers.values() if n > 1),
    }


def orders(rows):
    counted = [order for order in rows if order["status"] in ("shipped", "paid")]
    countries = group_by(counted, lambda order: order["customer"].get("country") or "unknown")
    largest = sorted(((-order_total(order), order["id"], order) for order in counted), key=lambda row: row[:2])[:3]
    return {
        "orders": len(rows),
        "counted": len(counted),
        "by-status": Counter(order["status"] for order in rows),
        "countries": sorted((country_row(*entry) for entry in countries.items()), key=lambda row: -row["revenue"]),
        "largest": [
            {"id": number, "total": cents(-total), "name": order["customer"]["name"]}
            for total, number, order in largest
        ],
    }


def stock(product):
    return sum(product["stock"].values())


def category_row(path, items):
    return {
        "path": path,
        "n": len(items),
        "units": sum(map(stock, items)),
        "value": round(sum(item["price"] * stock(item) for item in items)),
        "cheapest": min(items, key=lambda item: (item["price"], item["sku"]))["sku"],
    }


def top_rated(live):
    rated = (product for product in live if len(product["ratings"]) >= 8)
    rows = sorted((-sum(p["ratings"]) / len(p["ratings"]), p["sku"], p["name"]) for p in rated)
    return [{"sku": sku, "name": name, "rating": f"{-average:.1f}"} for average, sku, name in rows[:5]]


def products(data):
    by_id = {category["id"]: category for category in data["categories"]}

    def path(product):
        names, category = [], by_id.get(product["category"])
        while category:
            names.insert(0, category["name"])
            category = by_id.get(category["parent"])
        return " / ".join(names) or "unknown"

    live = [product for product in data["products"] if not product.get("discontinued")]
    priced = [product for product in live if product["price"]]
    heavy = (p for p in live if p["specs"].get("wireless") and p["specs"].get("weight_g", 0) > 7000)
    return {
        "products": len(data["products"]),
        "gaps": {
            "no-price": len(live) - len(priced),
            "no-category": sum(1 for product in live if product["category"] not in by_id),
            "no-ratings": sum(1 for product in live if not product["ratings"]),
        },
        "categories": [category_row(*entry) for entry in sorted(group_by(priced, path).items(), key=lambda e: e[0])],
        "top-rated": top_rated(live),
        "spec-keys": Counter(key for product in live for key in product["specs"]),
        "heavy-wireless": sorted(product["sku"] for product in heavy),
        "sold-out": sorted(product["sku"] for product in live if stock(product) == 0),
    }


WEIGHTS = {"low": 1, "normal": 2, "high": 4, "urgent": 8}


def agent_card(agent, tickets):
    rated = [ticket["rating"] for ticket in tickets if ticket.get("rating") is not None]
    open_tickets = [ticket for ticket in tickets if ticket["state"] != "resolved"]
    return {
        "agent": agent,
        "tickets": len(tickets),
        "resolved": len(tickets) - len(open_tickets),
        "load": sum(WEIGHTS[ticket["priority"]] for ticket in open_tickets),
        "minutes": sum(event["minutes"] or 0 for ticket in tickets for event in ticket["events"]),
        "rating": f"{sum(rated) / len(rated):.2f}" if rated else None,
    }


def urgent_waiting(open_tickets):
    rows = []
    for ticket in open_tickets:
        last = ticket["events"][-1] if ticket["events"] else {}
        if ticket["priority"] == "urgent" and last.get("by") != "customer":
            rows.append([ticket["id"], ticket["agent"], last.get("kind")])
    return sorted(rows, key=lambda row: row[0])


def tickets(rows, show):
    open_tickets = [ticket for ticket in rows if ticket["state"] != "resolved"]
    escalated = (ticket for ticket in rows if any(event["kind"] == "escalate" for event in ticket["events"]))
    agents = group_by(rows, lambda ticket: ticket["agent"] or "nobody")
    show(f"open {len(open_tickets)} of {len(rows)}")
    return {
        "open-by-priority": Counter(ticket["priority"] for ticket in open_tickets),
        "agents": sorted((agent_card(*entry) for entry in agents.items()), key=lambda c: (-c["load"], c["agent"])),
        "escalation-tags": most_first(Counter(tag for ticket in escalated for tag in ticket["tags"]))[:3],
        "urgent-waiting": urgent_waiting(open_tickets),
        "untagged": sum(1 for ticket in rows if not ticket["tags"]),
    }


PROGRAMS = {
    "cars-errors": cars_errors,
    "cars-fields": cars_fields,
    "cars-mpg-by-origin": mpg_by_origin,
    "gapminder-growth": growth,
    "logs": logs,
    "miserables-degree": degree,
    "miserables-sort-set": sort_set,
    "movies-directors": directors,
    "movies-json-roundtrip": json_roundtrip,
    "movies-release-months": release_months,
    "orders": orders,
    "penguins-describe": describe,
    "products": products,
    "quakes-histogram": histogram,
    "quakes-strongest": strongest,
    "unemployment-rolling": rolling,
}


def run(name, text):
    try:
        data = json.loads(text)
        printed = []
        value = tickets(data, printed.append) if name == "tickets" else PROGRAMS[name](data)
        answer = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return "".join(line + "\n" for line in printed) + answer
    except TypeError:
        return '{"error":"type_error"}'


def main():
    for line in sys.stdin:
        request = json.loads(line)
        with open(request["file"], encoding="utf-8") as file:
            text = file.read()
        times = []
        for _ in range(request["runs"]):
            start = time.thread_time()
            answer = run(request["program"], text)
            times.append(1e6 * (time.thread_time() - start))
        times.sort()
        print(json.dumps({"micros": times[len(times) // 2], "answer": answer}), flush=True)


main()
