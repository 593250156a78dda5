"""The tools of the tasks. A world has the state that the tools of one task share; the same calls always have the same results.

A world is a class below, named in WORLDS by the id of its task. Each tool of the task is a method of that name, and takes the arguments by name. It raises
ToolError when the call fails. `state` is what the runner compares with the "state" of the task after the run.
"""

from __future__ import annotations

import copy
import posixpath
import re
from typing import Any


class ToolError(Exception):
    """A call that failed. The program sees the text."""


def mismatch(schema: dict[str, Any], value: Any, where: str) -> str | None:
    """Returns how a value does not fit a schema, or None. Knows the parts of JSON Schema that the tasks use."""
    kinds = {"string": str, "array": list, "object": dict, "boolean": bool, "null": type(None)}
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types

    def is_a(kind: str) -> bool:
        if kind == "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind == "integer":
            return is_a("number") and value == int(value)
        return isinstance(value, kinds[kind])

    if types and not any(is_a(kind) for kind in types):
        return f"{where}: expected {' or '.join(types)}, got {value!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where}: expected one of {', '.join(schema['enum'])}, got {value!r}"
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{where}: {value} is out of range"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{where}: a list of {len(value)} items is too short or too long"
        found = (mismatch(schema.get("items", {}), item, f"{where}[{n}]") for n, item in enumerate(value))
        return next((text for text in found if text), None)
    if isinstance(value, dict) and "properties" in schema:
        for name in schema.get("required", []):
            if name not in value:
                return f"{where}: missing {name}"
        for name, item in value.items():
            if name not in schema["properties"]:
                if schema.get("additionalProperties", True) is False:
                    return f"{where}: unknown argument {name}"
            elif text := mismatch(schema["properties"][name], item, f"{where}.{name}"):
                return text
    return None


