# SPDX-License-Identifier: Apache-2.0

"""Read the output of a site's own script.

It has one line ``rate: NUMBER``, or one line ``time: NUMBER`` in seconds.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS: tuple[expectation.ParameterKey, ...] = ()

#: Without a newline, the number may be truncated.
_FIGURE = re.compile(r'^[ \t]*(rate|time)[ \t]*:[ \t]*(\S+)[ \t]*\n',
                     re.MULTILINE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of the script."""
    found = _FIGURE.findall(text)
    reading.require(
        len(found) == 1, f'{len(found)} complete lines "rate: NUMBER" or '
        '"time: NUMBER", not one', reading.Missing)
    name, word = found[0]
    return reading.Reading({name: reading.figure(word, name)}, {})
