"""The demo: one wave of the RAND Health Insurance Experiment, masked under policies/rand-hie.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.mask import MaskedTable, Progress, mask_file
from release_pipeline.policy import Policy, load_policy
from release_pipeline.store.source import find_file, open_raw

_INSIDE_STATSMODELS = Path("datasets/randhie/src/randhie.csv")


def demo_policy() -> Policy:
    """The policy of the demo, from the installed package or the checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "policies" / "rand-hie.yaml"
    return load_policy(inside if inside.is_file() else package.parent / "policies" / "rand-hie.yaml")


def demo_data() -> Path:
    """The data file inside the statsmodels wheel, which is found without importing it."""
    spec = find_spec("statsmodels")
    if spec is not None and spec.origin is not None and (file := Path(spec.origin).parent / _INSIDE_STATSMODELS).is_file():
        return file
    raise ReleasePipelineError(
        "the demo's data are not here: they come inside the statsmodels wheel.",
        remedy="pip install 'release-pipeline[demo]'",
    )


def run_demo(folder: Path, *, release: str, progress: Progress) -> Iterator[str]:
    """Mask one wave into `folder`, replacing what was there of that wave, and tell in lines what was done to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongUsage(f"the folder cannot be made: {error.strerror}.", where=str(folder), remedy="Name another.") from None
    policy, data = demo_policy(), demo_data()
    output = folder / f"rand-hie-{release}.csv"
    evidence = output.with_suffix(".evidence.json")
    masked = mask_file(policy, data, output, release=release, evidence=evidence, overwrite=True, progress=progress)
    yield ""
    yield f"RAND Health Insurance Experiment, wave {release}: {masked.records:,} people, one record each."
    yield f"Claim: {masked.claim}."
    yield f"Method: {policy.protect.method}, k = {policy.protect.k} records per cluster (not {policy.protect.k}-anonymity)."
    yield ""
    yield from _compare(policy, masked, data, release)
    yield ""
    yield "error: mean squared difference of the records over the column's variance; 1 is no better than publishing the mean."
    yield "The columns before and after stand side by side only because these data are public; with yours that is internal."
    yield ""
    yield f"  {output}    the masked wave, rows shuffled; not a release, for no ledger accounts for it"
    yield f"  {evidence}    internal evidence: scales, exact losses, errors"
    yield "  policies/rand-hie.yaml    the policy; 'release-pipeline check' explains it"


def _compare(policy: Policy, masked: MaskedTable, data: Path, release: str) -> Iterator[str]:
    yield f"{'column':<10}{'epsilon':>8}{'clusters':>10}{'error':>8}   {'mean':>19}   {'median':>19}   {'90th percentile':>19}"
    yield f"{'':<36}   {'before':>9} {'after':>9}   {'before':>9} {'after':>9}   {'before':>9} {'after':>9}"
    names = {name: name for name in policy.noise_columns}
    column_of_release = policy.source.release_column
    where = (column_of_release, release) if column_of_release else None
    with open_raw(find_file(data, expected=policy.declared), names, release=where) as source:
        for name, evidence in masked.columns.items():
            before, after = source.numbers(name), masked.table.column(name).to_numpy()
            pairs = "   ".join(f"{_short(float(f(before)))} {_short(float(f(after)))}" for f in (np.mean, np.median, _ninetieth))
            yield f"{name:<10}{evidence.epsilon:>8}{evidence.clusters:>10,}{evidence.error:>8.3f}   {pairs}"


def _ninetieth(values: npt.NDArray[np.float64]) -> float:
    return float(np.quantile(values, 0.9))


def _short(number: float) -> str:
    return f"{number:>9,.0f}" if abs(number) >= 1000 else f"{number:>9,.2f}"
