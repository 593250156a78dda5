groups = {}
for contact in data["contacts"]:
    email = contact["email"].strip().lower()
    groups.setdefault(email, []).append(contact)

result = []
for email in sorted(groups):
    records = sorted(groups[email], key=lambda r: r["updated"], reverse=True)
    merged = {"email": email}
    for field in ("name", "phone", "city"):
        merged[field] = next(
            (r[field] for r in records if r.get(field) not in (None, "")),
            None,
        )
    merged["records"] = len(records)
    result.append(merged)
