"""A service of a test, and a proxy that loses connections on the way to it."""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import socket
import subprocess
import threading
from typing import Any

from ptc_lisp import _ptcl


def sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class Service:
    """`ptcl serve` on a free port or a Unix socket, with a store that outlives its process."""

    def __init__(self, folder: pathlib.Path, config: str = "", socket: str | None = None) -> None:
        self._folder = folder
        self._socket = socket
        self._config = folder / "service.toml"
        # Machines are busy: the programs of tests have a minute.
        limits = "" if "[limits]" in config else "\n[limits]\ntimeout_ms = 60000\n"
        self._config.write_text(config + limits)
        self._port = 0
        self._lines: list[str] = []
        self.start()

    def begin(self) -> None:
        """Starts the process, without waiting until it listens."""
        program = _ptcl.find()
        assert program is not None, "PTCL names no program"
        address = f"unix:{self._socket}" if self._socket else f"127.0.0.1:{self._port}"
        arguments = ["serve", "--listen", address, "--config", str(self._config)]
        arguments += ["--store", str(self._folder / "ptc.db"), "--isolation", "in-process"]
        environment = {name: os.environ[name] for name in os.environ if not name.startswith("PTCL_")}
        self._process = subprocess.Popen(
            [program, *arguments], stderr=subprocess.PIPE, text=True, env=environment
        )
        self._listens = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(self._process, self._listens), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[str], listens: threading.Event) -> None:
        """Reads what the process logs, up to its end."""
        assert process.stderr is not None
        with process.stderr as log:
            for line in log:
                self._lines.append(line)
                found = re.match(r"listening on (?:http://127\.0\.0\.1:(\d+)|unix:)", line)
                if found:
                    self._port = int(found[1] or 1)
                    listens.set()
        listens.set()

    def start(self) -> None:
        """Starts the process, and waits until it listens."""
        self.begin()
        self.listening()

    def listening(self) -> None:
        """Waits until the process listens."""
        assert self._listens.wait(60), "".join(self._lines)
        assert self._port, "".join(self._lines)

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"unix:{self._socket}" if self._socket else f"http://127.0.0.1:{self._port}"

    def kill(self) -> None:
        """Ends the process as a crash would."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()


class Proxy:
    """Passes bytes on between clients and a service, until told to lose connections."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._responses_to_lose = 0
        self.requests = 0
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def lose_responses(self, number: int) -> None:
        """Passes the next requests on, and breaks their connections instead of passing on the responses."""
        with self._lock:
            self._responses_to_lose = number

    def cut(self) -> None:
        """Breaks all connections."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _close(*pair)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            service = socket.create_connection(("127.0.0.1", self._to))
            with self._lock:
                self._pairs.append((client, service))
                self.connections += 1
            threading.Thread(target=self._pass, args=(client, service, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(service, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_response: bool) -> None:
        try:
            while data := source.recv(65536):
                if is_response:
                    with self._lock:
                        loses, self._responses_to_lose = self._responses_to_lose > 0, max(self._responses_to_lose - 1, 0)
                    if loses:
                        break
                elif re.match(rb"(GET|POST|DELETE) ", data):
                    self.requests += 1
                sink.sendall(data)
        except OSError:
            pass
        _close(source, sink)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: Any) -> None:
        self._listener.close()
        self.cut()


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        one.close()
