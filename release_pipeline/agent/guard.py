"""Which requests of a browser are answered. The agent has no login: that a page of another origin, or a name that was rebound,
gets nothing hangs on these rules.

Browsers say where a request comes from in `Sec-Fetch-Site`, and what it is for in `Sec-Fetch-Mode` and `Sec-Fetch-Dest`; pages
can change none of these, nor `Origin` and `Host`. Of browsers that are too old for the first three the others are enough.
"""

from __future__ import annotations

from email.message import Message

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.sentences import AGENT

DOCUMENT, FRAME = "document", "iframe"
FORM = "application/x-www-form-urlencoded"
_OWN = ("same-origin", "none")  # the agent's own page, or the person, who typed or reloaded it


class Refused(ReleasePipelineError):
    """A request that the agent's own pages never send."""


def check_host(headers: Message, host: str) -> None:
    """The request was sent to this address by its number: a name that was rebound to this machine is another one."""
    if headers.get_all("host", []) != [host]:
        raise Refused(AGENT("error.address", address=f"http://{host}/"))


def check_look(headers: Message, *, frame: bool = False) -> None:
    """Somebody navigates to a page, from wherever; nothing loads it as a part of something else. What may stand in a `frame`
    stands in one of the agent's own."""
    mode, made_for, site = (_read(headers, name) for name in ("sec-fetch-mode", "sec-fetch-dest", "sec-fetch-site"))
    if mode not in ("", "navigate") or made_for not in ("", DOCUMENT, *((FRAME,) if frame else ())):
        raise Refused(AGENT("error.from_desk"))
    if frame and site not in ("", *_OWN):
        raise Refused(AGENT("error.from_desk"))


def check_change(headers: Message, origin: str) -> None:
    """A form of the agent's own page was sent."""
    kind = _read(headers, "content-type").partition(";")[0].strip().lower()
    if _read(headers, "origin") != origin or kind != FORM:
        raise Refused(AGENT("error.foreign"))
    if _read(headers, "sec-fetch-site") not in ("", "same-origin") or _read(headers, "sec-fetch-dest") not in ("", DOCUMENT):
        raise Refused(AGENT("error.foreign"))


def _read(headers: Message, name: str) -> str:
    """The one header of this name; what stands there twice is no answer to anything."""
    found = headers.get_all(name, [])
    return found[0] if len(found) == 1 else "" if not found else "twice"
