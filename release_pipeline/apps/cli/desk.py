"""The commands of the desk: its pages, its backend, and login links."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from release_pipeline.apps.cli import commands as cli
from release_pipeline.apps.desk.backend.people import make_token, withdraw_tokens
from release_pipeline.apps.desk.opening import default_socket, find_account, opened_backend, read_proxy, serve_web
from release_pipeline.apps.door import opened_listener
from release_pipeline.store.site import Site, check_desk_address, find_site, read_desk_address

PORT_OF_DESK = 8796
_USUAL = f"http://127.0.0.1:{PORT_OF_DESK}"
_STOP = "(stop with Ctrl-C)"
_port = click.option("--port", type=cli.PORT, default=PORT_OF_DESK, show_default=True, help="The port on this machine.")


@cli.actions("desk --home demo", invoke_without_command=True, stopped="the desk is closed")
@_port
@cli.allow_host
@cli.proxy
@cli.home_path
@click.pass_context
def desk(context: click.Context, port: int, allow_hosts: tuple[str, ...], trusted_proxy: Path | None, home: Path | None) -> None:
    """Stewards, reviewers, officers, auditors and operators work on its pages, and sign elsewhere.

    Without an action both parts run on the site's account. Use this only for a trial: anyone who
    takes over the pages then has the site. Otherwise run `backend` on the site's account and `web`
    on a separate one (docs/desk.md)."""
    if context.invoked_subcommand is not None:
        cli.refuse_options_before_action(context)
        return
    site = find_site(home)
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
@cli.value("--at", "https://DESK", f"The desk's address (default: site.yaml's, else {_USUAL}).")
@cli.flag("--withdraw", "End all tokens of this person instead.")
@cli.home
def token(person: str, days: int, at: str | None, withdraw: bool, site: Site) -> None:
    """Make a login link for one person, if no proxy does it."""
    if withdraw:
        count = withdraw_tokens(site, person)
        print(f"{person}: {count} token{'' if count == 1 else 's'} withdrawn, and the sessions that were begun with them")
        return
    address = read_desk_address(site) or _USUAL
    if at is not None:
        address = check_desk_address(at, where="--at")
    print(f"for {person} alone, for {days} days: {address}/login#{make_token(site, person, days=days)}")


def _say_ready(address: str) -> None:
    at = f" --at {address}" if address.startswith("http://") and address != _USUAL else ""
    print(f"the desk: {address}/\npeople come in by links of `release-pipeline desk token NAME{at}`\n{_STOP}", flush=True)
