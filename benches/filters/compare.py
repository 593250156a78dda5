"""Compares `ptcl run` with jq and Miller: ten tasks of everyday work (keystrokes, time, memory) and ten mistakes (their messages).

    python3 benches/filters/compare.py [PTCL]             checks that all answers agree, and prints the tables of docs/book/src/comparison.md
    python3 benches/filters/compare.py [PTCL] --errors    prints the messages of the ten mistakes

PTCL is the program, by default target/dist/ptcl. jq, mlr and GNU time must be installed. ROUNDS (3) and LINES (200000) are variables of the environment.
The tools take turns in each round. Time is processor time and wall time of the fastest round, memory the largest of all rounds.
"""

import csv
import io
import json
import os
import random
import subprocess
import sys
import tempfile

ROUNDS = int(os.environ.get("ROUNDS", "3"))
LINES = int(os.environ.get("LINES", "200000"))

# Each task: its name, and the command of each tool; None where a tool does not do it. {} is the tool's program.
TASKS = [
    (
        "two fields of each line",
        {
            "ptcl": "ptcl run --lines -o json -e '(select-keys data/in [:id :total])' orders.ndjson",
            "jq": "jq -c '{id,total}' orders.ndjson",
            "mlr": "mlr --json --ojsonl cut -o -f id,total orders.ndjson",
        },
    ),
    (
        "lines that match",
        {
            "ptcl": "ptcl run --lines --skip-nil -o json -e '(when (> (:total data/in) 190) data/in)' orders.ndjson",
            "jq": "jq -c 'select(.total > 190)' orders.ndjson",
            "mlr": "mlr --ijsonl --ojsonl --no-auto-flatten --no-auto-unflatten filter '$total > 190' orders.ndjson",
        },
    ),
    (
        "change one field",
        {
            "ptcl": "ptcl run --lines -o json -e '(update data/in \"status\" str/upper-case)' orders.ndjson",
            "jq": "jq -c '.status |= ascii_upcase' orders.ndjson",
            "mlr": "mlr --ijsonl --ojsonl --no-auto-flatten --no-auto-unflatten put '$status = toupper($status)' orders.ndjson",
        },
    ),
    (
        "a total of all lines",
        {
            "ptcl": "ptcl run --lines --fold 0 '(+ acc (:qty data/in))' orders.ndjson",
            "jq": "jq -n 'reduce inputs as $o (0; . + $o.qty)' orders.ndjson",
            "mlr": "mlr --ijsonl --ojsonl stats1 -a sum -f qty orders.ndjson",
        },
    ),
    (
        "totals by group",
        {
            "ptcl": "ptcl run -o json -e '(update-vals (group-by :status data/in) #(sum-by :qty %))' orders.ndjson",
            "jq": "jq -sc 'group_by(.status) | map({(.[0].status): map(.qty) | add}) | add' orders.ndjson",
            "mlr": "mlr --ijsonl --ojsonl stats1 -a sum -f qty -g status orders.ndjson",
        },
    ),
    (
        "the ten largest",
        {
            "ptcl": "ptcl run -o ndjson -e '(take 10 (sort-by (juxt (comp - :total) :id) data/in))' orders.ndjson",
            "jq": "jq -sc 'sort_by([-.total, .id]) | .[:10][]' orders.ndjson",
            "mlr": "mlr --ijsonl --ojsonl --no-auto-flatten --no-auto-unflatten sort -nr total -nf id then head -n 10 orders.ndjson",
        },
    ),
    (
        "CSV to JSON",
        {
            "ptcl": "ptcl run --typed -o ndjson -e data/in orders.csv",
            "jq": None,
            "mlr": "mlr --icsv --ojsonl cat orders.csv",
        },
    ),
    (
        "JSON to CSV",
        {
            "ptcl": "ptcl run --csv -e '(map #(select-keys % [:id :status :qty :total]) data/in)' orders.ndjson",
            "jq": "jq -rn '[\"id\",\"status\",\"qty\",\"total\"], (inputs | [.id,.status,.qty,.total]) | @csv' orders.ndjson",
            "mlr": "mlr --ijsonl --ocsv cut -o -f id,status,qty,total orders.ndjson",
        },
    ),
    (
        "sum a CSV by group",
        {
            "ptcl": "ptcl run --typed --csv -e '(->> data/in (group-by :status) (map (fn [[s rows]] {:status s :qty (sum-by :qty rows)})))' orders.csv",
            "jq": None,
            "mlr": "mlr --csv stats1 -a sum -f qty -g status then sort -f status orders.csv",
        },
    ),
    (
        "join two files",
        {
            "ptcl": "ptcl run --data people=people.json --lines --skip-nil -o json -e '(when-let [p (get data/people (:customer data/in))] {:id (:id data/in) :name (:name p)})' orders.ndjson",
            "jq": "jq -c --slurpfile p people.json '$p[0][.customer] as $c | select($c) | {id, name: $c.name}' orders.ndjson",
            "mlr": "mlr --ijsonl --ojsonl join -j customer -f people.ndjson then cut -o -f id,name orders.ndjson",
        },
    ),
]

