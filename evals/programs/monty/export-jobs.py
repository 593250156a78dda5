tables = data["tables"]

jobs = []
for table in tables:
    jobs.append((table, start_export(table=table)["job"]))

rows = {}
failed = []
restarted = []

for table, job in jobs:
    attempt = 1
    while True:
        status = job_status(job=job)
        if status["state"] == "done":
            rows[table] = status["rows"]
            break
        if status["state"] == "failed":
            if attempt == 1:
                attempt = 2
                restarted.append(table)
                job = start_export(table=table)["job"]
            else:
                failed.append(table)
                break

result = {"rows": rows, "failed": sorted(failed), "restarted": sorted(restarted)}
