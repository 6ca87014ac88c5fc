"""The auditor's part: dossier and verify."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from release_pipeline.cli.options import add_home, add_json, print_json, read_release_of


def add_commands(commands: Any) -> None:
    """Add these commands."""
    dossier = commands.add_parser(
        "dossier",
        help="everything about a published release and its series in one zip, for an auditor",
        description="Confidential: the evidence in it describes the data. `verify` checks it, and so does the verify.py inside.",
    )
    dossier.add_argument("target", metavar="RELEASE")
    dossier.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.zip")
    dossier.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    add_home(dossier)
    dossier.set_defaults(run=_dossier)

    verify = commands.add_parser(
        "verify",
        help="check a package, a dossier or a whole site, offline, and say in words what was checked",
        description="PATH is a package (a folder or a zip of it), a dossier, or a site (its folder or its registry.duckdb).",
    )
    verify.add_argument("path", type=Path, metavar="PATH")
    verify.add_argument(
        "--officer",
        action="append",
        default=[],
        metavar="FINGERPRINT",
        help="the officer's fingerprint, as you got it in another way; again for an earlier officer's",
    )
    add_json(verify, "the findings")
    verify.set_defaults(run=_verify)


def _dossier(options: argparse.Namespace) -> int:
    from release_pipeline.flow.publication.dossier import write_dossier

    site, release = read_release_of(options)
    file = write_dossier(site, release, options.output, overwrite=options.overwrite)
    print(f"{file}: confidential; check it with: release-pipeline verify {file} --officer {site.officer}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from release_pipeline.flow.publication.verification import examine

    found = examine(options.path, options.officer)
    if options.json:
        print_json(found.to_json())
    else:
        for finding in found.findings:
            print(finding)
        print(found.verdict)
    return int(found.failed > 0)
