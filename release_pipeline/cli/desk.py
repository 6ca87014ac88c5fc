"""The desk: its pages, its counter, and who may come in."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import add_home, whole_number

PORT = 8796
_STOP = "(stop with Ctrl-C)"


def add_commands(commands: Any) -> None:
    """Add these commands."""
    desk = commands.add_parser(
        "desk",
        help="pages for stewards, reviewers, officers, auditors and operators; what counts is signed elsewhere",
        description="Without an action both parts run here, on the site's account, which is for a trial: whoever takes over the "
        "pages then has the site. In earnest 'counter' runs on the site's account, and 'web' on one of its own (docs/desk.md).",
    )
    _add_serving(desk)
    desk.add_argument(
        "--trusted-proxy", type=Path, metavar="FILE", help="who somebody is says a proxy, as this file describes it"
    )
    add_home(desk)
    desk.set_defaults(run=_open_both, stopped="the desk is closed")
    actions = desk.add_subparsers(title="actions", metavar="ACTION")

    counter = actions.add_parser("counter", help="answer the desk's questions, on the site's account, at a socket")
    counter.add_argument("--socket", type=Path, metavar="PATH", help="default: desk/counter.sock of the site")
    counter.add_argument("--for-account", metavar="NAME", help="the account that the web process runs on, which may ask")
    counter.add_argument(
        "--trusted-proxy", type=Path, metavar="FILE", help="the proxy before the web process, as this file describes it"
    )
    add_home(counter)
    counter.set_defaults(run=_open_counter, stopped="the counter is closed")

    web = actions.add_parser("web", help="serve the pages, on an account of its own; needs no site, but the counter's socket")
    web.add_argument("--socket", type=Path, required=True, metavar="PATH", help="where the counter answers")
    _add_serving(web)
    web.set_defaults(run=_serve_web, stopped="the desk's pages are closed")

    token = actions.add_parser("token", help="a link by which one person comes in, where no proxy logs people in")
    token.add_argument("person", metavar="NAME")
    token.add_argument("--days", type=whole_number(1, 366, "days"), default=90, help="how long it lasts (default: 90)")
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
    from release_pipeline.desk.opening import default_socket, opened_counter, read_proxy, serve_web
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    proxy = None if options.trusted_proxy is None else read_proxy(options.trusted_proxy)
    with opened_counter(site, default_socket(site), proxy=proxy):
        serve_web(default_socket(site), port=options.port, also=tuple(options.allow_host), ready=_say_ready)
    return 0


def _open_counter(options: argparse.Namespace) -> int:
    from release_pipeline.desk.opening import default_socket, find_account, opened_counter, read_proxy
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    socket = options.socket or default_socket(site)
    accounts = frozenset[int]() if options.for_account is None else frozenset({find_account(options.for_account)})
    proxy = None if options.trusted_proxy is None else read_proxy(options.trusted_proxy)
    with opened_counter(site, socket, accounts=accounts, proxy=proxy):
        print(f"the counter answers at {socket}\n{_STOP}", flush=True)
        threading.Event().wait()
    return 0


def _serve_web(options: argparse.Namespace) -> int:
    from release_pipeline.desk.opening import serve_web

    serve_web(options.socket, port=options.port, also=tuple(options.allow_host), ready=_say_ready)
    return 0


def _say_ready(address: str) -> None:
    print(f"the desk: {address}/\npeople come in by links of `release-pipeline desk token NAME`\n{_STOP}", flush=True)


def _make_token(options: argparse.Namespace) -> int:
    from release_pipeline.desk.tokens import make_token, withdraw_tokens
    from release_pipeline.flow.site import find_site

    site = find_site(options.home)
    if options.withdraw:
        count = withdraw_tokens(site, options.person)
        print(f"{options.person}: {count} token{'' if count == 1 else 's'} withdrawn, and the sessions that were begun with them")
        return 0
    token = make_token(site, options.person, days=options.days)
    print(f"for {options.person} alone, for {options.days} days: http://127.0.0.1:{PORT}/login#{token}")
    return 0
