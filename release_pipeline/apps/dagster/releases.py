"""The chain of assets of one policy: each asset runs one stage of `pipeline`, partitioned by release, grouped by trust zone."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import get_input_data_version_tag

from release_pipeline import __version__
from release_pipeline.apps.dagster.metadata import (
    build_metadata,
    check_result,
    column_metadata,
    column_origins,
    count_record,
)
from release_pipeline.apps.dagster.names import Names, SiteResource, asset_prefix, chosen_release, partitions_of
from release_pipeline.apps.dagster.operations import ON_TIME, Refused, build_failure_hook, observation_of, on_time_check
from release_pipeline.apps.dagster.runs import parts_of, tag_run
from release_pipeline.errors import (
    DataRefused,
    GateFailed,
    ReleasePipelineError,
    StoreBusy,
    StoreError,
    own_frame,
    read_out_of_space,
)
from release_pipeline.pipeline.audit import audit
from release_pipeline.pipeline.candidate import freeze_candidate
from release_pipeline.pipeline.context import StageContext, StageResult
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import STAGES, Stage
from release_pipeline.pipeline.sources import open_source, version_of
from release_pipeline.pipeline.validate import validate
from release_pipeline.policy import Policy, load_policy
from release_pipeline.policy.loading.load import check_name
from release_pipeline.policy.plans.plan import describe_claim, describe_plan, make_plan
from release_pipeline.report.page import REPORT
from release_pipeline.rows.checks import families_of

ZONES = {
    "ingested": ("restricted", {"duckdb"}, "The needed columns of the source, as delivered, in the vault."),
    "validated": (
        "restricted",
        {"duckdb", "greatexpectations"},
        "Only the columns that are released, typed, after checks on counts, family by family.",
    ),
    "microaggregated": (
        "restricted",
        {"numpy"},
        "Groups of records (rank clusters of a column, or classes), or each by itself, exact statistics and noise scales.",
    ),
    "masked": ("protection", {"numpy"}, "Exact discrete Laplace noise, rows shuffled. Drawn once per release."),
    "suppressed": (
        "protection",
        {"numpy"},
        "Without small groups of released quasi-identifiers, and without records that stand out.",
    ),
    "audited": ("audit", {"numpy"}, "Utility and risk measured, gates judged on the expected error."),
    "candidate": ("audit", {"parquet", "csv"}, "The frozen output that people sign: data, evidence, and a hash over all of it."),
}
OWNERS = ["team:stewards"]
WARNINGS = "warnings"
TIMELY = "The timetable is kept: no release that was due is still to be opened."
RETRIES, WAIT_SECONDS = 5, 15


def build_release_assets(
    policy: Policy,
    names: Names = Names(),  # noqa: B008  frozen
    *,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[list[Any], Any]:
    """Return the assets of one policy and the job that runs them all for one release. `say` gets each step of a stage as it
    begins, and each warning as it arises, before any budget is spent."""
    releases, needed = partitions_of(policy, names), {names.resource}
    pool = names.name("vault", asset_prefix(policy.population))

    def key(stage: str) -> dg.AssetKey:
        return names.stage(policy.policy, stage)

    def spec(stage: str, previous: str | None) -> dict[str, Any]:
        zone, kinds, description = ZONES[stage]
        return {
            "group_name": names.name(zone),
            "kinds": kinds,
            "description": f"{description}\n\n{describe_claim(policy)}",
            "owners": OWNERS,
            "code_version": __version__,
            "deps": [key(previous)] if previous else [names.policy_file(f"{policy.policy}.yaml"), key("source")],
        }

    def simple(stage: str, previous: str | None, step: Stage) -> Any:
        @dg.asset(key=key(stage), partitions_def=releases, pool=pool, required_resource_keys=needed, **spec(stage, previous))
        def build(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
            with opened_context(context, names.site_of(context), policy, say) as release_context:
                result = step(release_context)
            if stage == "ingested":
                context.log_event(observation_of(key("source"), result.source, f"Delivered for {release_context.id}."))
            return materialized(result, release_context, key(previous or "source"))

        return build

    @dg.asset(
        key=key("validated"),
        partitions_def=releases,
        pool=pool,
        required_resource_keys=needed,
        check_specs=[
            dg.AssetCheckSpec(family, asset=key("validated"), blocking=True, description=description)
            for family, description in families_of(policy).items()
        ]
        + [dg.AssetCheckSpec(WARNINGS, asset=key("validated"), description="What stops nothing, and a person should know.")],
        **spec("validated", "ingested"),
    )
    def validated(context: dg.AssetExecutionContext) -> Iterator[Any]:
        with opened_context(context, names.site_of(context), policy, say) as release_context:
            result = validate(release_context)
        for verdict in result.verdicts:
            counts = [] if release_context.site.forbids_looks else [count_record(check) for check in verdict.checks]
            yield check_result(verdict.family, key("validated"), verdict.passed, verdict.messages, counts)
        if result.refusal:
            refused = DataRefused("The data do not meet the policy.", findings=result.refusal, where=str(release_context.id))
            words = f"The data do not meet the policy: {' '.join(result.refusal)}"
            raise Refused(words, metadata=parts_of(refused), allow_retries=False)
        for warning in result.warnings:
            say(f"warning: {warning}")
        yield dg.AssetCheckResult(
            check_name=WARNINGS,
            asset_key=key("validated"),
            passed=not result.warnings,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"found": " ".join(result.warnings) or "nothing"},
        )
        yield materialized(result, release_context, key("ingested"))

    @dg.asset(
        key=key("microaggregated"),
        partitions_def=releases,
        pool=pool,
        required_resource_keys=needed,
        check_specs=[
            dg.AssetCheckSpec(
                "gates",
                asset=key("microaggregated"),
                blocking=True,
                description="The policy's gates, judged on the expected error before budget is spent or noise drawn.",
            )
        ],
        **spec("microaggregated", "validated"),
    )
    def microaggregated(context: dg.AssetExecutionContext) -> Iterator[Any]:
        try:
            with opened_context(context, names.site_of(context), policy, say) as release_context:
                result = microaggregate(release_context)
        except GateFailed as failed:
            yield check_result("gates", key("microaggregated"), False, failed.findings)
            raise Refused(str(failed), metadata=parts_of(failed), allow_retries=False) from None
        yield materialized(result, release_context, key("validated"))
        yield check_result("gates", key("microaggregated"), True, ())

    @dg.multi_asset(
        specs=[
            dg.AssetSpec(key("audited"), **spec("audited", "suppressed")),
            dg.AssetSpec(key("candidate"), skippable=True, **spec("candidate", "audited")),
        ],
        check_specs=[
            dg.AssetCheckSpec(
                "frozen",
                asset=key("candidate"),
                description="The candidate's folder is whole: every file has the hash that its list of sums says.",
            ),
            *([dg.AssetCheckSpec(ON_TIME, asset=key("candidate"), description=TIMELY)] if policy.cron else []),
        ],
        name="__".join([*key("audited").path[:-1], "audited_and_candidate"]),
        partitions_def=releases,
        can_subset=False,
        pool=pool,
        required_resource_keys=needed,
    )
    def audited_and_candidate(context: dg.AssetExecutionContext) -> Iterator[Any]:
        with opened_context(context, names.site_of(context), policy, say) as release_context:
            audited = audit(release_context)
        yield materialized(audited, release_context, key("suppressed"), asset=key("audited"))
        with opened_context(context, names.site_of(context), policy, say) as release_context:
            candidate = freeze_candidate(release_context)
            whole = release_context.candidate_is_whole()
        yield materialized(
            candidate,
            release_context,
            key("suppressed"),
            asset=key("candidate"),
            report=release_context.site.candidate(str(release_context.id)) / REPORT,
        )
        yield check_result("frozen", key("candidate"), whole, () if whole else ("A file was changed.",))
        yield from on_time_check(policy, key("candidate"), names.site_of(context).open())

    assets = [
        _build_source(policy, names),
        simple("ingested", None, STAGES["ingested"]),
        validated,
        microaggregated,
        simple("masked", "microaggregated", STAGES["masked"]),
        simple("suppressed", "masked", STAGES["suppressed"]),
        audited_and_candidate,
    ]
    job = dg.define_asset_job(
        names.job(policy.policy),
        executor_def=dg.in_process_executor,
        hooks={build_failure_hook(names)},
        selection=dg.AssetSelection.assets(*[key(stage) for stage in ZONES]),
        description=f"One release of {policy.policy}, from its source to the candidate.",
    )
    return assets, job


def _build_source(policy: Policy, names: Names) -> Any:
    """Return the source, which is observed and not made here: its data version changes when it is delivered again. Dagster marks
    releases of an older version as stale only if it can observe the asset."""
    key = names.stage(policy.policy, "source")
    spec = dg.AssetSpec(
        key,
        group_name=names.name("restricted"),
        description=f"What the policy names as its source: {policy.source.describe()}. It is delivered, not made here.",
        owners=OWNERS,
    )

    def observe(context: dg.AssetExecutionContext) -> dg.ObserveResult:
        here = names.site_of(context)
        with readable_failures(last=True, where=here.home):
            site = here.open()
            version = version_of(site, open_source(site, site.policy(policy.policy)))
        return dg.ObserveResult(asset_key=key, data_version=dg.DataVersion(version) if version else None)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # the decorator that has no beta takes no owners
        decorate = dg.multi_observable_source_asset(
            specs=[spec], name="__".join(key.path), required_resource_keys={names.resource}
        )
        return decorate(observe)


@contextmanager
def opened_context(
    context: dg.AssetExecutionContext, site: SiteResource, policy: Policy, say: Callable[[str], None]
) -> Iterator[StageContext]:
    """Yield the context of this run's release, under the policy as it is now. Refusals are recorded; steps go to Dagster's log
    and to `say`."""

    def tell(step: str) -> None:
        context.log.info(step)
        say(step)

    tag_run(context)
    with readable_failures(last=context.op_execution_context.retry_number >= RETRIES, where=site.home):
        here, release = site.open(), chosen_release(context)
        release_context = open_release(here, policy.policy, release, progress=tell)
        with release_context.recording_refusals():
            yield release_context


def materialized(
    result: StageResult,
    release_context: StageContext,
    previous: dg.AssetKey,
    *,
    asset: dg.AssetKey | None = None,
    report: Path | None = None,
) -> dg.MaterializeResult[Any]:
    """Return Dagster's record of a stage: allow-listed facts, columns with their lineage, a version that depends on the content,
    and the path of the reviewers' report, which only readers of the vault can open."""
    metadata = build_metadata(result, show_internal=release_context.site.shows_internal_metrics())
    metadata |= column_metadata(release_context.policy, previous)
    if result.stage == "candidate":
        metadata |= {"columns": column_origins(release_context.policy)}
    if report is not None:
        metadata |= {"report": dg.MetadataValue.path(report)}
    # Otherwise Dagster would take the version observed before the step began, and the source may have been delivered since.
    tags = {get_input_data_version_tag(previous): result.source} if result.source else None
    return dg.MaterializeResult(asset_key=asset, metadata=metadata, data_version=dg.DataVersion(result.version), tags=tags)


