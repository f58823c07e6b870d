# SPDX-License-Identifier: Apache-2.0

"""Numbers of foreign texts, and phrases that messages and reports share."""

import re
from collections.abc import Iterable
from collections.abc import Sequence

#: Longer lists of names are shortened to their first examples.
_MAX_NAMES = 6
_EXAMPLES = 2

#: No name is longer; a comparison takes time with the square of the length.
_MAX_WORD = 64

_KIB = {'': 1, 'K': 1, 'M': 1024, 'G': 1024 ** 2, 'T': 1024 ** 3}


def read_whole(text: str) -> int | None:
    """Read a whole number of at most 18 digits; None if it is another text.

    What another machine wrote is not for int(): digits of other scripts are
    numbers to it, 5,000 digits are an error, and float() fails with 400.
    """
    return int(text) if re.fullmatch('[0-9]{1,18}', text) else None


def read_decimal(text: str) -> float | None:
    """Read a number from 0 on without an exponent; see :func:`read_whole`."""
    match = re.fullmatch(r'[0-9]{1,18}(?:[.][0-9]{0,18})?', text)
    return float(text) if match else None


def read_size(text: str) -> int | None:
    """Read a size in KiB: ``2M``, ``2MB``, ``2 MiB``, ``2m`` or ``2048``.

    Units are powers of 1024, as in the kernel and in Nova.

    :returns: None if it is no size
    """
    match = re.fullmatch(r'([0-9]{1,12}) ?([KMGT]?)(?:i?B)?', text.strip(),
                         re.IGNORECASE)
    return int(match[1]) * _KIB[match[2].upper()] if match else None


def format_size(kib: int) -> str:
    """Write a size: ``125.6 GiB``, ``2 MiB``, ``64 KiB``."""
    for unit, factor in (('GiB', 1024 ** 2), ('MiB', 1024)):
        if kib >= factor:
            exact = kib % factor == 0
            return (f'{kib // factor} {unit}' if exact
                    else f'{kib / factor:.1f} {unit}')
    return f'{kib} KiB'


def count_noun(number: int, noun: str) -> str:
    """Write a number with its noun: ``1 flavor``, ``2 flavors``."""
    return f'{number} {noun}' + ('' if number == 1 else 's')


def shorten_names(names: Sequence[str], number: int | None = None) -> str:
    """Write ``a, b, c``, or ``a, b, ...`` for a long list.

    :param number: how many there are, if not all of their names are given
    """
    count = len(names) if number is None else number
    if count <= min(_MAX_NAMES, len(names)):
        return ', '.join(names)
    return f'{", ".join(names[:_EXAMPLES])}, ...'


def join_names(names: Sequence[str], noun: str) -> str:
    """Write ``a, b, c``, or ``300 hosts (a, b, ...)`` for a long list."""
    shown = shorten_names(names)
    return (shown if len(names) <= _MAX_NAMES
            else f'{len(names)} {noun} ({shown})')


def natural_order(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Sort names by this key, so that ``c-2`` comes before ``c-10``."""
    return tuple((part.isdigit(), int(part[:18]) if part.isdigit() else 0,
                  part)
                 for part in re.split(r'([0-9]+)', name) if part)


def suggest(word: str, known: Iterable[str]) -> str:
    """Write ``: the valid ones are a, b (did you mean a?)`` after an error."""
    names = [str(name) for name in known]
    return f': choose from {", ".join(names)}' + nearest(word, names)


def nearest(word: str, known: Iterable[str]) -> str:
    """Write `` (did you mean a?)`` if a known name resembles a wrong one."""
    name = find_nearest(word, known)
    return '' if name is None else f' (did you mean {name}?)'


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one resembles most, if any does."""
    # Only an error needs it.
    import difflib
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word[:_MAX_WORD].lower(), names, 1)
    return names[close[0]] if close else None
