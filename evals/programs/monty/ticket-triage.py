import re

urgency = {"urgent": 0, "high": 1, "normal": 2, "low": 3}


def number_of(ticket_id):
    return int(re.search(r"\d+", ticket_id).group(0))


groups = {}
for ticket in list_tickets(status="open"):
    title = " ".join(ticket["title"].split()).lower()
    groups.setdefault(title, []).append(ticket)

closed = {}
remaining = []
for title in groups:
    tickets = sorted(groups[title], key=lambda ticket: number_of(ticket["id"]))
    keep = tickets[0]["id"]
    rank = min(urgency[ticket["priority"]] for ticket in tickets)
    for ticket in tickets[1:]:
        close_ticket(id=ticket["id"], duplicate_of=keep)
        closed[ticket["id"]] = keep
    remaining.append((rank, number_of(keep), keep))

remaining.sort()
loads = {agent["name"]: agent["load"] for agent in data["agents"]}
capacities = {agent["name"]: agent["capacity"] for agent in data["agents"]}

assigned = {}
unassigned = []
for rank, number, ticket_id in remaining:
    free = [(loads[name], name) for name in loads if loads[name] < capacities[name]]
    if not free:
        unassigned.append(ticket_id)
        continue
    agent = min(free)[1]
    assign_ticket(id=ticket_id, agent=agent)
    loads[agent] += 1
    assigned[ticket_id] = agent

result = {"assigned": assigned, "closed": closed, "unassigned": unassigned}
