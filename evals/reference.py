"""Computes the answers of the tasks, and the state that their tools end in, from data and `hidden`.

    python3 evals/reference.py --check        compares them with tasks.jsonl
    python3 evals/reference.py --write [ID..]  writes them into tasks.jsonl, for new tasks

The function of a task has its id as its name, with _ for -. It gets the data, and for a task with tools also a function that calls a tool.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import math
import re
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import values
from tools import WORLDS, ToolError

Call = Any


def exact(number: float) -> Fraction:
    """Returns the decimal number that was written, without the error of binary fractions."""
    return Fraction(str(number))


def rounded(number: Fraction, digits: int) -> float:
    """Rounds. Refuses numbers next to the middle, for which engines rightly differ."""
    scaled = Fraction(number) * 10**digits
    if abs(scaled - math.floor(scaled) - Fraction(1, 2)) < Fraction(1, 10**6):
        raise ValueError(f"{float(number)} is next to the middle of two values: change the data of the task")
    return float(Fraction(math.floor(scaled + Fraction(1, 2)), 10**digits))


def grouped(rows: list[Any], key: Any) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return dict(groups)


def revenue_by_region(data: Any) -> Any:
    done = [order for order in data["orders"] if order["status"] == "completed"]
    rows = [(sum(o["quantity"] * o["unit_price"] for o in orders), region, len(orders)) for region, orders in grouped(done, lambda o: o["region"]).items()]
    return [{"region": region, "orders": n, "revenue": rounded(Fraction(cents, 100), 2)} for cents, region, n in sorted(rows, key=lambda row: (-row[0], row[1]))]


def top_customers(data: Any) -> Any:
    names = {customer["id"]: customer["name"] for customer in data["customers"]}
    totals: dict[str, Fraction] = defaultdict(Fraction)
    counts: Counter[str] = Counter()
    for order in data["orders"]:
        if not order.get("refunded", False) and order["customer_id"] in names:
            totals[order["customer_id"]] += exact(order["amount"])
            counts[order["customer_id"]] += 1
    best = sorted(totals, key=lambda id: (-totals[id], id))[:3]
    return [{"name": names[id], "total": rounded(totals[id], 2), "orders": counts[id]} for id in best]


def never_ordered(data: Any) -> Any:
    ordered = {line["sku"].strip().upper() for order in data["orders"] for line in order["lines"]}
    rest = [product for product in data["catalog"] if product["sku"].upper() not in ordered]
    return {category: sorted(p["name"] for p in products) for category, products in grouped(rest, lambda p: p["category"]).items()}


def dense_rank(data: Any) -> Any:
    best = {player: max(s["points"] for s in scores) for player, scores in grouped(data["scores"], lambda s: s["player"]).items()}
    levels = sorted(set(best.values()), reverse=True)[:4]
    return [{"rank": n, "points": level, "players": sorted(p for p in best if best[p] == level)} for n, level in enumerate(levels, 1)]


def log_parse(data: Any) -> Any:
    levels: Counter[str] = Counter()
    slowest: dict[str, int] = {}
    minutes = set()
    for line in data["log"]:
        if not (parts := re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d):\d\dZ ([A-Z]+) (\w+): (.+)", line)):
            continue
        minute, level, service, message = parts.groups()
        levels[level] += 1
        if level == "ERROR":
            minutes.add(minute)
        if took := re.fullmatch(r"request took (\d+)ms", message):
            slowest[service] = max(int(took[1]), slowest.get(service, 0))
    return {"levels": dict(levels), "slowest": slowest, "minutes": len(minutes)}


def csv_text(data: Any) -> Any:
    rows = list(csv.DictReader(io.StringIO(data["csv"])))
    totals = {category: sum(exact(r["price"]) * int(r["qty"]) for r in group) for category, group in grouped(rows, lambda r: r["category"]).items()}
    return {"totals": {category: rounded(total, 2) for category, total in totals.items()}, "longest": only_max([r["title"] for r in rows], len)}


def only_max(items: list[Any], key: Any) -> Any:
    """Returns the greatest item. Refuses several, when the question says that there is one."""
    first, second = sorted(items, key=key, reverse=True)[:2]
    assert key(first) != key(second), (first, second)
    return first


def longest_streak(data: Any) -> Any:
    answer = {}
    for who, rows in grouped(data["workouts"], lambda row: row["who"]).items():
        days = {datetime.date.fromisoformat(row["day"]) for row in rows}
        best = None
        for start in sorted(days):
            length = next(n for n in range(1, len(days) + 1) if start + datetime.timedelta(n) not in days)
            if best is None or length > best[1]:
                best = (start, length)
        answer[who] = {"start": str(best[0]), "end": str(best[0] + datetime.timedelta(best[1] - 1)), "days": best[1]}
    return answer


def month_end_balance(data: Any) -> Any:
    months = [f"2026-{month:02d}" for month in range(1, 10)]
    signed = [(t["date"][:7], t["cents"] if t["kind"] == "in" else -t["cents"]) for t in data["transactions"]]
    return [{"month": m, "balance": rounded(Fraction(data["opening_cents"] + sum(c for at, c in signed if at <= m), 100), 2)} for m in months]


def first_overdraft(data: Any) -> Any:
    answer = []
    for account, entries in sorted(grouped(data["entries"], lambda e: e["account"]).items()):
        balance, found = 0, None
        for entry in entries:
            balance += entry["amount"]
            if balance < 0:
                found = entry["id"]
                break
        answer.append({"account": account, "entry": found, "balance": balance})
    return answer


def amount_of(value: Any) -> Fraction | None:
    if isinstance(value, bool) or value is None:
        return None
    if not isinstance(value, str):
        return exact(value)
    number = r"(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?"
    if found := re.fullmatch(rf"\(\$?({number})\)|(-?)\$?({number})", value.strip()):
        size = Fraction((found[1] or found[3]).replace(",", ""))
        return -size if found[1] or found[2] else size
    return None


def mixed_amounts(data: Any) -> Any:
    amounts = {payment["id"]: amount_of(payment["amount"]) for payment in data["payments"]}
    valid = [amount for amount in amounts.values() if amount is not None]
    return {"sum": rounded(sum(valid, Fraction()), 2), "valid": len(valid), "invalid": [id for id, amount in amounts.items() if amount is None]}


def nested_invoices(data: Any) -> Any:
    answer = {}
    for name, invoices in grouped(data["invoices"], lambda invoice: invoice["customer"]["name"]).items():
        lines = [line for invoice in invoices for line in invoice["lines"]]
        net = saved = Fraction()
        for line in lines:
            gross = line["qty"] * exact(line["price"])
            discount = line.get("discount") or {}
            off = min(gross, gross * discount.get("percent", 0) / 100 + exact(discount.get("fixed", 0)))
            net, saved = net + gross - off, saved + off
        answer[name] = {"net": rounded(net, 2), "saved": rounded(saved, 2), "items": sorted({line["item"] for line in lines})}
    return answer


def org_headcount(data: Any) -> Any:
    rows: list[dict[str, Any]] = []

    def visit(person: Any, depth: int) -> tuple[int, int]:
        below = [visit(report, depth + 1) for report in person.get("reports", [])]
        total, cost = sum(n for n, _ in below), person["salary"] + sum(c for _, c in below)
        if below:
            rows.append({"name": person["name"], "depth": depth, "direct": len(below), "total": total, "cost": cost})
        return total + 1, cost

    visit(data["org"], 0)
    return sorted(rows, key=lambda row: (-row["total"], row["name"]))


def word_frequency(data: Any) -> Any:
    counts = Counter(word for word in re.findall(r"[a-z]+", data["text"].lower()) if len(word) >= 4)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {"top": [{"word": w, "count": counts[w]} for w in ranked[:6]], "distinct": len(counts), "longest": min(counts, key=lambda w: (-len(w), w))}


def snapshot_diff(data: Any) -> Any:
    before, after = ({server["id"]: server for server in data[name]} for name in ("before", "after"))

    def field(server: Any, name: str) -> Any:
        return sorted(set(server.get(name) or [])) if name == "tags" else server.get(name)

    changed = []
    for id in sorted(before.keys() & after.keys()):
        names = [n for n in sorted(before[id].keys() | after[id].keys()) if field(before[id], n) != field(after[id], n)]
        if names:
            changed.append({"id": id, "fields": names})
    return {"added": sorted(after.keys() - before.keys()), "removed": sorted(before.keys() - after.keys()), "changed": changed}


def minute_of(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:])


def clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def free_slots(data: Any) -> Any:
    busy = {m for meeting in data["meetings"] if meeting["who"] in data["attendees"] for m in range(minute_of(meeting["from"]), minute_of(meeting["to"]))}
    slots, start = [], None
    for minute in range(minute_of("09:00"), minute_of("17:30") + 1):
        free = minute not in busy and minute < minute_of("17:30")
        if free and start is None:
            start = minute
        if not free and start is not None:
            if minute - start >= 30:
                slots.append({"start": clock(start), "end": clock(minute), "minutes": minute - start})
            start = None
    return slots


def peak_concurrency(data: Any) -> Any:
    answer = {}
    for room, sessions in grouped(data["sessions"], lambda s: s["room"]).items():
        counts = {m: sum(s["start"] <= m < s["end"] for s in sessions) for m in range(min(s["start"] for s in sessions), max(s["end"] for s in sessions))}
        peak = max(counts.values())
        answer[room] = {"peak": peak, "minute": min(m for m in counts if counts[m] == peak), "idle": sum(n == 0 for n in counts.values())}
    return answer


def shortest_route(data: Any) -> Any:
    near: dict[str, dict[str, int]] = defaultdict(dict)
    for road in data["roads"]:
        near[road["a"]][road["b"]] = near[road["b"]][road["a"]] = road["km"]
    routes: list[tuple[int, list[str]]] = []
    reached = set()

    def walk(route: list[str], km: int) -> None:
        reached.add(route[-1])
        if route[-1] == "Yew":
            routes.append((km, route))
        for town, length in near[route[-1]].items():
            if town not in route:
                walk([*route, town], km + length)

    walk(["Ash"], 0)
    routes.sort()
    assert routes[0][0] < routes[1][0]
    return {"route": routes[0][1], "km": routes[0][0], "unreachable": sorted(near.keys() - reached)}


def build_order(data: Any) -> Any:
    packages, order = data["packages"], []
    while ready := sorted(p for p in packages if p not in order and all(d in order or d not in packages for d in packages[p])):
        order.append(ready[0])
    return {"order": order, "blocked": sorted(packages.keys() - set(order))}


def friend_groups(data: Any) -> Any:
    groups = [{person} for person in data["people"]]
    for a, b in data["links"]:
        joined = set().union(*(group for group in groups if a in group or b in group))
        groups = [group for group in groups if not group & joined] + [joined]
    return sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group[0]))


def pivot_table(data: Any) -> Any:
    cells: Counter[tuple[str, str]] = Counter()
    for sale in data["sales"]:
        cells[sale["product"], sale["date"][:7]] += sale["units"]
    months, products = sorted({m for _, m in cells}), sorted({p for p, _ in cells})
    rows = [{"product": p, "cells": [cells[p, m] for m in months], "total": sum(cells[p, m] for m in months)} for p in products]
    return {"months": months, "rows": rows, "totals": [sum(cells[p, m] for p in products) for m in months]}


def median_latency(data: Any) -> Any:
    known, unknown = [], []
    for endpoint, rows in sorted(grouped(data["requests"], lambda r: r["endpoint"]).items()):
        times = sorted(r["ms"] for r in rows if r["ms"] is not None)
        n = len(times)
        if not n:
            unknown.append({"endpoint": endpoint, "count": 0, "median": None, "p90": None})
            continue
        known.append({"endpoint": endpoint, "count": n, "median": (times[(n - 1) // 2] + times[n // 2]) / 2, "p90": times[-(-9 * n // 10) - 1]})
    return sorted(known, key=lambda row: -row["median"]) + unknown


def merge_contacts(data: Any) -> Any:
    answer = []
    for email, rows in sorted(grouped(data["contacts"], lambda c: c["email"].strip().lower()).items()):
        newest = sorted(rows, key=lambda c: c["updated"], reverse=True)
        fields = {name: next((c[name] for c in newest if c.get(name)), None) for name in ("name", "phone", "city")}
        answer.append({"email": email, **fields, "records": len(rows)})
    return answer


def fifo_cost(data: Any) -> Any:
    answer = {}
    for item, moves in grouped(data["moves"], lambda m: m["item"]).items():
        units: list[Fraction] = []
        sold, short = Fraction(), 0
        for move in moves:
            if move["type"] == "buy":
                units += [exact(move["cost"])] * move["qty"]
            else:
                short += max(0, move["qty"] - len(units))
                sold += sum(units[: move["qty"]])
                del units[: move["qty"]]
        answer[item] = {"cost_of_sales": rounded(sold, 2), "left": len(units), "value": rounded(sum(units, Fraction()), 2), "short": short}
    return answer


def latest_versions(data: Any) -> Any:
    def key(version: str) -> Any:
        numbers = [int(n) for n in version.removeprefix("v").split(".")]
        return numbers + [0] * (9 - len(numbers)), len(version)

    answer = {}
    for package, rows in grouped(data["releases"], lambda r: r["package"]).items():
        stable = [r["version"] for r in rows if "-" not in r["version"]]
        answer[package] = {"stable": max(stable, key=key, default=None), "versions": len(rows), "prereleases": len(rows) - len(stable)}
    return answer


def schema_audit(data: Any) -> Any:
    issues: dict[str, list[int]] = defaultdict(list)
    seen: set[int] = set()
    for number, row in enumerate(data["rows"]):
        id, email, age, tags = (row.get(name) for name in ("id", "email", "age", "tags"))
        if not (type(id) is int and id > 0):
            issues["bad id"].append(number)
        elif id in seen:
            issues["duplicate id"].append(number)
        else:
            seen.add(id)
        if not (isinstance(email, str) and re.fullmatch(r"[^@]+@[^@]+\.[^@]+", email)):
            issues["bad email"].append(number)
        if age is not None and not (type(age) is int and 0 <= age <= 130):
            issues["bad age"].append(number)
        if not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
            issues["bad tags"].append(number)
    return {"issues": dict(issues), "ok": len(data["rows"]) - len({n for numbers in issues.values() for n in numbers})}


def offset_times(data: Any) -> Any:
    answer = {}
    for parcel, events in grouped(data["events"], lambda e: e["parcel"]).items():
        timed = sorted((datetime.datetime.fromisoformat(e["at"]), e["type"]) for e in events)
        waits = [(int((b[0] - a[0]).total_seconds() // 60), a[1]) for a, b in zip(timed, timed[1:])]
        longest = max(waits, key=lambda wait: wait[0], default=None)
        answer[parcel] = {
            "first": timed[0][1],
            "last": timed[-1][1],
            "minutes": sum(minutes for minutes, _ in waits),
            "longest_wait": longest and {"after": longest[1], "minutes": longest[0]},
        }
    return answer


def moving_average(data: Any) -> Any:
    days = sorted(data["prices"], key=lambda row: row["day"])
    closes: list[Fraction] = []
    for row in days:
        closes.append(closes[-1] if row["close"] is None else exact(row["close"]))
    means = {n: sum(closes[n - 4 : n + 1]) / 5 for n in range(4, len(days))}
    top = max(means, key=lambda n: (means[n], -n))
    drop = max(range(1, len(days)), key=lambda n: (closes[n - 1] - closes[n], -n))
    return {
        "last": rounded(means[len(days) - 1], 3),
        "highest": {"day": days[top]["day"], "mean": rounded(means[top], 3)},
        "above": sum(closes[n] > mean for n, mean in means.items()),
        "biggest_drop": {"day": days[drop]["day"], "drop": rounded(closes[drop - 1] - closes[drop], 2)},
    }


def survey_percent(data: Any) -> Any:
    answer = {}
    for question in data["questions"]:
        given = [a[question] for a in data["answers"] if a.get(question) is not None]
        if not given:
            answer[question] = {"answered": 0, "percent": None}
            continue
        shares = {option: Fraction(100 * given.count(option), len(given)) for option in data["options"]}
        percent = {option: math.floor(share) for option, share in shares.items()}
        order = sorted(data["options"], key=lambda option: percent[option] - shares[option])
        for option in order[: 100 - sum(percent.values())]:
            percent[option] += 1
        answer[question] = {"answered": len(given), "percent": percent}
    return answer


def page_orders(data: Any, call: Call) -> Any:
    orders, cursor, pages = {}, None, 0
    while pages == 0 or cursor:
        page = call("list_orders", cursor=cursor)
        pages, cursor = pages + 1, page["next"]
        orders |= {order["id"]: order for order in page["items"]}
    sums = {status: rounded(sum(exact(o["amount"]) for o in rows), 2) for status, rows in grouped(list(orders.values()), lambda o: o["status"]).items()}
    return {"orders": len(orders), "by_status": sums, "pages": pages}


def flaky_rates(data: Any, call: Call) -> Any:
    def rate(currency: str) -> Fraction | None:
        for _ in range(4):
            try:
                return exact(call("get_rate", currency=currency))
            except ToolError as error:
                if str(error) != "temporarily unavailable":
                    break
        return None

    rates = {c: Fraction(1) if c == "EUR" else rate(c) for c in sorted({i["currency"] for i in data["invoices"]})}
    total = sum(i["amount"] * rates[i["currency"]] for i in data["invoices"] if rates[i["currency"]])
    skipped = sorted(i["id"] for i in data["invoices"] if not rates[i["currency"]])
    return {"total": rounded(total, 2), "skipped": skipped, "no_rate": [c for c, r in rates.items() if not r]}


def first_bad_build(data: Any, call: Call) -> Any:
    good, bad, author = 1, 200, None
    while bad - good > 1:
        middle = call("build_status", build=(good + bad) // 2)
        if middle["passes"]:
            good = middle["build"]
        else:
            bad, author = middle["build"], middle["author"]
    return {"first_bad": bad, "author": author}


def transfer_queue(data: Any, call: Call) -> Any:
    refused = []
    for t in data["transfers"]:
        try:
            call("transfer", from_account=t["from"], to_account=t["to"], amount=t["amount"])
        except ToolError as error:
            refused.append({"id": t["id"], "reason": str(error)})
    balances = {}
    for account in sorted({t[side] for t in data["transfers"] for side in ("from", "to")}):
        try:
            balances[account] = call("get_balance", account=account)
        except ToolError:
            continue
    return {"done": len(data["transfers"]) - len(refused), "refused": refused, "balances": balances}


def batch_lookup(data: Any, call: Call) -> Any:
    logins = Counter(event["user"] for event in data["events"])
    ids, country = list(logins), {}
    for at in range(0, len(ids), 5):
        country |= {user["id"]: user["country"] for user in call("get_users", ids=ids[at : at + 5])}
    groups = grouped(ids, lambda id: country.get(id, "unknown"))
    return {name: {"users": len(users), "logins": sum(logins[id] for id in users)} for name, users in groups.items()}


def restock(data: Any, call: Call) -> Any:
    ordered: dict[str, int] = {}
    for item in data["items"]:
        level = call("get_stock", sku=item["sku"])
        have = level["stock"] + level["on_order"]
        if have >= item["minimum"]:
            continue
        quantity = next(q for q in range(item["pack"], 10**6, item["pack"]) if have + q >= item["target"])
        try:
            call("place_order", sku=item["sku"], quantity=quantity)
        except ToolError as error:
            most = int(re.search(r"max (\d+)", str(error))[1])
            quantity = most - most % item["pack"]
            if not quantity:
                continue
            call("place_order", sku=item["sku"], quantity=quantity)
        ordered[item["sku"]] = quantity
    cost = sum(ordered.get(item["sku"], 0) * exact(item["price"]) for item in data["items"])
    return {"ordered": ordered, "cost": rounded(cost, 2)}


def ticket_triage(data: Any, call: Call) -> Any:
    priorities = ["urgent", "high", "normal", "low"]

    def number(ticket: Any) -> int:
        return int(ticket["id"][1:])

    tickets = sorted(call("list_tickets", status="open"), key=number)
    closed, waiting = {}, []
    for same in grouped(tickets, lambda t: " ".join(t["title"].lower().split())).values():
        for other in same[1:]:
            call("close_ticket", id=other["id"], duplicate_of=same[0]["id"])
            closed[other["id"]] = same[0]["id"]
        waiting.append((min(priorities.index(t["priority"]) for t in same), number(same[0]), same[0]["id"]))
    agents = {a["name"]: [a["load"], a["capacity"]] for a in data["agents"]}
    assigned, unassigned = {}, []
    for _, _, id in sorted(waiting):
        free = sorted((load, name) for name, (load, capacity) in agents.items() if load < capacity)
        if not free:
            unassigned.append(id)
            continue
        agents[free[0][1]][0] += 1
        assigned[id] = free[0][1]
        call("assign_ticket", id=id, agent=free[0][1])
    return {"assigned": assigned, "closed": closed, "unassigned": unassigned}


def folder_sizes(data: Any, call: Call) -> Any:
    files: dict[str, int] = {}
    denied, todo = [], [""]
    while todo:
        folder = todo.pop()
        try:
            entries = call("list_folder", path=folder or "/")
        except ToolError:
            denied.append(folder)
            continue
        files |= {f"{folder}/{e['name']}": e["size"] for e in entries if e["kind"] == "file"}
        todo += [f"{folder}/{e['name']}" for e in entries if e["kind"] == "folder"]
    sums: Counter[str] = Counter()
    for path, size in files.items():
        stem, dot, extension = path.split("/")[-1].rpartition(".")
        sums[extension.lower() if dot and stem else ""] += size
    return {"files": len(files), "bytes": sum(files.values()), "by_extension": dict(sums), "largest": only_max(list(files), files.get), "denied": sorted(denied)}


def export_jobs(data: Any, call: Call) -> Any:
    def run(table: str, job: str) -> int | None:
        while (status := call("job_status", job=job))["state"] == "running":
            pass
        return status.get("rows")

    jobs = {table: call("start_export", table=table)["job"] for table in data["tables"]}
    rows = {table: run(table, job) for table, job in jobs.items()}
    restarted = [table for table in data["tables"] if rows[table] is None]
    for table in restarted:
        rows[table] = run(table, call("start_export", table=table)["job"])
    return {"rows": {t: n for t, n in rows.items() if n is not None}, "failed": sorted(t for t in rows if rows[t] is None), "restarted": sorted(restarted)}


def config_rollout(data: Any, call: Call) -> Any:
    changed, locked, rolled_back = {}, [], []
    for service in data["services"]:
        had = call("get_config", service=service)
        if had.get("locked") is True:
            locked.append(service)
            continue
        done: list[str] = []
        try:
            for name, value in sorted(data["wanted"].items()):
                if name not in had or had[name] != value:
                    call("set_config", service=service, name=name, value=value)
                    done.append(name)
        except ToolError:
            for name in reversed(done):
                if name in had:
                    call("set_config", service=service, name=name, value=had[name])
                else:
                    call("unset_config", service=service, name=name)
            rolled_back.append(service)
            continue
        if done:
            changed[service] = done
    return {"changed": changed, "locked": locked, "rolled_back": rolled_back}


def cheapest_trip(data: Any, call: Call) -> Any:
    trips = []
    for city in data["cities"]:
        found = []
        for day in (1, 2, 3):
            out, back = (call("search_flights", origin=a, destination=b, day=d) for a, b, d in (("Home", city, day), (city, "Home", day + 3)))
            found += [(x["price"] + y["price"], day, x["flight"], y["flight"]) for x in out for y in back if min(x["seats"], y["seats"]) >= 2]
        if found:
            price, _, out, back = min(found)
            trips.append({"city": city, "out": out, "back": back, "price": price})
    return sorted(trips, key=lambda trip: (trip["price"], trip["city"]))


def refund_batch(data: Any, call: Call) -> Any:
    paid, refused, amount = [], {}, 0
    for claim in data["claims"]:
        try:
            order = call("get_order", order=claim["order"])
        except ToolError:
            refused[claim["id"]] = "unknown"
            continue
        delivered = order["delivered"] and datetime.date.fromisoformat(order["delivered"])
        if not delivered or (datetime.date.fromisoformat(claim["date"]) - delivered).days > 30:
            refused[claim["id"]] = "late"
        elif claim["amount"] > order["total"] - order["refunded"]:
            refused[claim["id"]] = "too much"
        else:
            made = False
            while not made:
                try:
                    made = bool(call("refund", order=claim["order"], amount=claim["amount"]))
                except ToolError:
                    made = call("get_order", order=claim["order"])["refunded"] > order["refunded"]
            paid.append(claim["id"])
            amount += claim["amount"]
    return {"paid": paid, "refused": refused, "amount": amount}


def solve(task: dict[str, Any]) -> dict[str, Any]:
    """Returns the answer of a task, and with tools the state in which they end."""
    function = globals()[task["id"].replace("-", "_")]
    if not task.get("tools"):
        return {"answer": function(task["data"])}
    world = WORLDS[task["id"]](task)
    answer = function(task["data"], lambda name, /, **arguments: world.call(name, arguments))
    state = world.state()
    return {"answer": answer} if state is None else {"answer": answer, "state": state}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="tasks; all if none is given")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true", help="compare with tasks.jsonl")
    mode.add_argument("--write", action="store_true", help="write answers into tasks.jsonl")
    options = parser.parse_args()
    tasks = values.load()
    chosen = values.select(tasks, options.ids)
    different = 0
    for task in chosen:
        expected = json.loads(json.dumps(solve(task)))
        if options.write:
            task.update(expected)
            continue
        for part in ("answer", "state"):
            if text := values.difference(expected.get(part), task.get(part), part):
                different += 1
                print(f"{task['id']}: {text}")
    if options.write:
        values.save(tasks)
    else:
        print(f"{len(chosen) - different} of {len(chosen)} agree")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
