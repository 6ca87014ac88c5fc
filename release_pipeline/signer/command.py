"""The signer's command line: shows a bundle, asks, and writes what was signed."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from release_pipeline.signer.bundles import (
    CANDIDATE,
    CHANGES,
    DRAFTS,
    OURS,
    REPORT,
    THEIRS,
    WHOLE,
    Bundle,
    describe_bundle,
    describe_changes,
    keep,
    read_bundle,
    write_private,
    write_whole,
)
from release_pipeline.signer.keys import Signer, read_signer
from release_pipeline.verifier.documents import Fault, WrongUsage, canonical_json, printable
from release_pipeline.verifier.remarks import Remarks, hash_remarks
from release_pipeline.verifier.statements import MAY_SIGN, VOTES, message_of
from release_pipeline.verifier.trees import open_tree


def make_statement(bundle: Bundle, signer: Signer, *, verdict: str = "", why: str) -> dict[str, str]:
    """Return the statement to sign, of a candidate with a `verdict` of VOTES; raises `WrongUsage` where it would count
    nowhere."""
    verdict = verdict or DRAFTS[bundle.what][0]
    if verdict != DRAFTS[bundle.what][0] and bundle.what != "candidate":
        raise WrongUsage(f"a {bundle.what} is not {'returned' if verdict == 'return' else 'rejected'}: do not sign it")
    if verdict in ("reject", "return") and not why.strip():
        raise WrongUsage(f"a {'rejection' if verdict == 'reject' else 'return'} needs its reason: add --why 'REASON'")
    if len(why) > 500 or not (why or " ").isprintable():
        raise WrongUsage("--why: a reason is one line of at most 500 characters")
    return _fill_in(bundle, signer, verdict, bundle.digest, why)


def make_remarks(bundle: Bundle, signer: Signer, remarks: Remarks) -> dict[str, str]:
    """Return the statement of the remarks in a bundle, to be signed with the vote, or without one."""
    return _fill_in(bundle, signer, "remarks", hash_remarks(remarks.document), "")


def _fill_in(bundle: Bundle, signer: Signer, kind: str, digest: str, why: str) -> dict[str, str]:
    """Return the seven fields of a statement, by somebody who may make it."""
    me = next((key for key in bundle.keys.values() if key.public == signer.public), None)
    if me is None or me.role not in MAY_SIGN[kind]:
        role = "in no list of this site" if me is None else f"that of a {me.role}"
        raise WrongUsage(
            f"this needs the key of the {' or '.join(MAY_SIGN[kind])}, and yours ({signer.fingerprint[:16]}...) is {role}"
        )
    if kind in VOTES and bundle.now.get("steward") == me.name:
        raise WrongUsage(f"{me.name} is the steward of the policy, and no steward reviews")
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")  # noqa: UP017  Python 3.9
    parts = {"kind": kind, "subject": bundle.subject, "hash": digest, "signer": signer.fingerprint, "name": me.name}
    return {**parts, "at": at, "why": why.strip()}


def write_signed(statement: dict[str, str], signature: str, output: Path) -> None:
    """Write a statement and its signature as two files, as ssh-keygen wants them. Neither replaces another file."""
    _write_new(output, message_of(statement))
    _write_new(signature_file(output), signature.encode())


def _write_new(file: Path, content: bytes) -> None:
    try:
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644), "wb") as new:
            new.write(content)
    except OSError as error:
        raise WrongUsage(f"{file}: it cannot be written: {error.strerror}") from None


def signature_file(statement: Path) -> Path:
    """Return the file of a statement's signature."""
    return statement.with_name(f"{statement.name}.sig")


def remarks_file(statement: Path) -> Path:
    """Return the file of the remarks that were signed with another statement."""
    return statement.with_name(f"{statement.stem}.remarks.json")


def document_file(statement: Path) -> Path:
    """Return the file of the document that a statement of remarks is of."""
    return statement.with_name(f"{statement.stem}.document.json")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, metavar="BUNDLE.zip", help="what `review export` wrote")
    parser.add_argument(
        "--key", type=Path, required=True, metavar="FILE", help="your OpenSSH key: private, or .pub of an agent's or token's"
    )
    deeds = parser.add_mutually_exclusive_group()
    deeds.add_argument("--reject", action="store_true", help="reject the candidate for good, in place of approving it")
    deeds.add_argument(
        "--return", action="store_true", dest="give_back", help="return the candidate with reasons, in place of approving it"
    )
    deeds.add_argument("--remarks-only", action="store_true", help="sign the remarks in the bundle, and nothing else")
    parser.add_argument("--why", default="", help="a remark, or the reason of a return or rejection, signed with it")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="STATEMENT.json", help="where to write the statement (default: here)"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask: you have seen what is in the bundle")


