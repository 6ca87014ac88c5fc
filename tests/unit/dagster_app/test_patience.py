"""Queries that take too long are answered in words, and their work ends by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import MutableMapping
from typing import Any

import pytest
from graphql import build_schema, graphql_sync
from starlette.concurrency import run_in_threadpool

from release_pipeline.dagster_app.door.patience import Patience, stop_late
from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.door.refusal import Refused

SCHEMA = build_schema("type Query {again: [Query!]!}")
DEEP = "{" + "again {" * 11 + "__typename" + "}" * 12


class Asked:
    """A query that asks for more than anybody waits for, answered in a thread as Dagster does."""

    def __init__(self) -> None:
        self.fields, self.sent = 0, list[MutableMapping[str, Any]]()

    def again(self, _: Any) -> list[Asked]:
        self.fields += 1
        return [self] * 10

    async def __call__(self, send: Any) -> None:
        await run_in_threadpool(graphql_sync, SCHEMA, DEEP, self, middleware=[stop_late])
        await send({"type": "too late"})

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)


def test_a_query_that_takes_too_long_ends() -> None:
    """Whoever asked is told, and the thread has ended with it: nothing more is looked up."""
    asked = Asked()

    async def ask() -> None:
        with pytest.raises(Refused, match="took longer than"):
            await Patience(0.1).answer(Role.VIEW, asked.send, asked)

    asyncio.run(ask())
    assert asked.fields > 1
    assert asked.sent == []
    done = asked.fields
    time.sleep(0.05)
    assert asked.fields == done


def test_one_field_that_does_not_end_is_answered_too() -> None:
    """The answer does not wait for it; what it still sends goes nowhere."""
    asked, end = Asked(), asyncio.Event()

    async def hang(send: Any) -> None:
        await end.wait()
        await send({"type": "too late"})

    async def ask() -> None:
        with pytest.raises(Refused, match="took longer than"):
            await Patience(0.05).answer(Role.VIEW, asked.send, hang)
        end.set()
        await asyncio.sleep(0.01)

    asyncio.run(ask())
    assert asked.sent == []


def test_who_looks_leaves_room_for_who_operates() -> None:
    """So many of a role are answered at once; the others wait, and are told."""

    async def ask() -> None:
        patience, end, asked = Patience(0.2), asyncio.Event(), Asked()

        async def hang(_: Any) -> None:
            await end.wait()

        async def at_once(send: Any) -> None:
            await send({"type": "answer"})

        lookers = [asyncio.create_task(patience.answer(Role.VIEW, asked.send, hang)) for _ in range(9)]
        await asyncio.sleep(0)
        await patience.answer(Role.OPERATE, asked.send, at_once)
        assert asked.sent == [{"type": "answer"}]
        told = [str(error) for error in await asyncio.gather(*lookers, return_exceptions=True)]
        assert sum("as many queries" in words for words in told) == 1
        end.set()

    asyncio.run(ask())
