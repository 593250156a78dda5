best = {}
for entry in data["scores"]:
    player = entry["player"]
    if player not in best or entry["points"] > best[player]:
        best[player] = entry["points"]

by_points = {}
for player, points in best.items():
    by_points.setdefault(points, []).append(player)

result = []
for rank, points in enumerate(sorted(by_points, reverse=True)[:4], start=1):
    result.append({"rank": rank, "points": points, "players": sorted(by_points[points])})
