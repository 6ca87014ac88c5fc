"""What a service prints: every line is a record, whoever printed it, and what is for people stays as it is."""

from __future__ import annotations

import json

import pytest

from release_pipeline.apps.dagster.serving import rewrite

DAEMON = (
    b"\x1b[32m2026-11-25 20:53:50 +0100\x1b[0m - dagster.daemon.SensorDaemon - \x1b[34mINFO\x1b[0m - Sensor watch: All is well.\n"
)
RUN = b"2026-11-25 19:54:11 +0000 - dagster - DEBUG - release_people - 189bd2fc - RUN_START - Started.\n"


def test_a_record_of_dagster_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Without colours, in UTC; on whatever stream it was, on standard error."""
    rewrite([DAEMON], form="text", source="stdout")
    rewrite([RUN], form="text", source="stderr")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "2026-11-25T19:53:50Z INFO dagster.daemon.SensorDaemon: Sensor watch: All is well.",
        "2026-11-25T19:54:11Z DEBUG dagster: release_people - 189bd2fc - RUN_START - Started.",
    ]


def test_as_json_it_has_the_same_parts(capsys: pytest.CaptureFixture[str]) -> None:
    """Of uvicorn too; what is no record is one of its own."""
    rewrite([DAEMON, b"WARNING:  Invalid HTTP request received.\n", b"  File \xff\n", b"\n"], form="json", source="stderr")
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert told[0] == {
        "time": "2026-11-25T19:53:50Z",
        "level": "INFO",
        "name": "dagster.daemon.SensorDaemon",
        "message": "Sensor watch: All is well.",
    }
    assert [(one["level"], one["name"], one["message"]) for one in told[1:]] == [
        ("WARNING", "uvicorn", "Invalid HTTP request received."),
        ("INFO", "output", "  File \ufffd"),
    ]
