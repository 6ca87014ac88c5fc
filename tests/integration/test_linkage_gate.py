"""A limit on linkage, from the policy to the refusal: judged on simulated releases, and nothing is spent."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.errors import GateFailed
from release_pipeline.flow.demo import COLUMNS_DEMO, find_demo_data, find_demo_policy
from release_pipeline.flow.evidence import AuditFigures, load_evidence
from release_pipeline.stages import audit
from release_pipeline.stages.expected_linkage import DRAWS
from release_pipeline.store import vault
from tests.integration.sites import TinySite, make_rows, make_site
from tests.integration.test_parts import make_parted
from tests.integration.test_whole_table import PARTS, make_people

pytestmark = pytest.mark.slow
IDP = "{method: idp-cbls, epsilon: 4, k: 5}"
NAME = "linkage by all released columns"


def refuse(tiny: TinySite, policy: str = "people") -> tuple[GateFailed, dict[str, Any]]:
    """The refusal of a run, and what is in the vault of it."""
    with pytest.raises(GateFailed) as refused:
        tiny.flow(None if tiny.site.policy(policy).releases == "once" else "1", policy).run()
    [file] = (tiny.site.vault / "refused").glob(f"*{policy}*.json")
    return refused.value, json.loads(file.read_text())


def as_percent(share: float, rounding: str) -> str:
    return f"{(Decimal(share) * 100).quantize(Decimal('0.0001'), rounding=rounding):f}%"


def test_the_policies_of_the_demo_are_refused_at_ten_percent(tmp_path: Path) -> None:
    """In words that name the columns and hold no figure, before anything is charged; the page in the vault has the ladder."""
    tiny = TinySite(tmp_path / "site")
    (tiny.home / "policies").mkdir(parents=True)
    (tiny.home / "data").mkdir()
    (tiny.home / "data" / "randhie.csv").write_bytes(find_demo_data().read_bytes())
    (tiny.home / "populations.yaml").write_text(COLUMNS_DEMO.populations)
    for name in COLUMNS_DEMO.policies:
        text = find_demo_policy(name).read_text()
        (tiny.home / "policies" / f"{name}.yaml").write_text(text.replace("gates: {", "gates: {linkage: 10%, "))
        refused, figures = refuse(tiny, name)
        assert "all released columns together link more than 10% of the rows (the figure is in the vault)." in refused.what
        assert refused.remedy is not None
        one, two = (" and ".join(rung["columns"]) for rung in figures["foreseen_ladder"][1:3])
        more = "no more than that" if name == "rand-hie" else "more than that"
        assert refused.remedy.startswith(
            f"Knowing only the kept columns links no more than that. Knowing {one} too links {more}. "
            f"Knowing {two} too links more than that. "
        )
        assert "Release fewer columns, coarser groups, or synthetic rows (dp-table). No noise was drawn" in refused.remedy
        ladder = figures["foreseen_ladder"]
        assert [rung["masked"] for rung in ladder] == [0, 1, 2, 4]
        assert ladder[0]["linked"]["value"] < 0.05
        assert ladder[-1]["linked"]["value"] > 0.5, "site and sex count: without them idp-cbls linked about a third"
        [page] = (tiny.site.vault / "refused").glob(f"{figures['release'].replace('/', '*')}*.html")
        shown = page.read_text()
        assert "This is of simulated releases, which nobody gets" in shown
        assert "Someone who knows only the kept columns finds the row in" in shown
        for rung in ladder:
            assert f"{rung['linked']['value']:.4g}" not in refused.in_full
    assert tiny.charges() == []


def test_a_release_just_passes_and_just_does_not(tmp_path: Path) -> None:
    """At the limit and below it; the same figure each time, whatever else of the method is changed a bit."""
    tiny = make_site(tmp_path / "site", protect=IDP, gates="{min_rows: 20, linkage: 0.0001%}")
    tiny.fix_key(bytes(32))
    _, figures = refuse(tiny)
    first = figures["foreseen_ladder"][-1]["linked"]["value"]
    assert 0 < first < 1
    assert refuse(tiny)[1] == figures
    tiny.write_policy(protect=IDP, gates="{min_rows: 20, linkage: 100%}")
    tiny.flow().run()
    [gate] = [gate for gate in load_evidence(tiny.folder()).gates if gate.name == NAME]
    assert gate.value is not None
    highest = gate.value
    assert highest >= first, "the highest of several draws"

    other = make_site(
        tmp_path / "other", protect=IDP, gates=f"{{min_rows: 20, linkage: {as_percent(highest - 1e-6, ROUND_FLOOR)}}}"
    )
    other.fix_key(bytes(32))
    refuse(other)
    other.write_policy(protect=IDP, gates=f"{{min_rows: 20, linkage: {as_percent(highest, ROUND_CEILING)}}}")
    other.flow().run()
    assert not list((other.site.vault / "refused").glob("*"))
    assert [gate.value for gate in load_evidence(other.folder()).gates if gate.name == NAME] == [highest]


def test_what_is_judged_is_not_the_noise_that_is_released(tmp_path: Path) -> None:
    """The figure of the release is another one, and is on the page without a limit."""
    tiny = make_site(tmp_path / "site", rows=make_rows(200), protect=IDP, gates="{min_rows: 20, linkage: 100%}")
    tiny.fix_key(bytes(32))
    tiny.flow().run()
    evidence = load_evidence(tiny.folder())
    found = evidence.figures_of(AuditFigures)
    assert found.record_linkage is not None
    [gate] = [gate for gate in evidence.gates if gate.name == NAME]
    assert gate.value != found.record_linkage.value
    assert [rung.masked for rung in found.linkage_ladder] == [0, 1, 2]
    assert found.record_linkage_by_chance == pytest.approx(found.linkage_ladder[0].linked.value)


def test_a_large_table_is_simulated_once_and_linked_in_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of its records are masked; the tables of groups lie in the vault meanwhile, and nothing of them is left."""
    parts = {"protect": IDP, "gates": "{min_rows: 20, linkage: 100%}"}
    made: list[str] = []
    tables: dict[bool, set[str]] = {}
    values: dict[bool, list[float]] = {}
    for is_large in (False, True):
        tiny = make_site(tmp_path / f"{is_large}", rows=make_rows(300), **parts)
        tiny.fix_key(bytes(range(32)))
        with monkeypatch.context() as patch:
            patch.setattr(audit, "ATTACKED_SAMPLE", 100)
            if is_large:
                patch.setattr(vault, "LARGE", 8)
            flow = tiny.flow()
            object.__setattr__(flow, "progress", made.append)
            flow.run()
        values[is_large] = [gate.value for gate in load_evidence(tiny.folder()).gates if gate.name == NAME]
        tables[is_large] = {name.split("_column_")[0] for name in tiny.tables()}
    assert values[False] == values[True]
    assert not any(name.startswith("simulated") for name in tables[True])
    assert sum("linking a simulated release" in line for line in made) == 2, "one draw each"
    assert DRAWS > 1


def test_rows_of_nobody_pass(tmp_path: Path) -> None:
    """No row of a synthetic table has an original: the page says so next to the limit."""
    tiny = make_site(
        tmp_path / "site", rows=make_people(), cap="releases: 2", **{**PARTS, "gates": "{min_rows: 200, linkage: 1%}"}
    )
    tiny.flow().run()
    [gate] = [gate for gate in load_evidence(tiny.folder()).gates if gate.name == NAME]
    assert (gate.value, gate.passed) == (0.0, True)
    assert gate.basis == "rows are synthetic: no row has an original that it could be linked to"
    assert "no row has an original that it could be linked to" in (tiny.folder() / "report.html").read_text()


def test_random_parts_are_judged_too(tmp_path: Path) -> None:
    """Each draw has parts of its own."""
    tiny = make_parted(tmp_path / "site", gates="{min_rows: 60, linkage: 0.0001%}")
    _, figures = refuse(tiny)
    assert figures["foreseen_ladder"][-1]["linked"]["value"] > 0
    tiny = make_parted(tmp_path / "other", gates="{min_rows: 60, linkage: 100%}")
    tiny.flow().run()
    assert any(gate.name == NAME for gate in load_evidence(tiny.folder("once")).gates)
