jobs = [(table, start_export(table=table)["job"]) for table in data["tables"]]

rows = {}
failed = []
restarted = []


def wait_for(job):
    while True:
        status = job_status(job=job)
        if status["state"] in ("done", "failed"):
            return status


for table, job in jobs:
    status = wait_for(job)
    if status["state"] == "failed":
        restarted.append(table)
        status = wait_for(start_export(table=table)["job"])
    if status["state"] == "done":
        rows[table] = status["rows"]
    else:
        failed.append(table)

result = {"rows": rows, "failed": sorted(failed), "restarted": sorted(restarted)}
