"""Workers that are this very process: for what does not depend on who does the tasks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from release_pipeline.store import tasks
from release_pipeline.store.tasks import run_task

LATE = 2  # passes


class Twice:
    """They do every task twice, and begin with the last: as if one machine had been slow, and another been asked as well."""

    def __init__(self, url: str = "", where: str = "") -> None:
        pass

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """Each by what its file tells."""
        for number in reversed(range(count)):
            run_task(str(job), digest, number)
        return [run_task(str(job), digest, number) for number in range(count)]


class Inline(Twice):
    """The same; and one task of each pass is done once more when two others are through, with files that it opened before."""

    def run(self, job: Path, digest: str, count: int) -> list[str]:
        """As before, and then what is late."""
        for folder in [folder for folder in _LATE if folder != job.parent]:
            for _, opened in _LATE.pop(folder):
                opened.close()
        late, opened = _LATE.setdefault(job.parent, []), ExitStack()
        content = job.read_bytes()[tasks.SALT + len(tasks.tell_software()) :]
        late.append((tasks.Unpickler(content, job.parent, opened).load(), opened))
        found = Twice.run(self, job, digest, count)
        if len(late) > LATE:
            task, before = late.pop(0)
            with before:
                task(0)
        return found


_LATE: dict[Path, list[tuple[Callable[[int], object], ExitStack]]] = {}
