"""The way of one release from its source to the candidate, stage by stage. All I/O of the stages is here.

Every stage opens the release's workspace in the vault, checks that the stage before it has run under the same policy, and writes
its tables and its note in one transaction. Noise is drawn once per release: what was drawn is served again, never drawn anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from release_pipeline import __version__
from release_pipeline.errors import Blocked, DataRefused, GateFailed, NotPassed
from release_pipeline.flow.candidate import freeze
from release_pipeline.flow.checkpoints import ReleaseCheckpoints
from release_pipeline.flow.content import content_of, stored_table
from release_pipeline.flow.evidence import read_evidence
from release_pipeline.flow.exploring.origins import list_origins
from release_pipeline.flow.exploring.runs import begin_run, charge_run, tell_stopped_runs
from release_pipeline.flow.exploring.trials import WITHHELD, note_looks
from release_pipeline.flow.exposure import everywhere_key, person_key
from release_pipeline.flow.forecast import check_memory
from release_pipeline.flow.gates import check_differencing, judge_before_charge, keep_refusal, show_refusal
from release_pipeline.flow.in_place import (
    CELLS_OF,
    Records,
    content_of_tables,
    find_place,
    keep_cells,
    list_tables,
    read_numbers,
    refuse_changed,
)
from release_pipeline.flow.passed_stages import PASSED, Audited, Ingested, Masked, Microaggregated, Suppressed, Validated
from release_pipeline.flow.reading import (
    NO_RELEASES,
    collect_facts,
    count_columns,
    count_releases,
    has_type,
    is_coded,
    needed_columns,
    number_records,
    read_delivered,
    refuse,
    release_filter,
    typed_parts,
)
from release_pipeline.flow.reservation import Reservation, next_revision, reserve, reserved_secret
from release_pipeline.flow.reviewing.page import AFTER_CHARGE, REPORT, render_report
from release_pipeline.flow.reviewing.release_context import collect_context
from release_pipeline.flow.sources import version_of
from release_pipeline.flow.states import list_statuses
from release_pipeline.flow.tables import SLICE, try_formats
from release_pipeline.policy.plan import check_rows
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.policy.sections import Person
from release_pipeline.policy.words import describe_claim
from release_pipeline.privacy.catalogue import MECHANISM_VERSION
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.report.counts import (
    COUNTS_FILE,
    PAIRS_FILE,
    render_cells,
    render_counts,
    render_tables,
)
from release_pipeline.report.tables import file_of, render_table
from release_pipeline.report.view import BLOCKS_FILE
from release_pipeline.stages.checks import (
    FAMILIES,
    IMPOSSIBLE,
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
    readable_without,
    round_up,
)
from release_pipeline.stages.column_table import ColumnTable, Parts
from release_pipeline.stages.criteria import judge_criteria, list_criteria
from release_pipeline.stages.expected_linkage import judge_linkage
from release_pipeline.stages.gates import Gate, judge_gates, judge_groups
from release_pipeline.stages.measures.groups import measure_groups
from release_pipeline.stages.microaggregate import take_clamping
from release_pipeline.stages.package import spell_out
from release_pipeline.stages.strategies import BLOCKS, CELLS, COUNTS, PAIRS, RECORD, Strategy, count_blocks, find_strategy
from release_pipeline.stages.strategies.swapping import BLOCK, SWAPPED, read_blocks
from release_pipeline.stages.suite import suite_to_json
from release_pipeline.stages.tables import TABLES, measure_tables
from release_pipeline.stages.validate import Verdict, judge_own_suite, judge_suite, list_verdicts, withhold
from release_pipeline.store.source import SourceDoor
from release_pipeline.store.vault import ReleaseWorkspace

AUDIT = "audit 4"  # changes when the figures do: what was measured otherwise is measured anew
PLOTTED = (  # of the figures of an audit, those that are worth a line over the releases; the page has all
    "error",
    "absolute_error",
    "relative_error",
    "ks",
    "sse_paper",
    "record_linkage",
    "information_loss",
    "share_suppressed",
)
MASKED = "masked"
NOT_MET = "the data do not meet the policy."
STAGES = ("ingested", "validated", "microaggregated", "masked", "suppressed", "audited", "candidate")


@dataclass(frozen=True, slots=True)
class StageResult:
    """What a stage did. `facts` may be shown to anybody who sees Dagster's UI; `internal` only where the site allows it."""

    stage: str
    version: str
    facts: dict[str, Any]
    internal: dict[str, Any] = field(default_factory=dict[str, Any])
    verdicts: tuple[Verdict, ...] = ()
    gates: tuple[Gate, ...] = ()
    words: tuple[str, ...] = ()
    source: str = ""  # the version of the source that was read

    @property
    def refusal(self) -> tuple[str, ...]:
        """Why the release must not go on, if it must not."""
        return tuple(message for verdict in self.verdicts if not verdict.passed for message in verdict.messages)


