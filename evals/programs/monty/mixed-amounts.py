import re
from decimal import Decimal

plain = r"(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+)?"
signed_pattern = re.compile(r"(-?)\$?(" + plain + r")")
bracket_pattern = re.compile(r"\(\$?(" + plain + r")\)")


def parse(amount):
    if amount is None or isinstance(amount, bool):
        return None
    if isinstance(amount, (int, float)):
        return Decimal(str(amount))
    if not isinstance(amount, str):
        return None
    text = amount.strip()
    match = signed_pattern.fullmatch(text)
    if match:
        value = Decimal(match.group(2).replace(",", ""))
        return -value if match.group(1) == "-" else value
    match = bracket_pattern.fullmatch(text)
    if match:
        return -Decimal(match.group(1).replace(",", ""))
    return None


total = Decimal("0")
valid = 0
invalid = []
for payment in data["payments"]:
    value = parse(payment.get("amount"))
    if value is None:
        invalid.append(payment["id"])
    else:
        total += value
        valid += 1

result = {"sum": round(float(total), 2), "valid": valid, "invalid": invalid}
