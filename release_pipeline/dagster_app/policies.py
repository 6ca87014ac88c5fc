"""Every policy file of a site as an asset, with a check that says whether it is valid: a broken one fails here alone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg

from release_pipeline import __version__
from release_pipeline.dagster_app.names import Names
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy import load_policy
from release_pipeline.policy.load import check_name
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.words import describe_claim

GROUP = "policies"


def fence(text: str) -> str:
    """The text as a block of code in Markdown, which nothing in it ends: names of columns are a steward's words."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}\n{text}\n{marks}"


def build_policy_asset(file: Path, names: Names) -> Any:
    """The policy file as an asset: its hash, claim and plan, when it can be read and nothing in it contradicts itself."""
    key = names.policy_file(file.name)

    @dg.multi_asset(
        name="__".join(key.path),
        specs=[
            dg.AssetSpec(
                key,
                skippable=True,
                group_name=names.name(GROUP),
                description=f"The policy file policies/{file.name}: what may be released, and how it is protected.",
                owners=["team:stewards"],
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
