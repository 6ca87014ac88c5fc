"""The second stage: checks of the records, and `records`: only the released columns, typed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial

from release_pipeline.errors import DataRefused, NotPassed
from release_pipeline.formats.passed_stages import Ingested, Validated
from release_pipeline.ledger.looks import WITHHELD
from release_pipeline.masking.microaggregate import take_clamping
from release_pipeline.pipeline.checkpoints import read_checkpoint, write_checkpoint
from release_pipeline.pipeline.context import NOT_MET, StageContext, StageResult
from release_pipeline.pipeline.in_place import (
    hash_people,
    hash_tables,
    list_checked,
    list_people,
    list_read_again,
    open_tables,
    read_numbers,
    write_people,
    write_records,
)
from release_pipeline.pipeline.reading import collect_facts, count_columns, has_type, read_delivered
from release_pipeline.policy.values.scalars import canonical_name
from release_pipeline.rows.checks import (
    OWN_SUITE,
    Check,
    check_facts,
    check_release_column,
    check_roles,
    families_of,
    match_header,
    notice,
    notice_clamping,
    notice_releases,
)
from release_pipeline.rows.validate import judge_own_suite, judge_suite, list_verdicts, withhold


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts for the checks of a release, the warnings, the version of it all, the number of records and the header.
    `is_in_place`: the records stay in their source, and whose they are was written when they were ingested."""

    checks: tuple[Check, ...]
    noticed: tuple[str, ...]
    version: str
    records: int
    columns: tuple[str, ...]
    is_in_place: bool


def validate(context: StageContext) -> StageResult:
    """Write `records`: only the released columns, typed. Refused, without leaving any of it, when any family of checks fails."""
    policy = context.policy
    counted = collect_checks(context)
    checks = judge_suite(counted.checks, policy, records=counted.records, columns=counted.columns)
    verdicts = list_verdicts(checks, families_of(policy))
    withheld = context.site.forbids_looks
    if withheld:
        verdicts = withhold(verdicts, policy)
    messages = [message for verdict in verdicts for message in verdict.messages]
    if not all(verdict.passed for verdict in verdicts):
        context.count_refusal()
        with context.open_workspace() as workspace:
            workspace.drop(["records"] if counted.is_in_place else ["records", "people"])
            workspace.forget(["validated"])
        context.record_blocked(" ".join((NOT_MET, *messages)), code=DataRefused.code)
        return StageResult("validated", "", {}, verdicts=tuple(verdicts))
    with context.open_workspace() as workspace:
        checkpoint = read_checkpoint(context, workspace, Ingested, check=True, read={"raw": list_read_again(policy)})
        tables = list_checked(checkpoint)
        content = hash_tables(workspace, tables, checkpoint.snapshot)
        people = hash_people(policy, workspace)
        taken = take_clamping(policy, partial(read_numbers, policy, workspace, checkpoint))
        noticed = [*counted.noticed, *notice_clamping(taken, policy)]
        if counted.version != context.hash_version([checkpoint.version, checkpoint.records, content, people]):
            raise NotPassed(
                "another run ingested or validated it meanwhile.",
                where=str(context.id),
                remedy="Run the release from its start.",
            )
        version = context.hash_version([content])
        tables += list_people(context.site, policy, workspace, checkpoint.source)
        workspace.drop(["raw"])
        workspace.forget(["ingested"])
        _, cells = content  # simulations depend on them, not on a file's time
        keyed = context.site.keyed_hash(json.dumps(cells).encode())
        passed = {verdict.family: len(verdict.checks) for verdict in verdicts}
        payload: dict[str, object] = {
            "records": checkpoint.records,
            "warnings": noticed,
            "content": keyed,
            "checks": passed,
            "delivered": checkpoint.delivered,
            "suite": [
                {"type": check.fact.partition(" ")[2], "columns": check.column, "broken": check.count}
                for check in checks
                if check.family == OWN_SUITE
            ],
            "origins": list(checkpoint.origins),
            "snapshot": checkpoint.snapshot,
            "table_version": checkpoint.table_version,
            "clamping": {name: asdict(clamping) for name, clamping in taken.items()},
        }
        write_checkpoint(context, workspace, Validated, version, tables, **payload)
    context.probe.reached("validated")
    facts = {**context.show_rows(checkpoint.records), "checks": len(checks)}
    warnings = tuple(noticed)
    if warnings and withheld:
        warnings = (f"There are warnings, which reviewers see with the candidate. {WITHHELD}",)
    return StageResult("validated", version, facts, verdicts=tuple(verdicts), warnings=warnings)


def collect_checks(context: StageContext) -> Counted:
    """Return the counts for the checks of the ingested records. Makes `records`."""
    policy = context.policy
    with context.open_workspace() as workspace:
        checkpoint = read_checkpoint(context, workspace, Ingested, check=True)
        context.progress("counting what the checks look at")
        with context.counting_refusals():
            tables = open_tables(policy, workspace, checkpoint)
            going_on = [name for name in policy.working_columns if name in tables and has_type(policy, name, tables[name])]
            if checkpoint.snapshot:
                facts = count_columns(policy, tables, checkpoint.records, checkpoint.persons)
            else:
                raw = workspace.raw(checkpoint.source)
                facts = collect_facts(policy, raw, write_people(context.site, policy, workspace, raw))
                write_records(policy, workspace, going_on, tables, facts)
            _, header = match_header(checkpoint.header, policy)
            releases = check_release_column(checkpoint.outside, policy)
            checks = [*header, *releases, *check_roles(going_on, policy), *check_facts(facts, policy)]
            columns = tuple(canonical_name(name) for name in checkpoint.header if name)
            if policy.expectations:
                context.progress("judging the steward's own suite")
                read = partial(read_delivered, policy, workspace.raw(checkpoint.source))
                checks += judge_own_suite(
                    policy.expectations,
                    read,
                    records=facts.records,
                    columns=columns,
                    derived=policy.derive.keys() & tables.keys(),
                )
            content = hash_tables(workspace, list_checked(checkpoint), checkpoint.snapshot)
            version = context.hash_version([checkpoint.version, facts.records, content, hash_people(policy, workspace)])
    noticed = [*notice(facts, policy), *notice_releases(checkpoint.outside, policy)]
    return Counted(tuple(checks), tuple(noticed), version, facts.records, columns, bool(checkpoint.snapshot))
