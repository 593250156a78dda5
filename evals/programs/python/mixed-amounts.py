import re
from decimal import Decimal, ROUND_HALF_UP

BODY = r"\$?((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?)"
PLAIN = re.compile("(-?)" + BODY)
PARENTHESES = re.compile(r"\(" + BODY + r"\)")


def parse(amount):
    if isinstance(amount, bool):
        return None
    if isinstance(amount, (int, float)):
        return Decimal(str(amount))
    if not isinstance(amount, str):
        return None
    text = amount.strip()
    match = PLAIN.fullmatch(text)
    if match:
        value = Decimal(match.group(2).replace(",", ""))
        return -value if match.group(1) else value
    match = PARENTHESES.fullmatch(text)
    if match:
        return -Decimal(match.group(1).replace(",", ""))
    return None


total = Decimal(0)
valid = 0
invalid = []
for payment in data["payments"]:
    value = parse(payment.get("amount"))
    if value is None:
        invalid.append(payment["id"])
    else:
        total += value
        valid += 1

result = {
    "sum": float(total.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)),
    "valid": valid,
    "invalid": invalid,
}
