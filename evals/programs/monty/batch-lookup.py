logins = {}
for event in data["events"]:
    user = event["user"]
    logins[user] = logins.get(user, 0) + 1

ids = list(logins.keys())
country_of = {}
for start in range(0, len(ids), 5):
    batch = ids[start:start + 5]
    for row in get_users(ids=batch):
        country_of[row["id"]] = row["country"]

result = {}
for user in ids:
    country = country_of.get(user, "unknown")
    if country not in result:
        result[country] = {"users": 0, "logins": 0}
    result[country]["users"] += 1
    result[country]["logins"] += logins[user]
