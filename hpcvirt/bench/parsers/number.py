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

"""Read figures as C and Fortran programs print them.

Fortran writes exponents with D, leaves out the letter when the exponent has
three digits (``1.0-102``), and fills a field with asterisks when a number
does not fit. C prints nan, inf and the content of uninitialized memory.
"""

import math
import re

from hpcvirt.bench.parsers import reading

#: No figure of merit, in any unit that hpcvirt knows, is outside this range.
#: A smaller one is uninitialized memory (6.95e-313), a larger one a counter
#: that overflowed.
SMALLEST = 1e-30
LARGEST = 1e30

_NUMBER = re.compile(
    r'(?P<mantissa>[+-]?(?:\d+\.?\d*|\.\d+))'
    r'(?:[eEdD](?P<exponent>[+-]?\d{1,4})|(?P<bare>[+-]\d{2,4}))?',
    re.ASCII)
_ASTERISKS = re.compile(r'\*+')
#: A pattern for a whole figure in a larger expression: one word.
WORD = r'(\S+)'


def real(word: str, what: str) -> float:
    """Read a number of any sign; nan and inf are refused.

    :param what: the name of the figure, for the reason
    :raises Refused: if the word is not a finite number
    """
    match = _NUMBER.fullmatch(word)
    if match is None:
        if _ASTERISKS.fullmatch(word):
            raise reading.Refused(
                f'{what} is {word[:12]}: the number did not fit its field')
        raise reading.Refused(
            f'{what} is {word[:40]!r}, which is not a number')
    exponent = match['exponent'] or match['bare'] or '0'
    value = float(f'{match["mantissa"]}e{exponent}')
    if not math.isfinite(value):
        raise reading.Refused(f'{what} is {word[:40]}, which is not finite')
    return value


def figure(word: str, what: str) -> float:
    """Read a figure of merit: finite, above 0 and of a plausible size.

    :raises Refused: otherwise
    """
    value = real(word, what)
    if value <= 0:
        raise reading.Refused(f'{what} is {word[:40]}, which is not above 0')
    if not SMALLEST <= value <= LARGEST:
        raise reading.Refused(
            f'{what} is {word[:40]}: not a measurement, but uninitialized '
            'memory or a counter that overflowed')
    return value


def whole(word: str, what: str) -> int:
    """Read a whole number of at least 0.

    :raises Refused: otherwise
    """
    if not (word.isascii() and word.isdigit() and len(word) <= 18):
        raise reading.Refused(
            f'{what} is {word[:40]!r}, which is not a whole number')
    return int(word)


def near(left: float, right: float, part: float) -> bool:
    """Whether two numbers differ by at most this fraction of the larger."""
    return math.isclose(left, right, rel_tol=part)
