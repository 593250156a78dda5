"""The exceptions of the client. What a program does wrong is none of them: it is in the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._models import Run


class ServiceError(Exception):
    """The service did not do what it was asked for. Base class of the exceptions of the client."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Their arguments have names, which pickling does not keep by itself.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[ServiceError], args: tuple[Any, ...], attributes: dict[str, Any]) -> ServiceError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class UnexpectedAnswer(ServiceError):
    """The service answered what `ptcl serve` does not answer, or more than the client reads. Is the address right?"""

    def __init__(self, why: str, text: str) -> None:
        shown = f"; it begins with {text[:100]!r}" if text else ""
        super().__init__(f"the answer is not one of ptcl serve: {why}{shown}; check the address, and what is between")


class ConnectionLost(ServiceError):
    """The service could not be reached, or the connection broke, and repeating the request did not help."""

    def __init__(self, message: str, *, may_have_happened: bool) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened
        """Whether the request may have reached the service, and may have been carried out."""


class Problem(ServiceError):
    """The service refused a request. The text says what to do; the attributes are the fields of the problem document."""

    def __init__(
        self,
        *,
        status: int,
        title: str,
        detail: str,
        field: str | None = None,
        retry_after: float | None = None,
        attempts: int = 1,
    ) -> None:
        where = f" (field {field})" if field else ""
        again = (
            " An earlier attempt of this request lost its connection: what it conflicts with may be that attempt."
            if status == 409 and attempts > 1
            else ""
        )
        super().__init__(f"{status} {title}: {detail}{where}{again}")
        self.status = status
        """The HTTP status."""
        self.title = title
        """The name of the status."""
        self.detail = detail
        """What is wrong, and a next step."""
        self.field = field
        """The invalid field of the request."""
        self.retry_after = retry_after
        """After how many seconds a request may succeed, if the service says so."""
        self.attempts = attempts
        """How often the request was sent."""


class InvalidRequest(Problem):
    """The request is invalid, too large, or does not fit the call or the limits of the tenant (400, 413, 415, 422)."""


class Unauthorized(Problem):
    """No tenant has the token (401)."""


class Forbidden(Problem):
    """The request needs another token, such as an approver's (403)."""


class NotFound(Problem):
    """The tenant has no such run, call or session (404)."""


class Conflict(Problem):
    """The call is already answered, or a turn is in progress, or there is nothing to undo (409)."""


class Busy(Problem):
    """The rate, the queue or the slots of the tenant are exceeded (429), longer than requests are repeated."""


class Unavailable(Problem):
    """The service shuts down, or its store cannot be used (503)."""


BY_STATUS: dict[int, type[Problem]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: Busy,
    503: Unavailable,
}


class RunStuck(ServiceError):
    """The run cannot continue as the service is configured now. It continues once the configuration is corrected."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"run {run.run_id} is stuck: {run.error}")
        self.run = run
        """The state of the run."""


class StillWaiting(ServiceError):
    """The run was not done within the given time. It goes on: `client.wait(error.run)` waits again."""

    def __init__(self, run: Run) -> None:
        calls = ", ".join(f"{call.name} of {call.tool}" for call in run.calls)
        waits = f"; it waits for its calls {calls}" if calls else ""
        super().__init__(
            f"run {run.run_id} is {run.status}{waits}; wait again with client.wait({run.run_id!r}),"
            f" or end it with client.cancel({run.run_id!r})"
        )
        self.run = run
        """The last known state of the run."""