@dataclass(frozen=True, slots=True)
class Counted:
    """What the checks of a release count, what else was noticed, the version of it all, the number of records and the header."""

    checks: tuple[Check, ...]
    noticed: tuple[str, ...]
    version: str
    records: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReleaseFlow(ReleaseCheckpoints):
    """One release of one policy, and its stages as methods in the order of `STAGES`."""

    def ingest(self) -> StageResult:
        """`raw`: the needed columns of this release's records, as the source delivered them. Not without a population and room
        under its cap: the binding check comes with the charge."""
        policy = self.policy
        self.check_may_begin()
        try_formats(policy)
        source = self._source()
        delivered = self._version_of(source)
        names, checks = match_header(source.header, policy)
        refuse(source.name, [check for check in checks if not readable_without(check, policy)])
        outside = count_releases(policy, source, names) or NO_RELEASES
        needed = {name: names[name] for name in needed_columns(policy) if name in names}
        self.progress(f"ingesting {source.name}")
        origins = list_origins(self.site, policy.source)
        with self._workspace() as workspace:
            self.check_vaults(workspace)
            workspace.forget(["ingested", "validated"])
            workspace.drop(["raw", "records", *(name for name in workspace.tables() if name.startswith(CELLS_OF))])
            release, tables, snapshot = release_filter(policy, names, self.id.release), ["raw"], ""
            if (place := find_place(self.site, policy, workspace, source, needed, release)) is not None:
                kept = keep_cells(policy, workspace, place, source.name)
                tables, records, snapshot = kept.tables, kept.records, kept.snapshot
            else:
                records = workspace.ingest(source, needed, release=release, derive=policy.derived_before).count_records()
            read = content_of_tables(workspace, tables, snapshot)
            digest = self.site.keyed_hash(json.dumps(read).encode())
            begin_run(self.site, self.id, self._hash, digest=digest, origins=origins)
            if (source.written is not None or self._is_judged) and self._version_of(source) != delivered:
                raise refuse_changed(source.name)
            content: dict[str, Any] = {"records": records, "source": source.name, "header": list(source.header)}
            content |= {"outside": outside, "delivered": delivered, "origins": origins, "snapshot": snapshot}
            version = self._version([records, read])
            self._write_checkpoint(workspace, Ingested, version, tables, **content)
        self.probe.reached("ingested")
        facts = {**self.show_rows(records), "columns_read": len(needed), "columns_in_source": len(source.header)}
        return StageResult("ingested", version, facts, source=delivered)

    def collect_checks(self) -> Counted:
        """What the checks count in what was ingested. Makes `records`."""
        policy = self.policy
        with self._workspace() as workspace:
            checkpoint = self._previous(workspace, Ingested, check=True)
            self.progress("counting what the checks look at")
            with self.counting_refusals():
                if checkpoint.snapshot:
                    tables = list_tables(policy, workspace, checkpoint.source, checkpoint.tables)
                    facts = count_columns(policy, tables, checkpoint.records)
                else:
                    raw = workspace.raw(checkpoint.source)
                    tables, facts = dict.fromkeys(raw.kinds, raw), collect_facts(policy, raw)
                going_on = [name for name in policy.working_columns if name in tables and has_type(policy, name, tables[name])]

                def type_column(name: str) -> Any:
                    if name == RECORD:
                        return Parts(pa.int64(), partial(number_records, facts.records))
                    is_other = bool(facts.columns.get(name, {}).get("undeclared"))  # left as delivered; the checks tell
                    raw = tables[name]
                    return raw.categories(name) if is_other else typed_parts(policy, name, raw, facts.records)

                if not checkpoint.snapshot:
                    workspace.write("records", ColumnTable((RECORD, *going_on), facts.records, type_column))
                _, header = match_header(checkpoint.header, policy)
                releases = check_release_column(checkpoint.outside, policy)
                checks = [*header, *releases, *check_roles(going_on, policy), *check_facts(facts, policy)]
                columns = tuple(canonical_name(name) for name in checkpoint.header if name)
                if policy.expectations:
                    self.progress("judging the steward's own suite")
                    read = partial(read_delivered, policy, workspace.raw(checkpoint.source))
                    checks += judge_own_suite(
                        policy.expectations,
                        read,
                        records=facts.records,
                        columns=columns,
                        derived=policy.derive.keys() & tables.keys(),
                    )
                version = self._version([checkpoint.version, facts.records, self._content_of_records(workspace, checkpoint)])
        noticed = [*notice(facts, policy), *notice_releases(checkpoint.outside, policy)]
        return Counted(tuple(checks), tuple(noticed), version, facts.records, columns)

    def validate(self) -> StageResult:
        """`records`: only what is released, typed. Refused, with nothing left of it, when any family of checks fails."""
        policy = self.policy
        counted = self.collect_checks()
        checks = judge_suite(counted.checks, policy, records=counted.records, columns=counted.columns)
        verdicts = list_verdicts(checks, families_of(policy))
        withheld = self.site.forbids_looks
        if withheld:
            verdicts = withhold(verdicts, policy)
        messages = [message for verdict in verdicts for message in verdict.messages]
        if not all(verdict.passed for verdict in verdicts):
            self.count_refusal()
            with self._workspace() as workspace:
                workspace.drop(["records"])
                workspace.forget(["validated"])
            self.record_blocked(" ".join((NOT_MET, *messages)), code=DataRefused.code)
            return StageResult("validated", "", {}, verdicts=tuple(verdicts))
        with self._workspace() as workspace:
            checkpoint = self._previous(workspace, Ingested, check=True, read={"raw": self._read_again()})
            content = self._content_of_records(workspace, checkpoint)
            taken = take_clamping(policy, partial(read_numbers, policy, workspace, checkpoint.source, checkpoint.snapshot))
            noticed = [*counted.noticed, *notice_clamping(taken, policy)]
            if counted.version != self._version([checkpoint.version, checkpoint.records, content]):
                raise NotPassed(
                    "another run ingested or validated it meanwhile.",
                    where=str(self.id),
                    remedy="Run the release from its start.",
                )
            version = self._version([content])
            tables = [name for name in checkpoint.tables if name != "raw"] if checkpoint.snapshot else ["records"]
            if isinstance(policy.person, Person):
                column, key = policy.person.column, person_key(self.site, policy.population)
                everywhere = everywhere_key(self.site, column)
                self.progress("hashing whose records they are")
                workspace.write_people(checkpoint.source, column, key, everywhere=everywhere)
                tables.append("people")
                if policy.swap is not None:
                    workspace.write_owners(checkpoint.source, column, key, everywhere=everywhere)
                    tables.append("owners")
            workspace.drop(["raw"])
            workspace.forget(["ingested"])
            cells = content[1] if checkpoint.snapshot else content  # what is simulated depends on them, not on a file's time
            keyed = self.site.keyed_hash(json.dumps(cells).encode())
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
                "clamping": {name: asdict(clamping) for name, clamping in taken.items()},
            }
            self._write_checkpoint(workspace, Validated, version, tables, **payload)
        self.probe.reached("validated")
        facts = {**self.show_rows(checkpoint.records), "checks": len(checks)}
        words = tuple(noticed)
        if words and withheld:
            words = (f"There are warnings, which reviewers see with the candidate. {WITHHELD}",)
        return StageResult("validated", version, facts, verdicts=tuple(verdicts), words=words)

    def _read_again(self) -> list[str] | None:
        """What `validate` reads of the raw records once they were judged; None where that may be any of it."""
        policy = self.policy
        if any(is_coded(policy, name) for name in policy.columns):
            return None
        return [] if policy.person_column is None else [policy.person_column]

    def microaggregate(self) -> StageResult:
        """Reserve the loss, then what is exact: clusters, sums and scales of every noise column, in the strategy's tables."""
        policy = self.policy
        with self._workspace() as workspace:
            checkpoint = self._previous(workspace, Validated, check=True)
            with self.counting_refusals():
                check_rows(policy, checkpoint.records)
            drawn = self._find_checkpoint(workspace, Masked)
            if drawn is not None:
                served = self._serve(workspace, drawn, checkpoint)
                charge_run(self.site, self.id)
                return served
            check_memory(self.site, policy, checkpoint.records, is_copied=not checkpoint.snapshot, where=str(self.id))
            self.check_vaults(workspace)
            if self._is_judged and self._version_of(self._source()) != checkpoint.delivered:
                what = "its records were read from another version of the source than the one whose upstream checks passed."
                raise NotPassed(what, where=str(self.id), remedy="Run the release from its start.")
            with self.counting_refusals():
                check_differencing(self, workspace, list_statuses(self.site))
                records = self._open_records(workspace, checkpoint)
                foreseen = judge_before_charge(self, records, checkpoint.content)
                wanted = Reservation(policy, self.id, checkpoint.records, checkpoint.version, checkpoint.origins)
                tell_stopped_runs(self.site, self.id, self._hash)
                secret = reserve(self.site, wanted, self.probe)
            charge_run(self.site, self.id)
            version = self._version([checkpoint.version, hashlib.sha256(secret).hexdigest(), MECHANISM_VERSION])
            stored = self._find_checkpoint(workspace, Microaggregated)
            if stored is not None and stored.version == version:  # a retry must not calibrate anew: another machine may round
                self._check_tables(workspace, stored)
                return self._microaggregated(stored)
            earlier = self.find_earlier_blocks(workspace)
            strategy = find_strategy(policy, earlier=earlier, counting=records.counting)
            context = self._context(checkpoint.version)
            made = strategy.group(records.read, secret=secret, context=context, progress=self.progress)
            for name, table in made.tables.items():
                workspace.write(name, table)
            self._expose(workspace)
            if earlier is not None:
                workspace.keep_blocks(policy.policy, SWAPPED, BLOCK)
            evidence = {name: {**figures, **foreseen.errors.get(name, {})} for name, figures in made.evidence.items()}
            payload = {"input": checkpoint.version, "columns": evidence, "facts": dict(made.facts)}
            payload |= {"foreseen": foreseen.attacks} if foreseen.attacks else {}
            payload |= {"linked": foreseen.linked} if foreseen.linked is not None else {}
            stored = self._write_checkpoint(workspace, Microaggregated, version, list(made.tables), **payload)
            self.probe.reached("the clusters are made, not yet committed")
        self.probe.reached("the clusters are committed")
        return self._microaggregated(stored)

    def _version_of(self, source: SourceDoor) -> str:
        """The version of the source as it is now, which `admit` may refuse."""
        return self.admit(source) if self.admit is not None and self._is_judged else version_of(self.site, source)

    @property
    def _is_judged(self) -> bool:
        """Whether `admit` has a say: not once budget was spent, for then the charge says which records they must be."""
        return self.admit is not None and self._status().charge is None

    def mask(self) -> StageResult:
        """`masked`: noise on the statistics, rows shuffled, what was measured with noise for it, and the tables beside it;
        committed, noted as drawn, and then the secret is forgotten."""
        policy = self.policy
        with self._workspace() as workspace:
            checkpoint = self._previous(workspace, Microaggregated, check=True)
            self._check_records(workspace, checkpoint, are_read=True)
            drawn = self._find_checkpoint(workspace, Masked)
            if drawn is not None:  # an attempt may have stopped right after it committed
                self._check_tables(workspace, drawn)
                self.record_drawn(drawn.version)
                return self._masked(drawn)
            secret = reserved_secret(self.site, policy, self.id, source=checkpoint.input)
            records = self._open_records(workspace, self._previous(workspace, Validated))
            strategy, context = find_strategy(policy, counting=records.counting), self._context(checkpoint.input)
            measured = strategy.measure(records.read, secret=secret, context=context, progress=self.progress)
            records.check(str(self.id))  # margins do not tell of entries that changed places
            if policy.tables:
                cells = measure_tables(policy, workspace.read, secret=secret, context=context, progress=self.progress)
                measured = {**measured, TABLES: cells}
            for name, counted in measured.items():
                workspace.write(name, counted)
            table = strategy.mask(records.read, secret=secret, context=context, progress=self.progress)
            workspace.write(MASKED, table)
            tables = [MASKED, *measured]
            version = self._version([content_of(workspace, name) for name in tables])
            drawn = self._write_checkpoint(workspace, Masked, version, tables, input=checkpoint.input, records=table.num_rows)
            self.probe.reached("the noise is drawn, not yet committed")
        self.probe.reached("the masked table is committed")
        self.record_drawn(drawn.version)
        return self._masked(drawn)

    def suppress(self) -> StageResult:
        """`suppressed`: the masked records without those that stand out, or blocked when that is too many. Where a policy
        suppresses nothing the note vouches for the masked table once more, and there is no copy."""
        with self._workspace() as workspace:
            checkpoint = self._previous(workspace, Masked, check=True)
            for kind in PASSED:
                if kind.stage in self._strategy.suppression_reads:
                    self._previous(workspace, kind, check=True)
            masked = stored_table(workspace, MASKED)
            done = self._strategy.suppress(workspace.read, masked)
            numbers = {
                "cells_blanked": done.cells,
                "rows_dropped": done.dropped,
                "anonymity_k": done.anonymity,
                "rows": done.table.num_rows,
            }
            version = self._version([checkpoint.version, done.cells, done.dropped])
            if not done.obstacle:
                left = MASKED if done.table is masked else "suppressed"
                if left != MASKED:
                    workspace.write(left, done.table)
                figures = dict(done.figures)
                self._write_checkpoint(workspace, Suppressed, version, [left], **numbers, share=done.share, figures=figures)
        self.probe.reached("suppressed")
        if done.obstacle:
            if done.refusal and done.figures:
                keep_refusal(self, {"suppressed": dict(done.figures)})
            self.block(done.obstacle)
        shown = {name: number for name, number in numbers.items() if name != "anonymity_k"}  # of a table that may be withheld
        facts = {**shown, "share_suppressed": done.share, **self.claim_figures()}
        return StageResult("suppressed", version, facts, dict(done.figures))

    def audit(self) -> StageResult:
        """Figures of utility and risk, and the gates of the policy judged on the expected error and on the released table alone.

        Measured once: who looks at the same table again is told the same, with the same releases before it.
        """
        policy = self.policy
        with self._workspace() as workspace:
            suppressed = self._previous(workspace, Suppressed, check=True)
            clusters = self._previous(workspace, Microaggregated, check=True)
            self._check_records(workspace, clusters, are_read=True)
            version = self._version([suppressed.version, AUDIT])
            stored = self._find_checkpoint(workspace, Audited)
            if stored is None or stored.version != version:
                secret = bytes.fromhex(self.site.keyed_hash(f"audit of {self.id}".encode()))

                def streams(*purpose: Context) -> NoiseStream:
                    return noise_stream(secret, *purpose)

                released = stored_table(workspace, suppressed.table)
                blocks = None if policy.swap is None else read_blocks(workspace.read, released.column(RECORD).to_numpy())
                groups = measure_groups(released, policy, blocks)
                records = self._open_records(workspace, self._previous(workspace, Validated))
                strategy = find_strategy(policy, counting=records.counting)
                figures = strategy.audit(records.read, released, groups=groups, streams=streams, progress=self.progress)
                figures |= {"suppressed": suppressed.figures}
                figures |= {"share_suppressed": suppressed.share}
                judged = judge_gates(clusters.columns, policy.gates)
                judged += judge_linkage(policy, clusters.linked)
                judged += judge_criteria(policy, clusters.foreseen)
                judged += judge_groups(groups, policy.gates)
                context = stored.context if stored is not None else collect_context(self.site, policy, self.id)
                gates = [gate.to_json() for gate in judged]
                context = {**context, "criteria": list_criteria(policy, figures, clusters.foreseen)}
                stored = self._write_checkpoint(workspace, Audited, version, [], internal=figures, gates=gates, **context)
        self.probe.reached("audited")
        gates = stored.judged
        facts = {
            "gates": len(gates),
            "gates_passed": sum(gate.passed for gate in gates),
            **self.claim_figures(),
        }
        plotted = {name: stored.internal[name] for name in PLOTTED if name in stored.internal}
        return StageResult("audited", version, facts, plotted, gates=gates)

    def freeze(self) -> StageResult:
        """The candidate: a frozen folder with a hash over all of it. Refused unless every gate, re-read here, has passed."""
        policy = self.policy
        with self._workspace() as workspace:
            audited = self._previous(workspace, Audited)
            suppressed = self._previous(workspace, Suppressed, check=True)
            validated = self._previous(workspace, Validated)
            clusters = self._previous(workspace, Microaggregated)
            self._check_records(workspace, clusters, are_read=False)
            failed = dict.fromkeys(gate.words for gate in audited.judged if not gate.passed)
            table = stored_table(workspace, suppressed.table, list(policy.released_columns))
            refuse(str(self.id), check_roles(list(table.column_names), policy))
            facts = self.public_facts(records=validated.records, rows_out=table.num_rows, suppressed=suppressed)
            facts |= clusters.facts
            files, counts = self._tables(workspace), self._counts(workspace)
            if BLOCKS_FILE in counts:
                facts["together"] = count_blocks(workspace.read(BLOCKS))

            def spell_slices() -> Iterator[pa.Table]:
                slices = workspace.slices(suppressed.table, table.column_names, rows=SLICE)
                return map(partial(spell_out, policy=policy), slices)

            evidence = self._evidence(facts, audited, clusters, validated)
            if failed:
                page = render_report(policy, read_evidence(evidence, where=str(self.id)), stopped_at=AFTER_CHARGE)
                shown = show_refusal(self, page)
                going_on = "The release is charged; another try is a revision, charged anew."
                self.block(f"{' '.join(failed)} {shown} {going_on}", code=GateFailed.code)
            self.check_frozen()
            digest = freeze(
                self.site.candidate(str(self.id)),
                spell_slices,
                policy.publish.formats,
                evidence,
                {
                    REPORT: render_report(policy, read_evidence(evidence, where=str(self.id))),
                    **counts,
                    **files,
                },
                policy,
            )  # in the workspace: one at a time
        self.probe.reached("the candidate's folder is in its place")
        facts["candidate_hash"] = digest
        self.record_candidate(digest, facts)
        self.probe.reached("the candidate is noted")
        return StageResult("candidate", digest, facts)

    @property
    def report(self) -> Path:
        """The page for the reviewers of the candidate, in its folder."""
        return self.site.candidate(str(self.id)) / REPORT

    def run(self) -> StageResult:
        """Every stage in order, judged by the plain checks; what `run` does without Dagster."""
        with self.recording_refusals():
            self.ingest()
            validated = self.validate()
            if validated.refusal:
                raise DataRefused(NOT_MET, findings=validated.refusal, where=str(self.id))
            for stage in (self.microaggregate, self.mask, self.suppress, self.audit):
                stage()
            return self.freeze()

    def _content_of_records(self, workspace: ReleaseWorkspace, ingested: Ingested) -> Any:
        """The hashes of the records, or of their cells where they stay in their source."""
        if not ingested.snapshot:
            return content_of(workspace, "records")
        return content_of_tables(workspace, [name for name in ingested.tables if name != "raw"], ingested.snapshot)

    def _open_records(self, workspace: ReleaseWorkspace, validated: Validated) -> Records:
        """The records that were validated; refused where the source has others by now."""
        source, place = self._source() if validated.snapshot else None, None
        if source is not None:
            names, _ = match_header(source.header, self.policy)
            needed = {name: names[name] for name in needed_columns(self.policy) if name in names}
            release = release_filter(self.policy, names, self.id.release)
            place = find_place(self.site, self.policy, workspace, source, needed, release)
        key = bytes.fromhex(self.site.keyed_hash(f"sample of {self.id}".encode()))
        records = Records(self.policy, workspace, "" if source is None else source.name, place, validated.snapshot, key)
        records.check(str(self.id))
        return records

    def _evidence(
        self, facts: Mapping[str, Any], audited: Audited, clusters: Microaggregated, validated: Validated
    ) -> dict[str, Any]:
        """What the candidate's folder says of itself, for the people who sign it."""
        policy = self.policy
        noisy = "the cluster sums" if policy.protect.makes_clusters else "single values"
        return {
            "confidential": "internal figures: exact losses, scales and errors describe the data and must not be published",
            "salt": self.site.keyed_hash(f"salt of the evidence of {self.id}".encode()),  # no hash of it can be guessed at
            "tool": f"release-pipeline {__version__}",
            "release": str(self.id),
            "policy": json.loads(policy.canonical_json()),
            "facts": facts,
            "consistency": policy.consistency,
            "units": f"scales are of {noisy}, in the column's unit; errors are mean squares over the variance, both of values as "
            "the method saw them; clamping is the share of records outside the domain, and the mean square of how far they were "
            "moved over the variance of the values as they came",
            "columns": clusters.columns,
            "clamping": validated.clamping,
            "audit": audited.internal,
            "gates": audited.gates,
            "budget": audited.budget,
            "checks_passed": validated.checks,
            "expectation_suite": suite_to_json(policy),
            "warnings": validated.warnings,
            "criteria": audited.criteria,
            "own_suite": validated.suite,
            "looks": note_looks(self.list_looks()),
        }

    def _counts(self, workspace: ReleaseWorkspace) -> dict[str, str]:
        """What was measured with noise, as it is published beside the data; nothing where noise is on the data themselves."""
        tables = self._previous(workspace, Masked).tables
        if not {COUNTS, CELLS} & set(tables):
            return {}
        self._previous(workspace, Masked, check=True)
        if COUNTS in tables:
            return {COUNTS_FILE: render_counts(workspace.read(COUNTS).to_pylist(), self.policy.noise_columns)}
        columns = self.policy.noise_columns | self.policy.listed_columns
        cells = render_cells(workspace.read(CELLS).to_pylist(), columns)
        counted = {file: workspace.read(name) for name, file in ((PAIRS, PAIRS_FILE), (BLOCKS, BLOCKS_FILE)) if name in tables}
        return {COUNTS_FILE: cells} | {file: render_tables(own.column_names, own.to_pylist()) for file, own in counted.items()}

    def _tables(self, workspace: ReleaseWorkspace) -> dict[str, str]:
        """The tables that are published beside the rows."""
        if not self.policy.tables:
            return {}
        self._previous(workspace, Masked, check=True)
        cells = workspace.read(TABLES)
        return {file_of(name): render_table(tabulation, cells) for name, tabulation in self.policy.tabulations.items()}

    def _serve(self, workspace: ReleaseWorkspace, drawn: Masked, validated: Validated) -> StageResult:
        """What an earlier attempt stored, if it was for the same input and policy."""
        if drawn.policy_hash != self._hash or drawn.input != validated.version:
            raise Blocked(
                "noise was already drawn for this release, for other data or another policy; it is not drawn again.",
                where=str(self.id),
                remedy=f"Restore source and policy. {next_revision(self.id)}",
            )
        checkpoint = self._find_checkpoint(workspace, Microaggregated)
        if checkpoint is None:
            raise Blocked("an earlier attempt left no record of its clusters.", where=str(self.id), remedy=next_revision(self.id))
        return self._microaggregated(checkpoint)

    def _microaggregated(self, checkpoint: Microaggregated) -> StageResult:
        policy = self.policy
        facts = {"noise_columns": len(policy.noise_columns), "method": policy.protect.method, **self.claim_figures()}
        internal = {"expected_error": {name: checkpoint.columns[name]["error"] for name in policy.noise_columns}}
        return StageResult("microaggregated", checkpoint.version, facts, internal)

    @property
    def _strategy(self) -> Strategy:
        return find_strategy(self.policy)

    def _masked(self, drawn: Masked) -> StageResult:
        facts = {"rows": drawn.records, "claim": describe_claim(self.policy), **self.claim_figures()}
        return StageResult("masked", drawn.version, facts)


__all__ = [
    "FAMILIES",
    "IMPOSSIBLE",
    "STAGES",
    "Blocked",
    "Check",
    "ReleaseFlow",
    "StageResult",
    "families_of",
    "round_up",
]
