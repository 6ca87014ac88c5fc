"""What the people who answer for a release state of it, for the papers that an officer files: purpose, law, who may have the data
and do what with them, which risk is left and who accepted it. Nothing of it is inferred and nothing that is released depends on
it; it is approved with the policy, and is not published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.kinds.labels import Words


class Assessment(Frozen):
    """The statements of a site, each in words of its own; what is left out is told as not stated."""

    purpose: Annotated[Words | None, Option(hint="Say what the release is for.")] = None
    lawful_basis: Annotated[Words | None, Option(hint="Say on which law the processing stands.")] = None
    necessity: Annotated[Words | None, Option(hint="Say why less would not do.")] = None
    collection: Annotated[
        Words | None, Option(hint="Say how the records were collected, and where else they lie or travelled.")
    ] = None
    environment: Annotated[
        Words | None, Option(hint="Say where the confidential records lie, who has access, and how they are guarded.")
    ] = None
    bias: Annotated[
        Words | None, Option(hint="Say whom the records or the figures may serve worse, and what is done about it.")
    ] = None
    recipients_could: Annotated[Words | None, Option(hint="Say what a recipient may have, know and do.")] = None
    controls: Annotated[
        Words | None, Option(hint="Say what binds recipients: contract, access, training, or that nothing does.")
    ] = None
    consulted: Annotated[Words | None, Option(hint="Say who was asked, and what they answered.")] = None
    residual_risk: Annotated[Words | None, Option(hint="Say which risk is left, and why it is acceptable.")] = None
    decision: Annotated[Words | None, Option(hint="Say what was decided, by whom, and until when.")] = None

    def list_stated(self) -> Iterator[str]:
        """Of what it says something."""
        yield from (name for name in type(self).model_fields if getattr(self, name) is not None)

    def describe(self) -> str:
        """Of what it says something and of what not, on one line."""
        stated = list(self.list_stated())
        unstated = [name for name in type(self).model_fields if name not in stated]
        words = f"states {', '.join(stated) or 'nothing'}"
        return f"{words}; the papers will say 'not stated' of {', '.join(unstated)}" if unstated else words
