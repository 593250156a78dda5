import re

RANK = {"urgent": 0, "high": 1, "normal": 2, "low": 3}


def number_of(ticket_id):
    return int(re.search(r"\d+", ticket_id).group())


tickets = sorted(list_tickets(status="open"), key=lambda t: number_of(t["id"]))

closed = {}
kept = {}
for ticket in tickets:
    title = " ".join(ticket["title"].lower().split())
    rank = RANK[ticket["priority"]]
    if title in kept:
        original = kept[title]
        close_ticket(id=ticket["id"], duplicate_of=original["id"])
        closed[ticket["id"]] = original["id"]
        original["rank"] = min(original["rank"], rank)
    else:
        kept[title] = {"id": ticket["id"], "rank": rank}

loads = {agent["name"]: agent["load"] for agent in data["agents"]}
capacity = {agent["name"]: agent["capacity"] for agent in data["agents"]}

assigned = {}
unassigned = []
for ticket in sorted(kept.values(), key=lambda t: (t["rank"], number_of(t["id"]))):
    free = [name for name in loads if loads[name] < capacity[name]]
    if not free:
        unassigned.append(ticket["id"])
        continue
    agent = min(free, key=lambda name: (loads[name], name))
    assign_ticket(id=ticket["id"], agent=agent)
    assigned[ticket["id"]] = agent
    loads[agent] += 1

result = {"assigned": assigned, "closed": closed, "unassigned": unassigned}
