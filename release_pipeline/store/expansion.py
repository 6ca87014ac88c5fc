"""Texts that people write, with what the environment has in the place of ${NAME}: so that no password stands in a file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from release_pipeline.errors import SourceError


def expand(text: str, values: Mapping[str, str]) -> str:
    """`text` with every ${NAME} replaced; a name without a value means that the source is missing."""

    def look_up(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise SourceError(
                f"the source is missing: {match[1]} is not set.", remedy=f"Set the environment variable {match[1]}."
            )
        return values[match[1]]

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", look_up, text)
