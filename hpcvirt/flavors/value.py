# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What a value in a profile may be.

Each function makes a check: it takes what the YAML says and returns the value
that the program uses, or raises ValueError with the end of a sentence that
begins with the key.
"""

import enum
import re
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

Check = Callable[[Any], Any]

KIB_PER_UNIT = {'K': 1, 'M': 1024, 'G': 1024 * 1024}


def text(pattern: str, example: str) -> Check:
    """Text that matches a regular expression as a whole."""
    def check(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f'must be text such as {example}')
        return value
    return check


def integer(low: int, high: int) -> Check:
    """A whole number within bounds."""
    def check(value: object) -> int:
        # A YAML "true" is an int to Python.
        if (not isinstance(value, int) or isinstance(value, bool)
                or not low <= value <= high):
            raise ValueError(f'must be a whole number from {low} to {high}')
        return value
    return check


def flag(value: object) -> bool:
    """A truth value, and no word that looks like one."""
    if not isinstance(value, bool):
        raise ValueError('must be true or false')
    return value


def word(words: type[enum.StrEnum]) -> Check:
    """One of some words."""
    def check(value: object) -> enum.StrEnum:
        if not isinstance(value, str) or value not in list(words):
            raise ValueError('must be one of ' + ', '.join(words))
        return words(value)
    return check


def optional(inner: Check) -> Check:
    """Null, or what another check takes."""
    def check(value: object) -> object:
        return None if value is None else inner(value)
    return check


def page_size(value: object) -> int:
    """A page size in KiB from ``2M``, ``1G`` or ``64K``."""
    match = (re.fullmatch(r'([1-9][0-9]{0,5})([KMG])', value)
             if isinstance(value, str) else None)
    if match is None:
        raise ValueError('must be a page size such as 2M, 1G or 64K')
    return int(match[1]) * KIB_PER_UNIT[match[2]]


def page_counts(value: object) -> tuple[tuple[int, int], ...]:
    """Pairs of page size in KiB and number of pages."""
    if not isinstance(value, Mapping):
        raise ValueError('must map page sizes to numbers of pages')
    count = integer(1, 1 << 30)
    counts = {}
    for size, pages in value.items():
        kib = page_size(size)
        if kib in counts:
            raise ValueError(f'must not name {size} twice')
        counts[kib] = count(pages)
    return tuple(sorted(counts.items()))