# Each mistake: its name, and the command of each tool.
MISTAKES = [
    ("JSON that ends too early", "ptcl run -e data/in cut.json", "jq . cut.json", "mlr --json cat cut.json"),
    ("a file that does not exist", "ptcl run -e data/in none.json", "jq . none.json", "mlr --json cat none.json"),
    ("a bad line among good ones", "ptcl run --lines -e '(:id data/in)' bad.ndjson", "jq .id bad.ndjson", "mlr --ijsonl --ojsonl cut -f id bad.ndjson"),
    ("a function that does not exist", "ptcl run -e '(lenght [1])'", "jq -n '[1] | lenght'", "mlr -n put 'end{print lenght([1])}'"),
    ("a bracket too few", "ptcl run -e '(+ 1 (* 2 3)'", "jq -n '(1 + (2 * 3)'", "mlr -n put 'end{print (1 + (2 * 3)}'"),
    ("a text where a number is needed", "ptcl run -e '(+ (:total data/in) 1)' text.json", "jq '.total + 1' text.json", "mlr --json put '$x = $total . 1; $y = $total + 1' text.json"),
    ("a field that is misspelt", "ptcl run -e '(:totl data/in)' text.json", "jq .totl text.json", "mlr --json cut -f totl text.json"),
    ("a value that is no collection", "ptcl run -e '(map inc (:n data/in))' text.json", "jq '.n | map(. + 1)' text.json", "mlr --json put '$x = apply($n, func(e) {return e + 1})' text.json"),
    ("a CSV row with too many cells", "ptcl run -e data/in wide.csv", None, "mlr --icsv --ojson cat wide.csv"),
    ("an option that does not exist", "ptcl run --slrup -e data/in text.json", "jq --slrup . text.json", "mlr --slrup cat text.json"),
]


def write_data():
    """Writes the files into the working directory."""
    rng = random.Random(7)
    names = ["Ada", "Bo", "Chen", "Dara", "Eva"]
    people = {f"C{n:03}": {"name": f"{rng.choice(names)} {n}", "country": rng.choice(["DE", "SE", "US"])} for n in range(0, 500, 2)}
    json.dump(people, open("people.json", "w"))
    with open("people.ndjson", "w") as file:
        for key, person in people.items():
            file.write(json.dumps({"customer": key, **person}) + "\n")
    with open("orders.ndjson", "w") as lines, open("orders.csv", "w", newline="") as table:
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(["id", "status", "qty", "total"])
        for n in range(LINES):
            row = {
                "id": n,
                "customer": f"C{rng.randrange(500):03}",
                "status": rng.choice(["open", "paid", "sent"]),
                "qty": rng.randrange(1, 9),
                "total": rng.randrange(20000) / 100,
                "lines": [{"sku": f"KB-{rng.randrange(99):02}", "qty": 1}],
                "note": f"a note of some length, {n}",
            }
            lines.write(json.dumps(row) + "\n")
            rows.writerow([row["id"], row["status"], row["qty"], row["total"]])
    open("cut.json", "w").write('{"a": 1,\n "b": [1, 2')
    open("bad.ndjson", "w").write('{"id": 1}\n{"id": 2}\n{"id": 3\n{"id": 4}\n')
    open("text.json", "w").write('{"total": "12,50", "n": 5}\n')
    open("wide.csv", "w").write("a,b\n1,2\n3,4,5\n")


