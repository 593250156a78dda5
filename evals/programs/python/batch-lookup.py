events = data["events"]

logins_by_user = {}
for event in events:
    user = event["user"]
    logins_by_user[user] = logins_by_user.get(user, 0) + 1

ids = list(logins_by_user)
country_of = {}
for start in range(0, len(ids), 5):
    for user in get_users(ids=ids[start:start + 5]):
        country_of[user["id"]] = user["country"]

result = {}
for user, count in logins_by_user.items():
    country = country_of.get(user, "unknown")
    entry = result.setdefault(country, {"users": 0, "logins": 0})
    entry["users"] += 1
    entry["logins"] += count
