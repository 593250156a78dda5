good = 1
bad = 200
author = None

# Rounding the middle up leaves a call for build 200 if no other build fails.
while bad - good > 1:
    middle = (good + bad + 1) // 2
    status = build_status(build=middle)
    if status["passes"]:
        good = middle
    else:
        bad = middle
        author = status["author"]

if author is None:
    author = build_status(build=bad)["author"]

result = {"first_bad": bad, "author": author}
