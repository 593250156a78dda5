Array.from({ length: 1000000 }, (_, i) => i).map((x) => x * 3).filter((x) => x % 2 === 0).reduce((sum, x) => sum + x, 0)