class World:
    """The tools of one run of a task: checks arguments, counts calls, and keeps the state."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.tools = {tool["name"]: tool for tool in task.get("tools", [])}
        self.max_calls = task.get("calls")
        self.calls = 0
        for name, value in copy.deepcopy(task.get("hidden", {})).items():
            setattr(self, name, value)
        self.start()

    def start(self) -> None:
        """Sets up what the task's `hidden` does not have."""

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Makes a call. Raises ToolError when it fails."""
        if name not in self.tools:
            raise ToolError(f"unknown tool {name}")
        self.calls += 1
        if self.max_calls is not None and self.calls > self.max_calls:
            raise ToolError(f"too many calls: at most {self.max_calls} are allowed")
        if text := mismatch(self.tools[name]["parameters"], arguments, name):
            raise ToolError(text)
        return copy.deepcopy(getattr(self, name)(**arguments))

    def state(self) -> Any:
        """Returns the state that a right program leaves; None if the tools only read."""
        return None


class Pages(World):
    def start(self) -> None:
        self.read: list[int] = []

    def list_orders(self, cursor: str | None = None) -> Any:
        cursors = [None] + [f"page-{n * 7 + 3}" for n in range(1, len(self.pages))]
        if cursor not in cursors:
            raise ToolError(f"unknown cursor {cursor}")
        number = cursors.index(cursor)
        self.read.append(number)
        return {"items": self.pages[number], "next": (cursors + [None])[number + 1]}

    def state(self) -> Any:
        return {"read": self.read}


class Rates(World):
    def start(self) -> None:
        self.asked: dict[str, int] = {}

    def get_rate(self, currency: str) -> Any:
        self.asked[currency] = self.asked.get(currency, 0) + 1
        if currency not in self.rates:
            raise ToolError("unknown currency")
        if self.asked[currency] <= self.failures[currency]:
            raise ToolError("temporarily unavailable")
        return self.rates[currency]

    def state(self) -> Any:
        return {"asked": self.asked}


class Builds(World):
    def build_status(self, build: int) -> Any:
        return {"build": build, "passes": build < self.first_bad, "author": self.authors[build % len(self.authors)]}


class Accounts(World):
    def start(self) -> None:
        self.carried_out: list[list[Any]] = []

    def transfer(self, from_account: str, to_account: str, amount: int) -> Any:
        if from_account == to_account:
            raise ToolError("same account")
        if from_account not in self.accounts or to_account not in self.accounts:
            raise ToolError("unknown account")
        if self.accounts[from_account] < amount:
            raise ToolError("insufficient funds")
        self.accounts[from_account] -= amount
        self.accounts[to_account] += amount
        self.carried_out.append([from_account, to_account, amount])
        return {"balance": self.accounts[from_account]}

    def get_balance(self, account: str) -> Any:
        if account not in self.accounts:
            raise ToolError("unknown account")
        return self.accounts[account]

    def state(self) -> Any:
        return {"accounts": self.accounts, "carried_out": self.carried_out}


class Users(World):
    def get_users(self, ids: list[str]) -> Any:
        return [user for user in self.users if user["id"] in ids]


class Stock(World):
    def start(self) -> None:
        self.orders: list[dict[str, Any]] = []

    def get_stock(self, sku: str) -> Any:
        if sku not in self.stock:
            raise ToolError("unknown sku")
        in_stock, on_order = self.stock[sku]
        return {"stock": in_stock, "on_order": on_order}

    def place_order(self, sku: str, quantity: int) -> Any:
        if sku not in self.stock:
            raise ToolError("unknown sku")
        if quantity > self.maximum.get(sku, quantity):
            raise ToolError(f"quantity refused: max {self.maximum[sku]} units")
        self.stock[sku][1] += quantity
        self.orders.append({"sku": sku, "quantity": quantity})
        return {"order": len(self.orders)}

    def state(self) -> Any:
        return {"orders": sorted(self.orders, key=lambda order: (order["sku"], order["quantity"]))}


class Tickets(World):
    def start(self) -> None:
        self.duplicates: dict[str, str] = {}
        self.agents: dict[str, str] = {}

    def open(self, id: str) -> None:
        if id not in [ticket["id"] for ticket in self.tickets]:
            raise ToolError(f"unknown ticket {id}")
        if id in self.duplicates:
            raise ToolError(f"ticket {id} is closed")

    def list_tickets(self, status: str) -> Any:
        return [ticket for ticket in self.tickets if (ticket["id"] in self.duplicates) == (status == "closed")]

    def close_ticket(self, id: str, duplicate_of: str) -> Any:
        self.open(id)
        self.open(duplicate_of)
        self.duplicates[id] = duplicate_of
        return {"closed": True}

    def assign_ticket(self, id: str, agent: str) -> Any:
        self.open(id)
        if id in self.agents:
            raise ToolError(f"ticket {id} is already assigned")
        self.agents[id] = agent
        return {"assigned": True}

    def state(self) -> Any:
        return {"duplicates": self.duplicates, "agents": self.agents}


class Folders(World):
    def list_folder(self, path: str) -> Any:
        if path != posixpath.normpath(path) or not re.match(r"/(?!/)", path):
            raise ToolError(f"invalid path {path}: write it as in /a/b")
        if path in self.denied:
            raise ToolError("permission denied")
        folder = self.tree
        for name in path.split("/")[1:] if path != "/" else []:
            folder = folder.get(name) if isinstance(folder, dict) else None
        if not isinstance(folder, dict):
            raise ToolError(f"no such folder: {path}")
        return [{"name": name, "kind": "folder"} if isinstance(entry, dict) else {"name": name, "kind": "file", "size": entry} for name, entry in folder.items()]


class Exports(World):
    def start(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}

    def start_export(self, table: str) -> Any:
        attempts = [job for job in self.jobs.values() if job["table"] == table]
        if table not in self.plan or len(attempts) >= len(self.plan[table]):
            raise ToolError(f"cannot start an export of {table}")
        if any(not job["ended"] for job in attempts):
            raise ToolError(f"an export of {table} is running")
        left, outcome = self.plan[table][len(attempts)]
        job = f"job-{len(self.jobs) + 1}"
        self.jobs[job] = {"table": table, "left": left, "outcome": outcome, "ended": False}
        return {"job": job}

    def job_status(self, job: str) -> Any:
        if job not in self.jobs or self.jobs[job]["ended"]:
            raise ToolError(f"no running job {job}")
        record = self.jobs[job]
        if record["left"] > 0:
            record["left"] -= 1
            return {"state": "running"}
        record["ended"] = True
        return {"state": record["outcome"], **({"rows": self.rows[record["table"]]} if record["outcome"] == "done" else {})}

    def state(self) -> Any:
        ended = {table: [job["outcome"] for job in self.jobs.values() if job["table"] == table and job["ended"]] for table in self.plan}
        return {"ended": ended, "running": sum(not job["ended"] for job in self.jobs.values())}


class Configs(World):
    def start(self) -> None:
        self.writes: dict[str, list[Any]] = {}

    def settings(self, service: str) -> dict[str, Any]:
        if service not in self.configs:
            raise ToolError(f"unknown service {service}")
        return self.configs[service]

    def get_config(self, service: str) -> Any:
        return self.settings(service)

    def write(self, service: str, entry: list[Any]) -> None:
        if self.settings(service).get("locked") is True:
            raise ToolError(f"{service} is locked")
        self.writes.setdefault(service, []).append(entry)

    def set_config(self, service: str, name: str, value: Any) -> Any:
        if f"{service}.{name}" in self.refuses:
            raise ToolError(f"{service} refuses {name}")
        self.write(service, ["set", name, value])
        self.configs[service][name] = value
        return {"ok": True}

    def unset_config(self, service: str, name: str) -> Any:
        if name not in self.settings(service):
            raise ToolError(f"{service} has no setting {name}")
        self.write(service, ["unset", name])
        del self.configs[service][name]
        return {"ok": True}

    def state(self) -> Any:
        return {"configs": self.configs, "writes": self.writes}


class Flights(World):
    def search_flights(self, origin: str, destination: str, day: int) -> Any:
        found = [flight for flight in self.flights if (flight["from"], flight["to"], flight["day"]) == (origin, destination, day)]
        return [{key: flight[key] for key in ("flight", "price", "seats")} for flight in found]


class Refunds(World):
    def start(self) -> None:
        self.made: list[list[Any]] = []

    def record(self, order: str) -> dict[str, Any]:
        if order not in self.orders:
            raise ToolError("unknown order")
        return self.orders[order]

    def get_order(self, order: str) -> Any:
        return {"order": order, **self.record(order)}

    def refund(self, order: str, amount: int) -> Any:
        record = self.record(order)
        if record["refunded"] + amount > record["total"]:
            raise ToolError("the amount is above what is left")
        fate = self.gateway[order].pop(0) if self.gateway.get(order) else "ok"
        if fate != "lost":
            record["refunded"] += amount
            self.made.append([order, amount])
        if fate != "ok":
            raise ToolError("gateway timeout")
        return {"refunded": amount}

    def state(self) -> Any:
        return {"refunded": {order: record["refunded"] for order, record in self.orders.items()}, "made": self.made}


WORLDS: dict[str, type[World]] = {
    "page-orders": Pages,
    "flaky-rates": Rates,
    "first-bad-build": Builds,
    "transfer-queue": Accounts,
    "batch-lookup": Users,
    "restock": Stock,
    "ticket-triage": Tickets,
    "folder-sizes": Folders,
    "export-jobs": Exports,
    "config-rollout": Configs,
    "cheapest-trip": Flights,
    "refund-batch": Refunds,
}
