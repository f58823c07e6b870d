# SPDX-License-Identifier: Apache-2.0

"""Read HEPscore: its JSON report, the report of a suite, or its log."""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.word('name', 'such as HEPscore23'),
    expectation.word('hash', 'hash of the configuration', 'config_hash'),
    expectation.word('version', 'of hep-score'),
)

#: A configuration may name other units; this is the one of HEPscore23.
UNIT = 'HS23'

#: A line without a line end may be cut off within the number.
_FINAL = re.compile(r'Final result: *(\S+)[ \t]*\n')
_ERROR = re.compile(r'^.*(?:\[(?:ERROR|CRITICAL)\]|Traceback).*$',
                    re.MULTILINE)
_HASH = re.compile(r'Config Hash: +([0-9a-f]+)')
_VERSION = re.compile(r'HEPscore version: +(\S+)')


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the report or the log.

    :raises InvalidOutput: if it is not of one good run
    """
    found = reading.load_document(text)
    if found is not None:
        return _read_report(found)
    error = _ERROR.search(text)
    if error is not None:
        raise reading.InvalidOutput(texts.quote(error[0]))
    finals = _FINAL.findall(text)
    if len(finals) != 1:
        raise reading.InvalidOutput(
            f'{len(finals)} complete lines "Final result", '
            'not one')
    parameters = reading.find_parameters(text, hash=_HASH, version=_VERSION)
    return _reading(reading.figure(finals[0], 'Final result'), parameters)


def _read_report(found: dict[str, object]) -> reading.Reading:
    report = reading.inner(found, 'profiles', 'hepscore') or found
    status = reading.inner(report, 'status')
    if status != 'success':
        error = reading.inner(report, 'ERROR') or reading.inner(
            report, 'error')
        because = f': {error}' if error else ''
        raise reading.InvalidOutput(
            texts.quote(f'status is {status!r}{because}'))
    score = reading.score(reading.inner(report, 'score'), 'score')
    paths = {'name': ('settings', 'name'), 'hash': ('app_info', 'hash'),
             'version': ('app_info', 'hepscore_ver')}
    parameters = {}
    for name, path in paths.items():
        value = reading.inner(report, *path)
        if isinstance(value, str) and value:
            parameters[name] = value
    return _reading(score, parameters)


def _reading(score: float, parameters: dict[str, str]) -> reading.Reading:
    return reading.Reading(
        {'score': outcome.Metric(score, UNIT, reading.UP)}, parameters)
