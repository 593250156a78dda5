def run():
    keys = {}
    for i in range(200000):
        keys["key-" + str(i)] = i
    return sum(keys["key-" + str(i)] for i in range(200000))

answer = run()
