groups = {}
for contact in data["contacts"]:
    email = contact["email"].strip().lower()
    groups.setdefault(email, []).append(contact)

result = []
for email in sorted(groups.keys()):
    records = sorted(groups[email], key=lambda record: record["updated"], reverse=True)
    merged = {"email": email}
    for field in ["name", "phone", "city"]:
        merged[field] = None
        for record in records:
            value = record.get(field)
            if value is not None and value != "":
                merged[field] = value
                break
    merged["records"] = len(records)
    result.append(merged)