def sign_bundle(options: argparse.Namespace) -> None:
    """Show a bundle, ask, and write what was signed; raises `WrongUsage` or `Fault` when nothing was signed."""
    signer = read_signer(options.key)
    folder = Path(tempfile.mkdtemp(prefix="review-"))
    try:
        with open_tree(options.bundle) as tree:
            copy, skipped = keep(tree, folder)
        bundle = read_bundle(copy)
        deeds = _list_deeds(options, bundle, signer)
        for file in (file for output, statement in deeds for file in _list_outputs(output, statement)):
            if file.exists() or not file.parent.is_dir():
                raise WrongUsage(f"{file}: {'it is there already' if file.exists() else 'its folder does not exist'}")
        lines = "".join(f"{make_plain(line)}\n" for line in describe_changes(bundle, signer))
        write_private(folder / CHANGES, lines.encode())
        write_private(folder / WHOLE, f"{write_whole(bundle)}\n".encode())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    for line in describe_bundle(bundle, signer):
        _show(line)
    _show(
        f"unpacked for you alone, confidential, yours to delete: {folder}" + (f" ({skipped} large files not)" if skipped else "")
    )
    _show(f"computed here and the same as above: {CHANGES} and {WHOLE} in it")
    if bundle.what == "candidate":
        _show(f"the reviewers' page: {folder / CANDIDATE / REPORT}")
    for _, statement in deeds:
        why = f", why: {statement['why']}" if statement["why"] else ""
        _show(f"to be signed by {statement['name']}: {statement['kind']} of {bundle.subject}{why}")
    if not options.yes:
        _ask(bundle.digest)
    signed = [(output, statement, signer.sign(message_of(statement))) for output, statement in deeds]
    for output, statement, signature in signed:
        write_signed(statement, signature, output)
        if statement["kind"] == "remarks" and bundle.remarks is not None:
            _write_new(document_file(output), canonical_json(bundle.remarks.document).encode())
    for output, statement in deeds:
        *most, last = map(str, _list_outputs(output, statement))
        _show(f"{', '.join(most)} and {last}: signed; send them back, to be imported with `review import`")


def _list_deeds(options: argparse.Namespace, bundle: Bundle, signer: Signer) -> list[tuple[Path, dict[str, str]]]:
    """Return the statements to sign, and where each is written: the vote or approval, and remarks, if there are any."""
    if options.remarks_only and (bundle.remarks is None or options.why):
        raise WrongUsage("--remarks-only: there are no remarks in the bundle" if not options.why else "--why is of a vote")
    deeds: list[tuple[Path, dict[str, str]]] = []
    if not options.remarks_only:
        verdict = "reject" if options.reject else "return" if options.give_back else ""
        statement = make_statement(bundle, signer, verdict=verdict, why=options.why)
        given = Path(f"{statement['kind']}-{bundle.digest[:8]}-{statement['name']}.json")
        deeds.append((options.output or given, statement))
    if bundle.remarks is not None:
        statement = make_remarks(bundle, signer, bundle.remarks)
        alone = options.output or Path(f"remarks-{bundle.digest[:8]}-{statement['name']}.json")
        deeds.append((remarks_file(deeds[0][0]) if deeds else alone, statement))
    return deeds


def _list_outputs(output: Path, statement: dict[str, str]) -> list[Path]:
    """Return the files of one signed statement."""
    return [output, signature_file(output), *([document_file(output)] if statement["kind"] == "remarks" else [])]


def _ask(digest: str) -> None:
    """Go on only if somebody types the hash's beginning."""
    if not sys.stdin.isatty():
        raise WrongUsage("nothing was signed: there is nobody to ask. --yes says that you have seen it")
    try:
        typed = input("type the first 8 characters of the hash to sign, anything else not to: ").strip()
    except EOFError:  # Ctrl-D
        typed = ""
    if typed != digest[:8]:
        raise WrongUsage("nothing was signed")


def make_plain(line: str) -> str:
    """Return the whole line, made harmless for a terminal; `printable` would cut it."""
    return "".join(printable(line[start : start + 1000]) for start in range(0, len(line), 1000))


def _show(line: str) -> None:
    """Print a line. On a terminal a long one is broken here, and every piece begins as the line does: otherwise a piece of the
    site's line could pass for one of ours."""
    coding = sys.stdout.encoding or "ascii"
    start, text = next(((sign, line[2:]) for sign in (THEIRS, OURS) if line.startswith(sign)), ("", line))
    text = make_plain(text).encode(coding, "backslashreplace").decode(coding)
    wide = max(len(text), 1)
    if start and sys.stdout.isatty():
        wide = max(20, shutil.get_terminal_size().columns - 3) // (1 if text.isascii() else 2)
    for at in range(0, max(len(text), 1), wide):
        print(start + text[at : at + wide], flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Sign one bundle; returns the exit code."""
    parser = argparse.ArgumentParser(prog="sign.py", description="Look at what you are asked to sign, offline, and sign it.")
    _add_arguments(parser)
    try:
        sign_bundle(parser.parse_args(arguments))
    except (WrongUsage, Fault) as error:
        print(printable(error.what), file=sys.stderr)
        return 2 if isinstance(error, WrongUsage) else 1
    except KeyboardInterrupt:
        print("stopped; nothing was signed", file=sys.stderr)
        return 130
    return 0
