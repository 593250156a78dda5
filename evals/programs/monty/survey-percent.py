options = data["options"]
result = {}

for question in data["questions"]:
    counts = {option: 0 for option in options}
    answered = 0
    for answer in data["answers"]:
        choice = answer.get(question)
        if choice in counts:
            counts[choice] += 1
            answered += 1
    if answered == 0:
        result[question] = {"answered": 0, "percent": None}
        continue
    percent = {option: counts[option] * 100 // answered for option in options}
    missing = 100 - sum(percent[option] for option in options)
    order = sorted(
        range(len(options)),
        key=lambda i: (-(counts[options[i]] * 100 % answered), i),
    )
    for i in order[:missing]:
        percent[options[i]] += 1
    result[question] = {"answered": answered, "percent": percent}
