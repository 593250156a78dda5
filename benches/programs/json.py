import json

def row(order):
    return {"id": order["id"], "country": order["country"], "qty": sum(line["qty"] for line in order["items"])}

rows = [row(order) for order in json.loads(text)["orders"]]
answer = len(json.dumps({"rows": rows}, separators=(",", ":")))
