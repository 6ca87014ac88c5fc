"""What the catalogue of methods says, in the language that is spoken (`sentences.speaking`): in English word for word as it
stands in the entries beside this module, in another language as its translators read it (`sentences/de/formal.toml`).

A claim is what is stated in English, for that is what docs/mechanisms.md proves; pages in another language have both.
"""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.catalogue import METHODS
from release_pipeline.privacy.catalogue.definitions import DEFINITIONS, SCALES_FIXED
from release_pipeline.privacy.catalogue.spec import ClaimSpec, Definition, ListLoss, MethodSpec
from release_pipeline.privacy.catalogue.tables import TABLE_CLAIMS, TableClaim
from release_pipeline.sentences import read_stated

_SCALES = "scales_fixed"
_OWN = "this project's own"  # how the paper of a method begins that has none


def read_statement(claim: ClaimSpec | TableClaim) -> str:
    """The formal statement of a claim."""
    return read_stated(_key_of_statement(claim), claim.statement)


def read_name(definition: Definition) -> str:
    """The name of a definition."""
    return read_stated(f"definition.{definition.key}.name", definition.name)


def read_short(definition: Definition) -> str:
    """The same in short."""
    return read_stated(f"definition.{definition.key}.short", definition.short)


def read_summary(method: MethodSpec) -> str:
    """What a method does, in a line."""
    return read_stated(f"method.{method.name}.summary", method.summary)


def read_paper(method: MethodSpec) -> str:
    """Where a method is from: a paper by its title, which has no language but its own, or words of this project."""
    return read_stated(f"method.{method.name}.paper", method.paper) if method.paper.startswith(_OWN) else method.paper


def read_means(method: MethodSpec) -> str:
    """Why the analyst's kit declines means; empty where it does not."""
    return method.kit.means and read_stated(f"method.{method.name}.means", method.kit.means)


def read_slopes(method: MethodSpec) -> str:
    """Why it declines links between columns; empty where it does not."""
    return method.kit.slopes and read_stated(f"method.{method.name}.slopes", method.kit.slopes)


def read_losses(lists: ListLoss) -> str:
    """What the whole list of a column can lose."""
    return read_stated(f"lists.{lists.words}", lists.words)


def read_scales() -> str:
    """What a claim supposes of the noise scales, where it does."""
    return read_stated(_SCALES, SCALES_FIXED)


def list_stated() -> Iterator[tuple[str, str]]:
    """Every key with its English text: what a language needs a reading of."""
    found: dict[str, str] = {_SCALES: SCALES_FIXED}
    for definition in DEFINITIONS.values():
        found |= {f"definition.{definition.key}.name": definition.name, f"definition.{definition.key}.short": definition.short}
    for method in METHODS.values():
        found[f"method.{method.name}.summary"] = method.summary
        if method.paper.startswith(_OWN):
            found[f"method.{method.name}.paper"] = method.paper
        found |= {f"method.{method.name}.{name}": why for name in ("means", "slopes") if (why := getattr(method.kit, name))}
        for claim in method.claims:
            found |= {_key_of_statement(claim): claim.statement, f"lists.{claim.lists.words}": claim.lists.words}
    found |= {_key_of_statement(claim): claim.statement for claim in TABLE_CLAIMS}
    yield from sorted(found.items())


def _key_of_statement(claim: ClaimSpec | TableClaim) -> str:
    return f"statement.{claim.section}"
