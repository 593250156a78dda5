options = data["options"]

result = {}
for question in data["questions"]:
    choices = [a[question] for a in data["answers"] if a.get(question) is not None]
    answered = len(choices)
    if answered == 0:
        result[question] = {"answered": 0, "percent": None}
        continue
    percent = {}
    cut_off = {}
    for option in options:
        percent[option], cut_off[option] = divmod(100 * choices.count(option), answered)
    missing = 100 - sum(percent.values())
    # sorted is stable: ties stay in the order of the options
    for option in sorted(options, key=lambda o: -cut_off[o])[:missing]:
        percent[option] += 1
    result[question] = {"answered": answered, "percent": percent}
