lo = 1      # known to pass
hi = 200    # known to fail
authors = {}

# The middle is rounded up, so that the way to build 200 takes at most 7 calls
# and leaves one call to ask for its author.
while hi - lo > 1:
    mid = (lo + hi + 1) // 2
    status = build_status(build=mid)
    authors[mid] = status["author"]
    if status["passes"]:
        lo = mid
    else:
        hi = mid

if hi not in authors:
    authors[hi] = build_status(build=hi)["author"]

result = {"first_bad": hi, "author": authors[hi]}
