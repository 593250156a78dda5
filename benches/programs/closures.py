from functools import reduce

tripled = map(lambda x: x * 3, range(1000000))
answer = reduce(lambda total, x: total + x, filter(lambda x: x % 2 == 0, tripled), 0)
