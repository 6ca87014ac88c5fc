"""A cluster's folder, and what is told of it: without Spark, by workers that are this process."""

from __future__ import annotations

import pickle
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.flow import cluster, forecast, secret_files
from release_pipeline.privacy.noise import noise_stream, streams
from release_pipeline.privacy.noise.streams import NoiseError
from release_pipeline.store import shared, vault
from tests.integration.sites import TinySite, make_site
from tests.workers import Inline

FEW, ANA = 8, "ana:geheim"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinySite:
    """A site whose tables are long enough for its cluster."""
    for module in (vault, forecast):
        monkeypatch.setattr(module, "LARGE", FEW)
    monkeypatch.setattr(shared, "TASK", FEW)
    monkeypatch.setattr(shared, "BY_VALUE", 50)
    monkeypatch.setattr(cluster, "SparkWorkers", Inline)
    tiny = make_site(tmp_path / "site", gates="{min_rows: 20, differencing_below: 0}")
    (tmp_path / "shared").mkdir(mode=0o700)
    say(tiny, f"{{url: 'sc://spark.example.org', storage: {tmp_path / 'shared'}}}")
    return tiny


def say(tiny: TinySite, spark: str) -> None:
    """In site.yaml."""
    (tiny.home / "site.yaml").write_text(f"engine: spark\n{f'spark: {spark}' if spark else ''}\n")


@dataclass(slots=True)
class Watching(Inline):
    """Workers that keep every file of the folder that there is when they are asked."""

    seen: dict[str, bytes]
    modes: set[int]

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """As before, and afterwards."""
        self.look(job.parent)
        found = Inline.run(self, job, digest, count)
        self.look(job.parent)
        return found

    def look(self, folder: Path) -> None:
        """At every file."""
        for path in folder.iterdir():
            self.seen[path.name] = self.seen.get(path.name, b"") + path.read_bytes()
            self.modes.add(stat.S_IMODE(path.stat().st_mode) | stat.S_IMODE(folder.stat().st_mode))


def test_no_secret_and_no_key_of_noise_is_in_the_folder(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that of the shuffle goes there, and numbers by which ties are broken; all of it is this account's alone, and gone
    afterwards."""
    watching = Watching({}, set())
    secret = bytes(range(100, 132))
    monkeypatch.setattr(cluster, "SparkWorkers", lambda url, where: watching)
    monkeypatch.setattr(secret_files.secrets, "token_bytes", lambda count: secret[:count])
    derived: dict[bytes, tuple[Any, ...]] = {}
    before = streams.derive_key

    def derive(key: bytes, *context: Any) -> bytes:
        made = before(key, *context)
        derived[made] = context
        return made

    monkeypatch.setattr(streams, "derive_key", derive)
    assert tiny.flow().run().stage == "candidate"
    content = b"\0".join(watching.seen.values())
    assert len(watching.seen) > 100
    assert secret not in content
    told = {context[-1] for key, context in derived.items() if key in content}
    assert told == {"shuffle"}
    assert {"noise", "simulated noise"} <= {context[-1] for context in derived.values()}
    assert watching.modes <= {0o700}
    assert list((tiny.home.parent / "shared").iterdir()) == []
    with pytest.raises(NoiseError):
        pickle.dumps(noise_stream(secret))
