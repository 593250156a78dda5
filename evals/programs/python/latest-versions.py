def numbers_of(version):
    core = version[1:] if version[:1] in ("v", "V") else version
    numbers = [int(part) for part in core.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


result = {}
best_keys = {}
for release in data["releases"]:
    package = release["package"]
    version = release["version"]
    info = result.setdefault(package, {"stable": None, "versions": 0, "prereleases": 0})
    info["versions"] += 1
    if "-" in version:
        info["prereleases"] += 1
        continue
    key = (numbers_of(version), len(version))
    if package not in best_keys or key > best_keys[package]:
        best_keys[package] = key
        info["stable"] = version
