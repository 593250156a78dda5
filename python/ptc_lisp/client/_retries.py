"""How often a request is repeated."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How requests are repeated that the service did not carry out, or that can be repeated without a second effect.

    The first repetition comes after about `first_delay` seconds, each further one after about twice as long, at most
    `max_delay`; the delays vary at random by half. It is not before the time that the service names (`Retry-After`). No request
    is repeated later than `max_seconds` after it was first sent. `Retries(max_seconds=0)` repeats nothing.

    A client that has not reached its service yet, and whose connections are refused, gives up `refused_seconds` after the
    first attempt: the service is likely not to run, or to run elsewhere. Raise it to wait for a service that starts.
    """

    max_seconds: float = 30.0
    refused_seconds: float = 3.0
    first_delay: float = 0.1
    max_delay: float = 5.0

    def delay(
        self, attempt: int, elapsed: float, retry_after: float | None, *, is_refused: bool = False
    ) -> float | None:
        """Returns after how many seconds to send the request again, after `attempt` attempts in `elapsed` seconds; `None`
        if no longer. `is_refused` is whether the connection was refused, and the service never reached."""
        delay = min(self.first_delay * 2.0 ** min(attempt - 1, 30), self.max_delay) * random.uniform(0.5, 1.0)
        if retry_after is not None:
            delay = max(delay, retry_after * random.uniform(1.0, 1.1))
        at_most = min(self.max_seconds, self.refused_seconds) if is_refused else self.max_seconds
        return delay if elapsed + delay <= at_most else None
