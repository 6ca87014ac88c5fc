"""Linking as KEA18 has it: of a released record, only originals of its own class count."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.arrays import Arrays, make, pick
from release_pipeline.privacy.class_noise import class_sizes, has_class
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, shuffled_first
from release_pipeline.privacy.noise.streams import WORDS, LentWords
from release_pipeline.privacy.risk import record_linkage
from release_pipeline.privacy.utility import variance_of
from release_pipeline.stages.audit import ATTACKED_SAMPLE, Streams
from release_pipeline.stages.compared import Compared, Places
from release_pipeline.stages.measures.linkage import LINKAGE_SAMPLE

CANDIDATES = 1_000_000  # originals among which records are linked, where more than `ATTACKED_SAMPLE` were released
_UNIT = 2.0**64  # what random words are below


def link_within(compared: Compared, group: IntArray, released: IntArray, streams: Streams) -> dict[str, Any]:
    """How many of some released records lie nearest to their own original, and how many a guess within the class would hit.
    `group`: the class of each original, -1 for none; `released`: that of each released record.

    Where very many records were released, those of large classes are linked among some of its originals, drawn at random, and
    their own: there rows lie farther apart, so that their own stands out more, and a guess hits more often (`linking_among`)."""
    arrays, rows, names = compared.arrays, len(compared.own), list(compared.policy.noise_columns)
    tried = shuffled_first(rows, LINKAGE_SAMPLE, streams("linkage within classes"))
    own, sizes = compared.own[tried], class_sizes(group, arrays=arrays)
    is_member = make(arrays, has_class, group, dtype=np.bool_)
    classes, share = np.unique(group[own]), np.ones(len(sizes))
    if rows > ATTACKED_SAMPLE:
        share[:] = 0.0
        share[classes] = np.minimum(CANDIDATES / len(classes) / sizes[classes], 1.0)
    candidates = _draw(group, share, own, streams("originals of classes"), arrays)
    original, masked = np.empty((len(candidates), len(names))), np.empty((len(tried), len(names)))
    deviations: list[float] = []
    for place, name in enumerate(names):
        seen = compared.seen(name)
        original[:, place] = arrays.take(seen, candidates)
        masked[:, place] = compared.released.column(name).to_numpy()[tried]
        deviations.append(math.sqrt(variance_of(pick(arrays, seen, is_member), arrays)))
    linked = record_linkage(
        original,
        masked,
        np.searchsorted(candidates, own),
        positions=np.arange(len(tried)),
        groups=group[candidates],
        among=rows,
        deviations=deviations,
    )
    if (share[classes] < 1).any():
        by_guess = _guess(group[candidates], group[own])
        return {"linking_risk": asdict(linked), "linking_by_guess": by_guess, "linking_among": len(candidates)}
    of_released = class_sizes(released, arrays=arrays)
    by_guess = float(np.sum(of_released / sizes[: len(of_released)])) / rows
    return {"linking_risk": asdict(linked), "linking_by_guess": by_guess}


def _draw(group: IntArray, share: npt.NDArray[np.float64], own: Places, stream: NoiseStream, arrays: Arrays) -> Places:
    """Originals, ascending: of each class such a share, and `own`."""
    words = stream.lend(-(-len(group) // WORDS))
    return np.union1d(own, np.concatenate(list(arrays.over(partial(_draw_part, group, share, words), len(group)))))


def _draw_part(group: IntArray, share: npt.NDArray[np.float64], words: LentWords, part: slice) -> Places:
    groups = group[part]
    is_drawn = (groups >= 0) & (words.of(part) < share[groups] * _UNIT)
    return np.flatnonzero(is_drawn) + part.start


def _guess(candidates: IntArray, tried: IntArray) -> float:
    """How often a random one of the candidates of a class is the own original, on average over those that are tried."""
    classes, sizes = np.unique(candidates, return_counts=True)
    return float(np.mean(1 / sizes[np.searchsorted(classes, tried)]))
