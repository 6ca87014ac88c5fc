"""The tool `mask`: the method of a policy on a file, for scripts and benchmarks. It has no ledger, and reports that.

On a source of a site it is a trial on confidential records, since its evidence has exact scales and errors: it is recorded there.

Its output is *not a release*: no ledger added up what the same people were exposed to, small groups were not suppressed and it
was not reviewed. The evidence carries that stamp.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from release_pipeline import __version__
from release_pipeline.audit.columns import compare_values
from release_pipeline.audit.package import spell_out
from release_pipeline.errors import DataRefused, WrongUsage
from release_pipeline.ledger.looks import note_look, say_compared
from release_pipeline.masking import RECORD, Figures, find_strategy
from release_pipeline.mechanisms.basis.utility import Clamping, column_error, measure_clamping
from release_pipeline.mechanisms.catalogue.spec import K_EPSILON
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline.opening import name_release
from release_pipeline.pipeline.reading import (
    NO_RELEASES,
    collect_facts,
    count_people,
    count_releases,
    needed_columns,
    read_values,
    refuse,
    release_filter,
    typed_column,
)
from release_pipeline.pipeline.sources import find_home, find_source_like, list_file_origins, list_files
from release_pipeline.pipeline.tables import write_together
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import read_policy
from release_pipeline.policy.plans.plan import describe_claim
from release_pipeline.policy.plans.settings import own_setting
from release_pipeline.policy.values.text import read_yaml
from release_pipeline.rows.checks import check_facts, check_release_column, match_header, notice, notice_clamping, notice_releases
from release_pipeline.rows.columns import load_table, needed_for, select_cells
from release_pipeline.store.files import check_output, is_same_file
from release_pipeline.store.raw import RawTable
from release_pipeline.store.site import find_site
from release_pipeline.store.source import find_file, open_raw

STAMP = "not a release"
NOT_APPLIED = ("ledger", "tables", "suppress", "gates but min_rows and clamped_at_most", "review", "publish", "retain")
GROUPS = "suppress but grouping_at_most"  # without which the classes of k-epsilon cannot be made
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class MaskedTable:
    """A masked table, shuffled, and the internal evidence of it."""

    table: pa.Table
    records: int
    claim: str
    columns: Figures
    warnings: tuple[str, ...]
    policy_hash: str
    release: str | None
    definition: str = field(default="")
    is_swapped: bool = False

    @property
    def not_applied(self) -> tuple[str, ...]:
        """Return the parts of the policy that had no effect."""
        left = [part for part in NOT_APPLIED if part != "suppress" or not self.is_swapped]
        return tuple(GROUPS if part == "suppress" and self.definition == K_EPSILON.key else part for part in left)

    def evidence(self) -> dict[str, Any]:
        """Return what was done, in figures only for the confidential side."""
        return {
            "stamp": STAMP,
            "why": "made by `mask --unaccounted`: no ledger added up the exposure of the people in it",
            "not_applied": list(self.not_applied),
            "confidential": "internal figures: exact losses, scales and errors describe the data and must not be published",
            "tool": f"release-pipeline {__version__}",
            "policy_hash": self.policy_hash,
            "release": self.release,
            "records": self.records,
            "claim": self.claim,
            "definition": self.definition,
            "columns": self.columns,
            "warnings": list(self.warnings),
        }


def mask_file(
    policy: Policy,
    file: Path,
    output: Path,
    *,
    release: str | None = None,
    evidence: Path | None = None,
    overwrite: bool = False,
    progress: Progress = lambda _: None,
) -> MaskedTable:
    """Mask the records of `file` (of one `release` where the policy has several) into `output`, all of it or nothing."""
    check_masking(file, output, evidence, overwrite=overwrite)
    masked = mask_table(policy, file, release=release, progress=progress)
    progress(f"writing {output}")
    write_together((output, masked.table), None if evidence is None else (evidence, masked.evidence()))
    return masked


def check_masking(file: Path, output: Path, evidence: Path | None, *, overwrite: bool) -> None:
    """Refuse, before any work, outputs that could not be written or that would destroy something."""
    check_output(output, endings=(".csv", ".parquet"), overwrite=overwrite)
    if evidence is not None:
        check_output(evidence, endings=(".json",), overwrite=overwrite)
    for path in (output, evidence):
        if path is not None and is_same_file(file, path):
            raise WrongUsage("the output would replace the input.", where=str(path), remedy="Choose another name.")


def note_masking(policy: Policy, policy_file: Path, file: Path, *, by: str, evidence: bool) -> None:
    """Record masking a source of a site as a trial, in the registry of the site that the policy or the file is in. Refused where
    site.yaml forbids trials. For any other file nothing is recorded, and no registry is read."""
    homes = [find_home(policy_file), find_home(file)]
    for home in dict.fromkeys(home for home in homes if home is not None):
        site = find_site(home)
        if not find_source_like(site, file, strict=False):
            continue
        setting = own_setting(read_yaml(read_policy(policy_file)).value).summary
        compared = say_compared([f"masked by {setting}" + ", with exact scales and errors" * evidence])
        is_here = policy_file.resolve() == site.policy_file(policy.policy).resolve()
        origins = list_file_origins(site, list_files(file))
        note_look(site, policy, by=by, digest=origins[-1], compared=compared, origins=origins, is_here=is_here)


def mask_table(policy: Policy, file: Path, *, release: str | None = None, progress: Progress = lambda _: None) -> MaskedTable:
    """Return the masked table of `file`, with a secret that is used only here and not stored."""
    release = _check_release(policy, release)
    progress(f"reading {file}")
    source = find_file(file, expected=policy.declared)
    names, header_checks = match_header(source.header, policy)
    refuse(str(file), header_checks)
    outside = count_releases(policy, source, names)
    refuse(str(file), check_release_column(outside, policy) if outside is not None else [])
    needed = {name: names[name] for name in needed_columns(policy)}
    with open_raw(source, needed, release=release_filter(policy, names, release), derive=policy.derive) as table:
        progress("checking types, domains, categories and persons")
        facts = collect_facts(policy, table, count_people(policy, table))
        if facts.records == 0:
            of = f" of release {release}" if release is not None else ""
            raise DataRefused(f"there are no records{of}.", findings=(), where=str(file))
        refuse(str(file), check_facts(facts, policy))
        noticed = (*notice(facts, policy), *notice_releases(outside or NO_RELEASES, policy))
        return _mask(policy, table, release, noticed, progress)


def _mask(policy: Policy, raw: RawTable, release: str | None, noticed: tuple[str, ...], progress: Progress) -> MaskedTable:
    secret = secrets.token_bytes(SECRET_BYTES)
    context = (policy.canonical_hash(), release or "once")
    made: dict[str, pa.Table] = {}

    def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        """Return columns of the records, read when they are asked for: no more than one is in memory."""
        if table != "records":
            return select_cells(made[table], columns, where)
        columns = columns or list(policy.released_columns)
        needed = {name: typed_column(policy, name, raw) for name in needed_for(columns, where)}
        return select_cells(pa.table(needed), columns, where)

    strategy = find_strategy(policy)
    grouped = strategy.group(read, secret=secret, context=context, progress=progress)
    made |= grouped.tables
    made |= strategy.measure(read, secret=secret, context=context, progress=progress)
    masked = load_table(strategy.mask(read, secret=secret, context=context, progress=progress))
    if policy.swap is not None:  # people who are in no block keep their own values
        masked = load_table(strategy.suppress(read, masked).table)
    records = masked.column(RECORD).to_numpy()
    evidence = {name: dict(figures) for name, figures in grouped.evidence.items()}
    taken: dict[str, Clamping] = {}
    for name, column in policy.noise_columns.items():
        original, grid = read("records", [name]).column(0).to_numpy(), column.coded_grid
        numbers, is_value = read_values(policy, name, raw) if column.reasons else (original, slice(None))
        taken[name] = measure_clamping(numbers[is_value], column.exact_grid)
        before, after = compare_values(
            column, grid.snap(original[records]), masked.column(name).to_numpy(), is_nobodys=policy.rows_are_nobodys
        )
        evidence[name]["error"] = column_error(before, after)
        evidence[name]["clamping"] = asdict(taken[name])
    return MaskedTable(
        table=spell_out(masked, policy),
        records=masked.num_rows,
        claim=describe_claim(policy),
        columns=evidence,
        warnings=(*noticed, *notice_clamping(taken, policy)),
        policy_hash=policy.canonical_hash(),
        release=release,
        definition=policy.definition,
        is_swapped=policy.swap is not None,
    )


def _check_release(policy: Policy, release: str | None) -> str | None:
    if policy.releases != "once":
        return name_release(policy, release)
    if release is not None:
        raise WrongUsage(f"policy {policy.policy} is released once; it has no release {release}.", remedy="Leave --release out.")
    return None
