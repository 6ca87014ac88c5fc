"""Sessions: begun with a token, ended by the time, by logging out, and by too many others."""

from __future__ import annotations

from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.dagster_app.door.sessions import LASTS_SECONDS, Sessions


def test_session_has_the_role_of_its_token_and_ends() -> None:
    """After its time, or when somebody leaves; a visitor that is known already learns it."""
    now = [0.0]
    sessions = Sessions((Role.VIEW, Role.OPERATE), clock=lambda: now[0])
    secrets = {role: sessions.enter(sessions.tokens[role]) or "" for role in Role}
    visitors = {role: sessions.find(secrets[role]) for role in Role}
    assert {role: visitor and visitor.role for role, visitor in visitors.items()} == {role: role for role in Role}
    sessions.leave(secrets[Role.VIEW])
    assert sessions.find(secrets[Role.VIEW]) is None
    operating = visitors[Role.OPERATE]
    assert operating is not None
    now[0] = LASTS_SECONDS - 1
    assert operating.is_here()
    now[0] = LASTS_SECONDS
    assert not operating.is_here()
    assert sessions.find(secrets[Role.OPERATE]) is None


def test_nothing_else_is_let_in() -> None:
    """No token, a token of another start, the token in place of the cookie, or a role that this door does not have."""
    sessions, others = Sessions((Role.VIEW,)), Sessions((Role.VIEW, Role.OPERATE))
    assert set(sessions.tokens) == {Role.VIEW}
    assert [sessions.enter(token) for token in ("", "x", "\udcff", others.tokens[Role.OPERATE])] == [None] * 4
    assert sessions.find(sessions.tokens[Role.VIEW]) is None
    assert sessions.find("") is None


def test_oldest_session_makes_room() -> None:
    """Whoever has a token cannot fill the memory."""
    sessions = Sessions((Role.VIEW,))
    secrets = [sessions.enter(sessions.tokens[Role.VIEW]) or "" for _ in range(150)]
    lasting = [sessions.find(secret) is not None for secret in secrets]
    assert lasting == [False] * 50 + [True] * 100


def test_nobody_throws_out_another_role() -> None:
    """However often somebody logs in who may only look."""
    sessions = Sessions((Role.VIEW, Role.OPERATE))
    operating = sessions.find(sessions.enter(sessions.tokens[Role.OPERATE]) or "")
    for _ in range(150):
        sessions.enter(sessions.tokens[Role.VIEW])
    assert operating is not None
    assert operating.is_here()
