"""The pictures that lie beside a candidate's data, for the people who look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from release_pipeline.policy import Policy
from release_pipeline.report.levels import Ladder, draw_levels
from release_pipeline.store.registry import ReleaseId

LEVELS = "levels.svg"


def draw_pictures(policy: Policy, release: ReleaseId, evidence: Mapping[str, Any]) -> dict[str, str]:
    """levels.svg where columns were generalised: how far, and what that cost and left open. Figures in it are internal."""
    if not policy.generalised_columns:
        return {}
    noted, audit = evidence["columns"], evidence["audit"]
    ladders = [
        Ladder(name, ("its own range",), 0)
        if "mean_width" in noted[name]
        else Ladder(name, column.hierarchy.level_words, noted[name].get("level", noted[name].get("mean_level")))
        for name, column in policy.generalised_columns.items()
    ]
    dropped, sizes = audit["suppressed"], audit["classes"]
    figures = {
        "classes": f"{sizes['number']:,} of {sizes['smallest']:,} to {sizes['largest']:,} records, mean {sizes['mean']:.1f}",
        "suppressed": f"{dropped['grouping']:,} by grouping, {dropped['confidence']:,} that stood out, "
        f"{dropped['classes_left_too_small']:,} in classes left too small",
        "linking risk in the class": f"{audit['linking_risk_percent']:.2f}% of {audit['linking_risk_sample']:,} records tried; "
        f"a guess: {audit['linking_by_guess_percent']:.2f}%",
    }
    for name, lost in audit["information_loss"].items():
        width = noted[name].get("mean_width")
        more = f"; ranges of {width:.1f} on average" if width is not None else ""
        figures[f"information lost in {name}"] = f"{lost:.1%}{more}"
    for name in policy.noise_columns:
        told = [
            ("expected error over the variance", noted[name]["error"]),
            ("expected relative error", noted[name]["relative_error"]),
        ]
        words = ", ".join(f"{label} {value:.3g}" for label, value in told if value is not None)
        left_out = noted[name]["relative_error_left_out"]
        figures[name] = f"{words}{f' ({left_out:,} records with 0 left out)' if left_out else ''}"
        figures[f"mean of {name}"] = "{original:.5g}, released {released:.5g}".format(**audit["means"][name])
    return {LEVELS: draw_levels(f"Levels of {release} ({policy.protect.method})", ladders, figures)}
