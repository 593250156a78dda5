files = 0
total = 0
by_extension = {}
largest = None
largest_size = -1
denied = []

todo = ["/"]
while todo:
    folder = todo.pop()
    try:
        entries = list_folder(path=folder)
    except RuntimeError:
        denied.append(folder)
        continue
    for entry in entries:
        name = entry["name"]
        if folder == "/":
            path = "/" + name
        else:
            path = folder + "/" + name
        if entry["kind"] == "folder":
            todo.append(path)
            continue
        size = entry.get("size", 0)
        files += 1
        total += size
        point = name.rfind(".")
        extension = name[point + 1:].lower() if point > 0 else ""
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