def run(command, ptcl):
    """Runs a command; returns its output, messages, status, seconds of wall and processor time, and bytes of memory."""
    shell = command.replace("ptcl run", f"{ptcl} run", 1) if command.startswith("ptcl ") else command
    # A child of this process would be counted with the memory that this process had when it began.
    timed = ["time", "-q", "-o", "usage", "-f", "%e %U %S %M", "sh", "-c", "exec " + shell]
    child = subprocess.run(timed, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wall, user, system, memory = open("usage").read().split()
    return child.stdout, child.stderr, child.returncode, float(wall), float(user) + float(system), int(memory) * 1024


def values(task, tool, text):
    """Returns an output as values that can be compared."""
    if task in ("JSON to CSV", "sum a CSV by group"):
        rows = list(csv.reader(io.StringIO(text)))
        return sorted([cell if cell.isalpha() else float(cell) for cell in row] for row in rows[1:])
    found = [json.loads(line) for line in text.splitlines() if line not in ("[", "]")] if not text.startswith("[\n") else json.loads(text)
    if task == "a total of all lines":
        return [found[0]["qty_sum"] if tool == "mlr" else found[0]]
    if task == "totals by group" and tool == "mlr":
        return [{row["status"]: row["qty_sum"] for row in found}]
    return found


def main():
    ptcl = os.path.abspath(next((a for a in sys.argv[1:] if not a.startswith("-")), "target/dist/ptcl"))
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)
    write_data()
    if "--errors" in sys.argv:
        for name, *commands in MISTAKES:
            print(f"## {name}")
            for tool, command in zip(("ptcl", "jq", "mlr"), commands):
                if command is None:
                    continue
                out, messages, status, *_ = run(command, ptcl)
                print(f"\n$ {command}\n{out[:300]}{messages.rstrip()[:900]}\n({tool} exits with {status})")
            print()
        return
    print(f"{LINES} lines, {os.path.getsize('orders.ndjson') / 1e6:.1f} MB of JSON, {os.path.getsize('orders.csv') / 1e6:.1f} MB of CSV; {ROUNDS} rounds\n")
    print("| task | keystrokes: `ptcl run` | jq | mlr | processor seconds (wall): `ptcl run` | jq | mlr | memory, MB: `ptcl run` | jq | mlr |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, commands in TASKS:
        best = {}
        for _ in range(ROUNDS):
            answers = {}
            for tool, command in commands.items():
                if command is None:
                    continue
                out, messages, status, wall, processor, memory = run(command, ptcl)
                assert status == 0, (command, status, messages)
                answers[tool] = values(name, tool, out)
                old = best.get(tool, (9e9, 9e9, 0))
                best[tool] = (min(old[0], processor), min(old[1], wall), max(old[2], memory))
            for tool, answer in answers.items():
                assert answer == answers["ptcl"], (name, tool, str(answer)[:300], str(answers["ptcl"])[:300])
        tools = ("ptcl", "jq", "mlr")
        # The command without the name of the file, which is the same for all.
        keys = [str(len(commands[tool].rsplit(" ", 1)[0])) if commands[tool] else "-" for tool in tools]
        times = [f"{best[tool][0]:.2f} ({best[tool][1]:.2f})" if tool in best else "-" for tool in tools]
        memory = [f"{best[tool][2] / 1e6:.0f}" if tool in best else "-" for tool in tools]
        print(f"| {name} | {' | '.join(keys + times + memory)} |", flush=True)


if __name__ == "__main__":
    main()
