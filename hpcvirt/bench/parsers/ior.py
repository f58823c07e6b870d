# SPDX-License-Identifier: Apache-2.0

"""Read IOR 3 and 4: the summary of one test that writes, reads or both."""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('api', 'such as POSIX'),
    expectation.whole('tasks', 'MPI ranks', 'ranks', 'np', 'clients'),
    expectation.word('version', 'such as 3.3.0'),
)

_BANNER = reading.line(r'IOR-(\S+): MPI Coordinated')
_OLD = reading.line(r'IOR-[12]\.\d+\.\d+: MPI Coordinated')
_SUMMARY = reading.line(r'Summary of all tests:')
_RESULT = reading.line(r'(write|read) +[\d.]+ .*')
_COLUMNS = reading.line(r'Operation +Max\(\w+\) +Min\(\w+\) +Mean\((\w+)\)')
_ROW = reading.line(r'(write|read) +\S+ +\S+ +(\S+) .*\n')
_FINISHED = reading.line(r'Finished *:')
#: What a complete output has, by its name in a reason.
_REQUIRED = {'IOR-VERSION': _BANNER, 'Finished': _FINISHED,
             'Summary of all tests': _SUMMARY}
#: The warnings, which IOR 2 to 4 word differently. ERROR is in capitals: file
#: names and options may have the word in small letters.
_TROUBLE = reading.line(
    r'.*(?:\bERROR\b|(?i:\b(?:incorrect|wrong|bad|corrupt(?:ed)?) +data\b|'
    r'\bdata +(?:is |was |check |verification )?(?:incorrect|wrong|corrupt|'
    r'mismatch|failed)|failed comparison|'
    r'[1-9]\d* errors? found|errors counted|inconsistent file size|'
    r'expected aggregate file size)).*$')


def _option(name: str) -> re.Pattern[str]:
    return reading.line(rf'[ \t]*(?:{name}) *[:=] *(\S+)')


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output."""
    reading.refuse(text, _TROUBLE)
    reading.require(not _OLD.search(text),
                    'the output of IOR 2 has another form; use IOR 3 or 4')
    for name, pattern in _REQUIRED.items():
        last = reading.find(pattern, text,
                            f'no {name!r}: the output is not complete')
    reading.check_single(text, _BANNER, _SUMMARY)
    rows = _ROW.findall(text, last.end())
    metrics = {}
    for kind, mean in rows:
        name = f'{kind}_mib_s'
        metrics[name] = reading.figure(mean, name)
    # One row for each operation that the results above have.
    reading.require(
        rows and sorted(kind for kind, *_ in rows) == sorted(
            {*_RESULT.findall(text, 0, last.start())}),
        f'{len(rows)} rows in the summary: several tests, or the output is '
        'not complete')
    parameters = reading.find_parameters(
        text, version=_BANNER, api=_option('api'),
        tasks=_option('tasks|clients'))
    columns = _COLUMNS.search(text)
    return reading.Reading(
        metrics, parameters,
        units=dict.fromkeys(metrics, f'{columns[1]}/s') if columns else {})
