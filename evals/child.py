"""Runs one Python program for the engine `cpython`, in a process of its own: reads it as a line of JSON, and writes calls of tools and the outcome as lines."""

import json
import linecache
import os
import sys
import traceback


def main():
    # The program's own input and output must not disturb the channel.
    replies = os.fdopen(os.dup(0), encoding="utf-8")
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)

    def send(message):
        text = json.dumps(message, allow_nan=False)
        channel.write(text + "\n")
        channel.flush()

    def tool(name, parameters):
        def call(*args, **arguments):
            if len(args) > len(parameters):
                raise TypeError(f"{name} takes at most {len(parameters)} arguments")
            send({"call": name, "arguments": {**dict(zip(parameters, args)), **arguments}})
            reply = json.loads(replies.readline())
            if "error" in reply:
                raise RuntimeError(reply["error"])
            return reply["result"]

        return call

    job = json.loads(replies.readline())
    source = job["program"]
    linecache.cache["program.py"] = (len(source), None, source.splitlines(True), "program.py")
    names = {"__name__": "__main__", "data": job["data"]}
    names.update({name: tool(name, parameters) for name, parameters in job["tools"].items()})
    try:
        exec(compile(source, "program.py", "exec"), names)
    except BaseException as error:
        inner = error.__traceback__.tb_next
        while inner and inner.tb_frame.f_code.co_filename != "program.py":
            inner = inner.tb_next
        send({"error": "".join(traceback.format_exception(type(error), error, inner)).strip()})
        return
    if "result" not in names:
        send({"error": "the program does not set the variable result"})
        return
    try:
        send({"value": names["result"]})
    except (TypeError, ValueError) as error:
        send({"error": f"result is not JSON: {error}"})


main()
