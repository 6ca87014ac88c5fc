"""The desk: its pages, its backend, and who may come in."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.desk.backend.people import make_token, withdraw_tokens
from release_pipeline.apps.desk.demo import Player, check_demo, prepare_demo_desk, publishing
from release_pipeline.apps.desk.opening import default_socket, find_account, opened_backend, read_proxy, serve_web
from release_pipeline.apps.door import opened_listener
from release_pipeline.errors import WrongUsage
from release_pipeline.sentences import DEMO
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site, check_desk_address, find_site, read_desk_address

PORT_OF_DESK = 8796
_STOP = "(stop with Ctrl-C)"
_port = click.option("--port", type=cli.PORT, default=PORT_OF_DESK, show_default=True, help="The port on this machine.")


@cli.actions("desk --demo --home demo", invoke_without_command=True, stopped="the desk is closed")
@_port
@cli.allow_host
@cli.proxy
@cli.flag("--demo", "Play with a demo site: links for five people, their keys, and a service.")
@cli.home_path
@click.pass_context
def desk(
    context: click.Context, port: int, allow_hosts: tuple[str, ...], trusted_proxy: Path | None, demo: bool, home: Path | None
) -> None:
    """Stewards, reviewers, officers, auditors and operators work on its pages, and sign elsewhere.

    Without an action both parts run on the site's account. Use this only for a trial: anyone who
    takes over the pages then has the site. Otherwise run `backend` on the site's account and `web`
    on a separate one (docs/desk.md)."""
    if context.invoked_subcommand is not None:
        cli.refuse_options_before_action(context)
        return
    site = find_site(home)
    if demo:
        _play_demo(site, port, allow_hosts, trusted_proxy)
        return
    known_proxy = None if trusted_proxy is None else read_proxy(trusted_proxy)
    socket = default_socket(site)
    with opened_listener(port) as listener, opened_backend(site, socket, proxy=known_proxy):
        serve_web(socket, port=port, also=allow_hosts, ready=_say_ready, listener=listener)


@desk.command("backend", example="desk backend --for-account desk-web", stopped="the backend is closed")
@cli.path("--socket", "PATH", "Default: desk/backend.sock of the site.")
@click.option("--for-account", metavar="NAME", help="The account of the web process, which may ask.")
@cli.proxy
@cli.home
def backend(socket: Path | None, for_account: str | None, trusted_proxy: Path | None, site: Site) -> None:
    """Answer the web process, on the site's account."""
    socket = socket or default_socket(site)
    accounts = frozenset[int]() if for_account is None else frozenset({find_account(for_account)})
    known_proxy = None if trusted_proxy is None else read_proxy(trusted_proxy)
    with opened_backend(site, socket, accounts=accounts, proxy=known_proxy):
        print(f"the backend answers at {socket}\n{_STOP}", flush=True)
        threading.Event().wait()


@desk.command("web", example="desk web --socket site/desk/backend.sock", stopped="the desk's pages are closed")
@cli.path("--socket", "PATH", "Where the backend answers.", required=True)
@_port
@cli.allow_host
@cli.uds
def web(socket: Path, port: int, allow_hosts: tuple[str, ...], uds: Path | None) -> None:
    """Serve the pages, on a separate account without a site."""
    serve_web(socket, port=port, uds=uds, also=allow_hosts, ready=_say_ready)


@desk.command("token", example="desk token eva --days 30")
@click.argument("person", metavar="NAME", help="Who comes in by this link.")
@click.option("--days", type=click.IntRange(1, 366), default=90, show_default=True, help="How long it lasts.")
@cli.value("--at", "https://DESK", f"The desk's address (default: site.yaml's, else http://127.0.0.1:{PORT_OF_DESK}).")
@cli.flag("--withdraw", "End all tokens of this person instead.")
@cli.home
def token(person: str, days: int, at: str | None, withdraw: bool, site: Site) -> None:
    """Make a login link for one person, if no proxy does it."""
    if withdraw:
        count = withdraw_tokens(site, person)
        print(f"{person}: {count} token{'' if count == 1 else 's'} withdrawn, and the sessions that were begun with them")
        return
    address = read_desk_address(site) or f"http://127.0.0.1:{PORT_OF_DESK}"
    if at is not None:
        address = check_desk_address(at, where="--at")
    print(f"for {person} alone, for {days} days: {address}/login#{make_token(site, person, days=days)}")


def _play_demo(site: Site, port: int, also: tuple[str, ...], trusted_proxy: Path | None) -> None:
    if trusted_proxy is not None:
        raise WrongUsage("the demo's people come in by links.", where="--trusted-proxy", remedy="Leave it out.")
    check_demo(site)
    socket, address = default_socket(site), f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(opened_listener(port))
        stack.enter_context(opened_backend(site, socket))
        players = prepare_demo_desk(site)  # now that no other desk runs, whose links would end
        stack.enter_context(publishing(site, lambda words, release: _tell_publication(site, words, release)))
        serve_web(
            socket,
            port=port,
            also=also,
            ready=lambda _: _tell_players(site, address, players),
            listener=listener,
        )


def _tell_players(site: Site, address: str, players: Iterable[Player]) -> None:
    keys = site.home / "keys"
    people = "\n".join(
        DEMO("desk.person", name=each.name, roles=", ".join(each.roles), first=each.first, address=address, token=each.token)
        for each in players
    )
    print(DEMO("desk.players", address=address, people=people, keys=keys, stop=_STOP), flush=True)


def _tell_publication(site: Site, words: str, release: ReleaseId | None) -> None:
    print(words, flush=True)
    if release is not None:
        from release_pipeline.apps.dagster.launch import record_published

        record_published(site, release)


def _say_ready(address: str) -> None:
    print(f"the desk: {address}/\npeople come in by links of `release-pipeline desk token NAME`\n{_STOP}", flush=True)
