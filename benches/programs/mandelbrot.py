def escape(cx, cy):
    x = y = 0.0
    i = 0
    while i < 50 and x * x + y * y <= 4.0:
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        i += 1
    return i

def run():
    total = 0
    for py in range(200):
        for px in range(200):
            total += escape(px / 100.0 - 1.5, py / 100.0 - 1.0)
    return total

answer = run()
