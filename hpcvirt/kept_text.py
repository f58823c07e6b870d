# SPDX-License-Identifier: Apache-2.0

"""Bound the text that a compute host or a tenant controls, where it is kept.

nova-scheduler runs for months, and remembers what it has read of hosts and
requests. A compute host can report texts of 64 KiB, and others each time. A
memory that is bounded by the number of its entries is therefore not bounded,
unless each text in it is.
"""

from collections.abc import Iterable

#: The most characters of a text that is kept. Names of hosts and nodes have at
#: most 255, and names of network interfaces 15.
MAX_CHARACTERS = 1024


def is_short(text: object) -> bool:
    """Return whether a value is a text that may be kept."""
    return isinstance(text, str) and len(text) <= MAX_CHARACTERS


def are_short(values: Iterable[object]) -> bool:
    """Return whether no value is a text that is too long to be kept."""
    for value in values:
        if isinstance(value, str) and len(value) > MAX_CHARACTERS:
            return False
    return True


def check(text: str, what: str) -> str:
    """Return a text that may be kept.

    :param what: what the text is, for the message
    :raises ValueError: if it is too long
    """
    if not is_short(text):
        raise ValueError(f'{what} has {len(text)} characters, and at most '
                         f'{MAX_CHARACTERS} are read')
    return text


def shorten(text: str) -> str:
    """Return the beginning of a text, as much of it as may be kept."""
    return text[:MAX_CHARACTERS]
