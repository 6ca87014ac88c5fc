"""The definitions that workspace.yaml loads: one asset per policy of the site, with a check that says whether it is valid.

A broken policy shows as a failed check with its errors; it never takes the others down.
"""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy import load_policy
from release_pipeline.policy.load import list_policies
from release_pipeline.policy.plan import describe_claim, describe_plan, make_plan

GROUP = "policies"
OWNERS = ["team:stewards"]


def build_defs(site: Path) -> dg.Definitions:
    """Definitions for the policies in `site`/policies, read anew at every check."""
    files = list_policies(site)
    return dg.Definitions(
        assets=[_policy_asset(file) for file in files],
        asset_checks=[_policy_check(file) for file in files],
        jobs=[
            dg.define_asset_job(
                "check_policies",
                selection=dg.AssetSelection.all_asset_checks(),
                description="Read every policy of the site and say what is wrong with it, or what it will do.",
            )
        ],
        executor=dg.in_process_executor,
    )


def _policy_key(file: Path) -> dg.AssetKey:
    return dg.AssetKey(["policy", file.stem.replace("-", "_")])


def _policy_asset(file: Path) -> dg.AssetSpec:
    return dg.AssetSpec(
        _policy_key(file),
        group_name=GROUP,
        description=f"The policy file policies/{file.name}: what may be released, and how it is protected.",
        owners=OWNERS,
        kinds={"yaml"},
    )


def _policy_check(file: Path) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=_policy_key(file),
        name="policy_is_valid",
        description="The policy can be read and nothing in it contradicts itself. On failure: every error with its place.",
    )
    def policy_is_valid() -> dg.AssetCheckResult:
        try:
            policy = load_policy(file)
        except ReleasePipelineError as error:
            lines = getattr(error, "problems", ()) or (str(error),)
            return dg.AssetCheckResult(passed=False, metadata={"errors": dg.MetadataValue.md("\n".join(f"- {x}" for x in lines))})
        plan = "\n".join(describe_plan(make_plan(policy)))
        return dg.AssetCheckResult(
            passed=True,
            metadata={
                "claim": describe_claim(policy),
                "policy_hash": policy.canonical_hash(),
                "plan": dg.MetadataValue.md(f"```\n{plan}\n```"),
            },
        )

    return policy_is_valid


defs = build_defs(Path(os.environ.get("RELEASE_PIPELINE_HOME", ".")))
