# SPDX-License-Identifier: Apache-2.0

"""Read HEP-SPEC06: the output of a script, or the report of a suite.

The script of the user prints one line ``HS06: SCORE``. The report of the HEP
benchmark suite has a profile ``hs06``, ``hs06_32`` or ``hs06_64``.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('copies', 'copies that ran at the same time', 'cpus',
                      'runcpu_num'),
)

_PROFILES = ('hs06', 'hs06_32', 'hs06_64')
_SCORE = re.compile(
    r'^ *(?:Total +)?(?:HS06|HEP-?SPEC06)(?: +(?:score|result|total))? *[:=] *'
    r'(\S+)(?: *HS06)?[ \t]*\n', re.MULTILINE | re.IGNORECASE)
_FAILED = re.compile(
    r'^.*(?:runspec finished with errors|Error: |miscompare|'
    r'\bNR\b *$).*$', re.MULTILINE | re.IGNORECASE)


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the script's standard output or the suite's report.

    :raises InvalidOutput: if it is not of one good run
    """
    found = reading.load_document(text)
    if found is not None:
        return _read_report(found)
    failed = _FAILED.search(text)
    if failed is not None:
        raise reading.InvalidOutput(failed[0].strip()[:100])
    # A line without a line end may be cut off within the number.
    scores = _SCORE.findall(text)
    if len(scores) != 1:
        raise reading.InvalidOutput(
            f'{len(scores)} complete lines "HS06: SCORE", '
            'not one')
    return _reading(reading.figure(scores[0], 'HS06'), {})


def _read_report(found: dict[str, object]) -> reading.Reading:
    profiles = [reading.inner(found, 'profiles', name)
                for name in _PROFILES]
    there = [profile for profile in profiles if profile is not None]
    if len(there) != 1:
        raise reading.InvalidOutput(f'{len(there)} profiles of HS06, not one')
    parameters = {}
    copies = reading.inner(there[0], 'runcpu_num')
    if isinstance(copies, int) and not isinstance(copies, bool):
        parameters['copies'] = str(copies)
    return _reading(
        reading.score(reading.inner(there[0], 'score'), 'score'),
        parameters)


def _reading(score: float, parameters: dict[str, str]) -> reading.Reading:
    return reading.Reading(
        {'score': outcome.Metric(score, 'HS06', reading.UP)}, parameters)
