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
    """

    max_seconds: float = 30.0
    first_delay: float = 0.1
    max_delay: float = 5.0

    def delay(self, attempt: int, elapsed: float, retry_after: float | None) -> float | None:
        """Returns after how many seconds to send the request again, after `attempt` attempts in `elapsed` seconds; `None`
        if no longer."""
        delay = min(self.first_delay * 2.0 ** min(attempt - 1, 30), self.max_delay) * random.uniform(0.5, 1.0)
        if retry_after is not None:
            delay = max(delay, retry_after * random.uniform(1.0, 1.1))
        return delay if elapsed + delay <= self.max_seconds else None
