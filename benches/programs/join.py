answer = len(",".join([f"item-{i}={i * 7}" for i in range(200000)]))