@contextmanager
def readable_failures(*, last: bool, where: str = "") -> Iterator[None]:
    """Turn our own errors into Dagster failures while the block runs. Of foreign errors only the type is shown, since their text
    may quote cells. A busy store is tried again, unless this was the last time. `where`: the site, for the person who must make
    room."""
    try:
        yield
    except GateFailed:
        raise
    except StoreBusy as busy:
        if last:
            raise dg.Failure(str(busy), metadata=parts_of(busy), allow_retries=False) from None
        raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=WAIT_SECONDS) from None
    except ReleasePipelineError as error:
        kind = dg.Failure if isinstance(error, StoreError) else Refused
        raise kind(error.in_full, metadata=parts_of(error), allow_retries=False) from None
    except dg.Failure:
        raise
    except Exception as error:
        if (room := read_out_of_space(error, where)) is not None:
            raise dg.Failure(str(room), allow_retries=False) from None
        what = f"Internal error: {type(error).__name__} at {own_frame(error)}. Please report it: the release waits where it is."
        raise dg.Failure(what, allow_retries=False) from None


GROUP = "policies"


def fence(text: str) -> str:
    """Return the text as a block of code in Markdown, which no text can end: names of columns are written by a steward."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}\n{text}\n{marks}"


def build_policy_asset(file: Path, names: Names) -> Any:
    """Return the policy file as an asset: its hash, claim and plan, when it can be read and has no contradiction."""
    key = names.policy_file(file.name)

    @dg.multi_asset(
        name="__".join(key.path),
        specs=[
            dg.AssetSpec(
                key,
                skippable=True,
                group_name=names.name(GROUP),
                description=f"The policy file policies/{file.name}: what may be released, and how it is protected.",
                owners=OWNERS,
                kinds={"yaml"},
                code_version=__version__,
            )
        ],
        check_specs=[
            dg.AssetCheckSpec(
                "policy_is_valid",
                asset=key,
                description="The policy can be read and nothing in it contradicts itself. If not: every error with its place.",
            )
        ],
    )
    def read_policy() -> Iterator[Any]:
        try:
            policy = check_name(load_policy(file), file)
        except ReleasePipelineError as error:
            errors = "\n".join(error.details or (str(error),))
            yield dg.AssetCheckResult(check_name="policy_is_valid", asset_key=key, passed=False, metadata={"errors": errors})
            return
        plan = "\n".join(describe_plan(make_plan(policy)))
        metadata = {
            "claim": describe_claim(policy),
            "policy_hash": policy.canonical_hash(),
            "plan": dg.MetadataValue.md(fence(plan)),
        }
        yield dg.MaterializeResult(asset_key=key, metadata=metadata, data_version=dg.DataVersion(policy.canonical_hash()))
        yield dg.AssetCheckResult(check_name="policy_is_valid", asset_key=key, passed=True)

    return read_policy
