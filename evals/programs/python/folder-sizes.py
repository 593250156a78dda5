def extension_of(name):
    position = name.rfind(".")
    return name[position + 1:].lower() if position > 0 else ""


files = 0
total = 0
by_extension = {}
largest = None
largest_size = -1
denied = []

pending = ["/"]
while pending:
    folder = pending.pop()
    try:
        entries = list_folder(path=folder)
    except RuntimeError:
        denied.append(folder)
        continue
    for entry in entries:
        path = folder.rstrip("/") + "/" + entry["name"]
        if entry["kind"] == "folder":
            pending.append(path)
            continue
        size = entry.get("size") or 0
        files += 1
        total += size
        extension = extension_of(entry["name"])
        by_extension[extension] = by_extension.get(extension, 0) + size
        if size > largest_size:
            largest_size = size
            largest = path

result = {
    "files": files,
    "bytes": total,
    "by_extension": by_extension,
    "largest": largest,
    "denied": sorted(denied),
}
