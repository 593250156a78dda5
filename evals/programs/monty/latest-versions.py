def parse(version):
    text = version
    if text[:1] in ("v", "V"):
        text = text[1:]
    parts = text.split("-", 1)
    numbers = [int(part) for part in parts[0].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers, len(parts) > 1


result = {}
best_keys = {}
for release in data["releases"]:
    package = release["package"]
    version = release["version"]
    if package not in result:
        result[package] = {"stable": None, "versions": 0, "prereleases": 0}
    entry = result[package]
    entry["versions"] += 1
    numbers, labelled = parse(version)
    if labelled:
        entry["prereleases"] += 1
        continue
    key = (tuple(numbers), len(version))
    if package not in best_keys or key > best_keys[package]:
        best_keys[package] = key
        entry["stable"] = version
