"""The way of one release from its source to the candidate, stage by stage. All I/O of the stages is here.

Every stage opens the release's workspace in the vault, checks that the stage before it has run under the same policy, and writes
its tables and its note in one transaction. Noise is drawn once per release: what was drawn is served again, never drawn anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from release_pipeline.audit.gates import Gate, judge_gates, judge_groups, measure_groups
from release_pipeline.audit.package import spell_out
from release_pipeline.errors import Blocked, DataRefused, GateFailed, NotPassed
from release_pipeline.formats.evidence import read_evidence
from release_pipeline.formats.passed_stages import PASSED, Audited, Ingested, Masked, Microaggregated, Suppressed, Validated
from release_pipeline.ledger.looks import WITHHELD, begin_run, charge_run, tell_stopped_runs
from release_pipeline.ledger.states import list_statuses
from release_pipeline.masking import BLOCKS, RECORD, Strategy, count_blocks, find_strategy
from release_pipeline.masking.criteria import judge_criteria, list_criteria
from release_pipeline.masking.microaggregate import take_clamping
from release_pipeline.masking.simulation import judge_linkage
from release_pipeline.masking.swapping import BLOCK, SWAPPED, read_blocks
from release_pipeline.masking.tables import TABLES, measure_tables
from release_pipeline.mechanisms.catalogue import MECHANISM_VERSION
from release_pipeline.mechanisms.noise import Context, NoiseStream, noise_stream
from release_pipeline.pipeline.candidate import BESIDE, collect_context, collect_evidence, freeze, render_beside
from release_pipeline.pipeline.checkpoints import ReleaseCheckpoints
from release_pipeline.pipeline.forecast import check_memory
from release_pipeline.pipeline.gates import check_differencing, judge_before_charge, keep_refusal, show_refusal
from release_pipeline.pipeline.in_place import (
    choose_columns,
    hash_tables,
    keep_records,
    list_checked,
    list_read_again,
    open_records,
    open_tables,
    read_numbers,
    refuse_changed,
    stored_table,
    write_people,
    write_records,
)
from release_pipeline.pipeline.reading import (
    NO_RELEASES,
    collect_facts,
    count_columns,
    count_releases,
    has_type,
    read_delivered,
    refuse,
)
from release_pipeline.pipeline.reservation import Reservation, next_revision, reserve, reserved_secret
from release_pipeline.pipeline.sources import list_origins, version_of
from release_pipeline.pipeline.tables import SLICE, try_formats
from release_pipeline.policy.file.sections import Person
from release_pipeline.policy.plans.plan import check_rows, describe_claim
from release_pipeline.policy.values.scalars import canonical_name
from release_pipeline.report.page import AFTER_CHARGE, REPORT, render_report
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
    readable_without,
)
from release_pipeline.rows.validate import Verdict, judge_own_suite, judge_suite, list_verdicts, withhold
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
        columns, release = choose_columns(policy, source, self.id.release)
        self.progress(f"ingesting {source.name}")
        origins = list_origins(self.site, policy.source)
        with self._workspace() as workspace:
            self.check_vaults(workspace)
            workspace.forget(["ingested", "validated"])
            kept = keep_records(self.site, policy, workspace, source, columns, release)
            read = hash_tables(workspace, kept.tables, kept.snapshot)
            digest = self.site.keyed_hash(json.dumps(read).encode())
            begin_run(self.site, self.id, self._hash, digest=digest, origins=origins)
            if (source.written is not None or self._is_judged) and self._version_of(source) != delivered:
                raise refuse_changed(source.name)
            content: dict[str, Any] = {"records": kept.records, "source": source.name, "header": list(source.header)}
            content |= {"outside": outside, "delivered": delivered, "origins": origins, "snapshot": kept.snapshot}
            version = self._version([kept.records, read])
            self._write_checkpoint(workspace, Ingested, version, kept.tables, **content)
        self.probe.reached("ingested")
        facts = {**self.show_rows(kept.records), "columns_read": len(columns), "columns_in_source": len(source.header)}
        return StageResult("ingested", version, facts, source=delivered)

    def collect_checks(self) -> Counted:
        """What the checks count in what was ingested. Makes `records`."""
        policy = self.policy
        with self._workspace() as workspace:
            checkpoint = self._previous(workspace, Ingested, check=True)
            self.progress("counting what the checks look at")
            with self.counting_refusals():
                tables = open_tables(policy, workspace, checkpoint)
                going_on = [name for name in policy.working_columns if name in tables and has_type(policy, name, tables[name])]
                if checkpoint.snapshot:
                    facts = count_columns(policy, tables, checkpoint.records)
                else:
                    facts = collect_facts(policy, workspace.raw(checkpoint.source))
                    write_records(policy, workspace, going_on, tables, facts)
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
                content = hash_tables(workspace, list_checked(checkpoint), checkpoint.snapshot)
                version = self._version([checkpoint.version, facts.records, content])
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
            checkpoint = self._previous(workspace, Ingested, check=True, read={"raw": list_read_again(policy)})
            tables = list_checked(checkpoint)
            content = hash_tables(workspace, tables, checkpoint.snapshot)
            taken = take_clamping(policy, partial(read_numbers, policy, workspace, checkpoint))
            noticed = [*counted.noticed, *notice_clamping(taken, policy)]
            if counted.version != self._version([checkpoint.version, checkpoint.records, content]):
                raise NotPassed(
                    "another run ingested or validated it meanwhile.",
                    where=str(self.id),
                    remedy="Run the release from its start.",
                )
            version = self._version([content])
            if isinstance(policy.person, Person):
                self.progress("hashing whose records they are")
                tables += write_people(self.site, policy, workspace, checkpoint.source)
            workspace.drop(["raw"])
            workspace.forget(["ingested"])
            _, cells = content  # what is simulated depends on them, not on a file's time
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
                records = open_records(self, workspace, checkpoint)
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
            records = open_records(self, workspace, self._previous(workspace, Validated))
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
            version = self._version([workspace.hash_table(name) for name in tables])
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
                records = open_records(self, workspace, self._previous(workspace, Validated))
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
            masked = self._previous(workspace, Masked, check=True, read=dict.fromkeys(BESIDE))
            beside = render_beside(policy, workspace, masked.tables)
            if BLOCKS in masked.tables:
                facts["together"] = count_blocks(workspace.read(BLOCKS))

            def spell_slices() -> Iterator[pa.Table]:
                slices = workspace.slices(suppressed.table, table.column_names, rows=SLICE)
                return map(partial(spell_out, policy=policy), slices)

            evidence = collect_evidence(self, facts, validated, clusters, audited)
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
                    **beside,
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
