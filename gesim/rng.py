"""Named random streams: one seed, one independent stream per name.

A stream depends on the seed and its own name only, never on the order in which streams are
made or on how much others draw. So adding a draw in one place shifts nothing elsewhere, and
two policies can be compared on the very same arrivals (common random numbers).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["derived_seed", "stream"]


def _words(name: str) -> tuple[int, ...]:
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))


def stream(seed: int, name: str) -> Generator:
    """Make the generator of the stream `name`.

    Parameters
    ----------
    seed : int
        The run's seed (``replication`` runs use ``derived_seed(seed, "replication/3")``).
    name : str
        What the stream is for, like ``service/resnet101``.

    Returns
    -------
    numpy.random.Generator
        Philox (Salmon et al. 2011), counter based, the same on every machine.
    """
    from numpy.random import Generator, Philox, SeedSequence

    return Generator(Philox(SeedSequence(seed, spawn_key=_words(name))))


def derived_seed(seed: int, name: str) -> int:
    """Derive a 63-bit seed for `name`, for code that keeps a generator of its own."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
