"""The desk: its pages, its backend, and who may come in."""

from __future__ import annotations

import argparse
import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release_pipeline.cli.options import add_home, add_uds, whole_number
from release_pipeline.errors import WrongUsage

if TYPE_CHECKING:
    from release_pipeline.desk.demo import Player
    from release_pipeline.flow.site import Site
    from release_pipeline.flow.states import ReleaseId

PORT = 8796
_STOP = "(stop with Ctrl-C)"
_ALL_KEYS = """\
THIS IS FOR PLAYING. The demo keys are in {keys}, so that one person can play everybody: each page that asks for a
signature names the command, and --key {keys}/NAME signs as NAME. In earnest each key is on its owner's own machine, and the
desk's machine has none: anyone who takes the desk over cannot approve anything. Here anyone who has this machine can."""
_SERVICE = """\
What has all its votes is published a few seconds later by the demo's service, whose key site.yaml names. No page of
the desk publishes: in earnest Dagster's daemon does it, or somebody by a command."""


def add_commands(commands: Any) -> None:
    """Add these commands."""
    desk = commands.add_parser(
        "desk",
        help="pages for stewards, reviewers, officers, auditors and operators; what counts is signed elsewhere",
        description="Without an action both parts run here, on the site's account, which is for a trial: whoever takes over the "
        "pages then has the site. In earnest 'backend' runs on the site's account, and 'web' on one of its own (docs/desk.md).",
    )
    _add_serving(desk)
    desk.add_argument(
        "--trusted-proxy", type=Path, metavar="FILE", help="who somebody is says a proxy, as this file describes it"
    )
    desk.add_argument(
        "--demo",
        action="store_true",
        help="for the folder of `release-pipeline demo`: links for five people, whose keys are in the folder, and a service that "
        "publishes what has all its votes",
    )
    add_home(desk)
    desk.set_defaults(run=_open_both, stopped="the desk is closed")
    actions = desk.add_subparsers(title="actions", metavar="ACTION")

    backend = actions.add_parser("backend", help="answer the desk's questions, on the site's account, at a socket")
    backend.add_argument("--socket", type=Path, metavar="PATH", help="default: desk/backend.sock of the site")
    backend.add_argument("--for-account", metavar="NAME", help="the account that the web process runs on, which may ask")
    backend.add_argument(
        "--trusted-proxy", type=Path, metavar="FILE", help="the proxy before the web process, as this file describes it"
    )
    add_home(backend)
    backend.set_defaults(run=_open_backend, stopped="the backend is closed")

    web = actions.add_parser("web", help="serve the pages, on an account of its own; needs no site, but the backend's socket")
    web.add_argument("--socket", type=Path, required=True, metavar="PATH", help="where the backend answers")
    _add_serving(web)
    add_uds(web)
    web.set_defaults(run=_serve_web, stopped="the desk's pages are closed")

    token = actions.add_parser("token", help="a link by which one person comes in, where no proxy logs people in")
    token.add_argument("person", metavar="NAME")
    token.add_argument("--days", type=whole_number(1, 366, "days"), default=90, help="how long it lasts (default: 90)")
    token.add_argument(
        "--at",
        metavar="https://DESK",
        help=f"where people reach the desk, for the link (default: as site.yaml says, else http://127.0.0.1:{PORT})",
    )
    token.add_argument("--withdraw", action="store_true", help="no token of theirs lets anybody in any more")
    add_home(token)
    token.set_defaults(run=_make_token)


def _add_serving(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=whole_number(1, 65535, "a port"), default=PORT, help=f"default: {PORT}")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME:PORT",
        help="another name under which it is reached; may be given again",
    )


def _open_both(options: argparse.Namespace) -> int:
    from release_pipeline.desk.opening import default_socket, opened_backend, opened_listener, read_proxy, serve_web
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    if options.demo:
        return _play_demo(site, options)
    proxy = None if options.trusted_proxy is None else read_proxy(options.trusted_proxy)
    socket, also = default_socket(site), tuple(options.allow_host)
    with opened_listener(options.port) as listener, opened_backend(site, socket, proxy=proxy):
        serve_web(socket, port=options.port, also=also, ready=_say_ready, listener=listener)
    return 0


def _play_demo(site: Site, options: argparse.Namespace) -> int:
    from release_pipeline.desk.demo import check_demo, prepare_demo_desk, publishing
    from release_pipeline.desk.opening import default_socket, opened_backend, opened_listener, serve_web

    if options.trusted_proxy is not None:
        raise WrongUsage("the demo's people come in by links.", where="--trusted-proxy", remedy="Leave it out.")
    check_demo(site)
    socket, address, also = default_socket(site), f"http://127.0.0.1:{options.port}", tuple(options.allow_host)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(opened_listener(options.port))
        stack.enter_context(opened_backend(site, socket))
        players = prepare_demo_desk(site)  # now that no other desk runs, whose links would end
        stack.enter_context(publishing(site, lambda words, release: _tell_publication(site, words, release)))
        serve_web(
            socket,
            port=options.port,
            also=also,
            ready=lambda _: _tell_players(site, address, players),
            listener=listener,
        )
    return 0


def _tell_players(site: Site, address: str, players: Iterable[Player]) -> None:
    print(f"\nThe demo's desk: {address}/  Five people, each with a link; open each in a tab of its own, in one browser.\n")
    for player in players:
        print(f"  {player.name} ({', '.join(player.roles)})\n    {player.first}\n    {address}/login#{player.token}")
    print(
        f"\n{_ALL_KEYS.format(keys=site.home / 'keys')}\n\n{_SERVICE}\n\nThe story, step by step: docs/desk.md\n{_STOP}",
        flush=True,
    )


def _tell_publication(site: Site, words: str, release: ReleaseId | None) -> None:
    print(words, flush=True)
    if release is not None:
        from release_pipeline.dagster_app.launch import record_published

        record_published(site, release)


def _open_backend(options: argparse.Namespace) -> int:
    from release_pipeline.desk.opening import default_socket, find_account, opened_backend, read_proxy
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    socket = options.socket or default_socket(site)
    accounts = frozenset[int]() if options.for_account is None else frozenset({find_account(options.for_account)})
    proxy = None if options.trusted_proxy is None else read_proxy(options.trusted_proxy)
    with opened_backend(site, socket, accounts=accounts, proxy=proxy):
        print(f"the backend answers at {socket}\n{_STOP}", flush=True)
        threading.Event().wait()
    return 0


def _serve_web(options: argparse.Namespace) -> int:
    from release_pipeline.desk.opening import serve_web

    serve_web(options.socket, port=options.port, uds=options.uds, also=tuple(options.allow_host), ready=_say_ready)
    return 0


def _say_ready(address: str) -> None:
    print(f"the desk: {address}/\npeople come in by links of `release-pipeline desk token NAME`\n{_STOP}", flush=True)


def _make_token(options: argparse.Namespace) -> int:
    from release_pipeline.desk.tokens import make_token, withdraw_tokens
    from release_pipeline.flow.desk_address import check_desk_address, read_desk_address
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    if options.withdraw:
        count = withdraw_tokens(site, options.person)
        print(f"{options.person}: {count} token{'' if count == 1 else 's'} withdrawn, and the sessions that were begun with them")
        return 0
    address = read_desk_address(site) or f"http://127.0.0.1:{PORT}"
    if options.at is not None:
        address = check_desk_address(options.at, where="--at")
    token = make_token(site, options.person, days=options.days)
    print(f"for {options.person} alone, for {options.days} days: {address}/login#{token}")
    return 0
