"""The sentences that readers see, one file for each audience, so that a translator needs no code: `en/public.toml` for readers
of a package, `en/policy.toml` for what follows from a policy, on every page, `en/kit.toml` for the analyst's kit on a card,
`en/analyst.toml` for users of that kit, `en/reviewers.toml`, `en/status.toml` and `en/explore.toml` for the people of a site,
`en/demo.toml` for the demo, and `en/figures.toml` for how numbers and dates are written. The papers that an officer files have
their texts in `pages/templates/papers/`.

A file has tables of sentences by key, with named places like {k} that the program fills; a literal brace is doubled. Sentences
under `page` are HTML and those under `note` are Markdown, where a line ends as in the file; all others are plain text, escaped
where they are used. tests/unit/test_sentences.py checks that every key and place that is used exists, and is used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "en"


class Catalogue:
    """The sentences of one audience."""

    def __init__(self, audience: str) -> None:
        self.audience = audience

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the sentence of this key, with every place filled. Raises KeyError for an unknown key, or a place without its
        value."""
        return self.sentences[key].format_map(values)

    def read_section(self, section: str) -> dict[str, str]:
        """Return the sentences under a key, by the rest of theirs; they have no places."""
        start = f"{section}."
        return {key.removeprefix(start): text.format() for key, text in self.sentences.items() if key.startswith(start)}

    def read_phrases(self, section: str) -> dict[str, str]:
        """Return the sentences under a key, by the rest of theirs, with their places unfilled."""
        start = f"{section}."
        return {key.removeprefix(start): text for key, text in self.sentences.items() if key.startswith(start)}

    @cached_property
    def sentences(self) -> Mapping[str, str]:
        """Return every sentence by its key, as the file has it."""
        text = (HERE / f"{self.audience}.toml").read_text(encoding="utf-8")
        return dict(_list_sentences(tomllib.loads(text)))


def _list_sentences(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield above + key, value
        else:
            yield from _list_sentences(value, f"{above}{key}.")


PUBLIC = Catalogue("public")
REVIEWERS = Catalogue("reviewers")
KIT = Catalogue("kit")
POLICY = Catalogue("policy")
FIGURES = Catalogue("figures")
ANALYST = Catalogue("analyst")
STATUS = Catalogue("status")
EXPLORE = Catalogue("explore")
DEMO = Catalogue("demo")
