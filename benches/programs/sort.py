from functools import cmp_to_key

def run():
    numbers = []
    x = 42
    for _ in range(300000):
        numbers.append(x)
        x = (x * 16807) % 2147483647
    return sorted(numbers, key=cmp_to_key(lambda a, b: a - b))[150000]

answer = run()
