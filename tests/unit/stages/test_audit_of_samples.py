"""The audit of a synthetic table of very many records: who is in a sample is found in a table that is made of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.privacy.noise import Context, NoiseStream, noise_stream
from release_pipeline.stages import audit_synthetic
from release_pipeline.stages.compared import Compared, Read

RECORDS = 3_000
TEXT = """\
policy: many
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
protect: {method: dp-table, epsilon: 8}
columns:
  town: {role: quasi, do: synthesise, values: [north, south, east]}
  pay:  {role: confidential, do: synthesise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
  rent: {role: confidential, do: synthesise, domain: [0, 20000], grid: 1, outside: clamp, why: known}
gates: {min_rows: 2000}
publish: {formats: [csv]}
about: {title: Many, description: Made up, licence: CC0-1.0, publisher: {name: nobody}, contact: {email: nobody@example.org}}
"""


def read_people(table: str, columns: Sequence[str] | None) -> pa.Table:
    """Records that are all different."""
    draw = np.random.default_rng(1)
    towns = np.array(["north", "south", "east"], dtype=object)[draw.integers(0, 3, RECORDS)]
    people = {"town": pa.array(towns)} | {name: pa.array(draw.permutation(20_000)[:RECORDS] * 1.0) for name in ("pay", "rent")}
    return pa.table({name: pa.chunked_array([people[name]]) for name in columns or people})


def stream(*purpose: Context) -> NoiseStream:
    """Random choices of the audit."""
    return noise_stream(bytes(32), *purpose)


@pytest.mark.parametrize("most", [600, RECORDS])
def test_a_table_that_copies_people_is_found_out_in_a_sample(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is in it has a row just like theirs, and nobody who was left out; and how many were tried is told."""
    monkeypatch.setattr(audit_synthetic, "ATTACKED_SAMPLE", most)
    policy: Policy = parse_policy(TEXT, name="many.yaml")
    made: list[int] = []

    def copy(read: Read) -> pa.Table:
        table = read("records", list(policy.released_columns))
        made.append(table.num_rows)
        return table

    people = read_people("records", None)
    compared = Compared(policy, read_people, people, np.arange(people.num_rows), people, is_nobodys=True)
    found = audit_synthetic.audit_synthetic(compared, remake=copy, streams=stream, progress=lambda _: None)
    tried = min(500, most // 3)
    assert made == [most - tried]
    assert (found["closest"]["equal"]["value"], found["closest"]["equal"]["tried"]) == (1, tried)
    assert found["closest"]["control_equal"]["value"] == 0
    among = {attack["attack"]["among"] for attack in found["inference"].values()}
    assert among == {most}, "of the records, among whom strangers count once"
    assert found.get("attacked_sample") == (None if most == RECORDS else {"tried": most, "among": RECORDS})
