best = {}
for entry in data["scores"]:
    player = entry["player"]
    points = entry["points"]
    if player not in best or points > best[player]:
        best[player] = points

by_points = {}
for player, points in best.items():
    by_points.setdefault(points, []).append(player)

result = []
rank = 0
for points in sorted(by_points.keys(), reverse=True):
    rank += 1
    if rank > 4:
        break
    result.append({"rank": rank, "points": points, "players": sorted(by_points[points])})
