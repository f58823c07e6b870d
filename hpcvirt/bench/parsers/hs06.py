# SPDX-License-Identifier: Apache-2.0

"""Read HEP-SPEC06: the output of a script, or the report of a suite.

The script of the user prints one line ``HS06: SCORE``. The report of the HEP
benchmark suite has a profile ``hs06``, ``hs06_32`` or ``hs06_64``.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('copies', 'copies that ran at the same time', 'cpus',
                      'runcpu_num'),
)

_PROFILES = ('hs06', 'hs06_32', 'hs06_64')
#: Without a newline, the number may be truncated.
_SCORE = re.compile(
    r'^ *(?:Total +)?(?:HS06|HEP-?SPEC06)(?: +(?:score|result|total))? *[:=] *'
    r'(\S+)(?: *HS06)?[ \t]*\n', re.MULTILINE | re.IGNORECASE)
_FAILED = re.compile(
    r'^.*(?:runspec finished with errors|Error: |miscompare|'
    r'\bNR\b *$).*$', re.MULTILINE | re.IGNORECASE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the script's standard output or the suite's report."""
    found = reading.load_document(text)
    parameters = {}
    if found is None:
        reading.refuse(text, _FAILED)
        scores = _SCORE.findall(text)
        reading.require(len(scores) == 1, f'{len(scores)} complete lines '
                        '"HS06: SCORE", not one')
        score = reading.figure(scores[0], 'HS06')
    else:
        profiles = [profile for name in _PROFILES if (
            profile := reading.inner(found, 'profiles', name)) is not None]
        reading.require(len(profiles) == 1,
                        f'{len(profiles)} profiles of HS06, not one')
        copies = reading.inner(profiles[0], 'runcpu_num')
        if isinstance(copies, int) and not isinstance(copies, bool):
            parameters['copies'] = str(copies)
        score = reading.score(reading.inner(profiles[0], 'score'), 'score')
    return reading.Reading({'score': score}, parameters)
