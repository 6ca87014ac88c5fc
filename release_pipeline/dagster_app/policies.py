"""Every policy file of a site as an asset, with a check that says whether it is valid: a broken one fails here alone."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.site import check_name
from release_pipeline.policy import load_policy
from release_pipeline.policy.plan import describe_claim, describe_plan, make_plan

GROUP = "policies"


def policy_key(file_name: str) -> dg.AssetKey:
    """The key of a policy file's asset."""
    return dg.AssetKey(["policy", Path(file_name).stem.replace("-", "_")])


def build_policy_asset(file: Path) -> dg.AssetSpec:
    """The policy file as something that Dagster knows of and does not make."""
    return dg.AssetSpec(
        policy_key(file.name),
        group_name=GROUP,
        description=f"The policy file policies/{file.name}: what may be released, and how it is protected.",
        owners=["team:stewards"],
        kinds={"yaml"},
    )


def build_policy_check(file: Path) -> dg.AssetChecksDefinition:
    """Whether the policy can be read and nothing in it contradicts itself."""

    @dg.asset_check(
        asset=policy_key(file.name),
        name="policy_is_valid",
        description="The policy can be read and nothing in it contradicts itself. On failure: every error with its place.",
    )
    def policy_is_valid() -> dg.AssetCheckResult:
        try:
            policy = check_name(load_policy(file), file)
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
