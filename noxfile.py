"""The ends of what is supported: the oldest and the newest Python and Dagster, each in an environment of its own.

`make versions`, or `nox --session newest`. Everything else is what requirements.lock says.
"""

from __future__ import annotations

from pathlib import Path

import nox

OLDEST = ("3.11", "1.13.0")  # Python, and the first Dagster of the range in pyproject.toml
NEWEST = ("3.14", "1.13.28")  # the last ones that were tried; the lock has a Dagster between
INTEGRATION = Path(__file__).parent / "tests" / "integration"
TESTS = (
    "tests/unit/dagster_app",
    *sorted(map(str, INTEGRATION.glob("test_dagster*.py"))),
    str(INTEGRATION / "test_end_to_end.py"),
)

nox.options.default_venv_backend = "venv"


def test_with(session: nox.Session, dagster: str) -> None:
    """Install the lock, then this Dagster in its place, and run its side of the tests and one release end to end."""
    quiet = ("--quiet", "--disable-pip-version-check")
    session.install(*quiet, "--require-hashes", "--no-deps", "-r", "requirements.lock")
    session.install(*quiet, f"dagster=={dagster}", f"dagster-webserver=={dagster}")
    local = ("--editable", ".", "--editable", "packages/analyst")
    session.install(*quiet, "--no-deps", "--no-build-isolation", *local)
    session.run("pytest", "-q", *(session.posargs or TESTS))


@nox.session(python=OLDEST[0])
def oldest(session: nox.Session) -> None:
    """The oldest Python and Dagster."""
    test_with(session, OLDEST[1])


@nox.session(python=NEWEST[0])
def newest(session: nox.Session) -> None:
    """The newest Python and Dagster."""
    test_with(session, NEWEST[1])
