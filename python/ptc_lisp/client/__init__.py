"""Client of `ptcl serve`: runs programs in a service, with the functions of this process as tools.

    from ptc_lisp.client import Client

    with Client("http://127.0.0.1:7117", tools=[price]) as client:
        outcome = client.run("(tool/price {:sku \"KB-01\"})")

`Client` blocks, and `AsyncClient` has the same methods for async code. Both send the same requests: they are made in one
place. Needs httpx: `pip install ptc-lisp[client]`.
"""

try:
    import httpx as _httpx  # noqa: F401
except ImportError:
    raise ImportError("ptc_lisp.client needs httpx; install it with: pip install ptc-lisp[client]") from None

from ._async import AsyncClient, AsyncSession
from ._errors import (
    Busy,
    Conflict,
    ConnectionLost,
    Forbidden,
    InvalidRequest,
    NotFound,
    Problem,
    RunStuck,
    ServiceError,
    StillWaiting,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
)
from ._models import Error, Event, LedgerEntry, OpenCall, Outcome, Position, Run, RunPage, SessionState, Usage, Warning
from ._requests import Options, SessionOptions
from ._retries import Retries
from ._sync import Client, Session
from ._tools import ServiceCall

__all__ = [
    "AsyncClient",
    "AsyncSession",
    "Busy",
    "Client",
    "Conflict",
    "ConnectionLost",
    "Error",
    "Event",
    "Forbidden",
    "InvalidRequest",
    "LedgerEntry",
    "NotFound",
    "OpenCall",
    "Options",
    "Outcome",
    "Position",
    "Problem",
    "Retries",
    "Run",
    "RunPage",
    "RunStuck",
    "ServiceCall",
    "ServiceError",
    "Session",
    "SessionOptions",
    "SessionState",
    "StillWaiting",
    "Unauthorized",
    "Unavailable",
    "Usage",
    "Warning",
]
