"""A program run by the client that openapi-python-client generates."""

import sys

from ptc_lisp_client import Client
from ptc_lisp_client.api.runs import run, submit
from ptc_lisp_client.models import Answer, RunRequest

client = Client(base_url=sys.argv[1])


def answer(request: dict) -> Answer:
    found = run.sync(client=client, body=RunRequest.from_dict(request))
    assert isinstance(found, Answer), found
    return found


done = answer({"program": "(println :seen) (sum data/xs)", "data": {"xs": [1, 2, 3]}, "history": [1]})
assert (done.value, done.prints, done.verdict.value) == (6, [":seen"], "ok") and done.usage.fuel > 0, done
wrong = answer({"program": "(+ 1 nil)"})
assert (wrong.error.reason, wrong.error.line) == ("type_error", 1), wrong
taken = submit.sync(client=client, body=RunRequest.from_dict({"program": "(inc (tool/ask {:n 1}))", "tools": {"ask": {"client": True}}}))
assert taken.run_id, taken
print("python: 3 requests of 3")
