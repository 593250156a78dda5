def run():
    i = total = 0
    while i < 5000000:
        total += i
        i += 1
    return total

answer = run()
