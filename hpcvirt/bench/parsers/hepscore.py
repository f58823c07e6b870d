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

"""Read HEPscore: its JSON report, the report of a suite, or its log."""

import re
from collections.abc import Mapping

from hpcvirt.bench.model import outcome
from hpcvirt.bench.parsers import document
from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import number
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.Key('name', expectation.Kind.WORD, 'such as HEPscore23'),
    expectation.Key('hash', expectation.Kind.WORD,
                    'hash of the configuration', ('config_hash',)),
    expectation.Key('version', expectation.Kind.WORD, 'of hep-score'),
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

    :raises Refused: if it is not of one good run
    """
    found = document.load(text)
    if found is not None:
        return _read_report(found)
    error = _ERROR.search(text)
    if error is not None:
        raise reading.Refused(texts.quote(error[0]))
    finals = _FINAL.findall(text)
    if len(finals) != 1:
        raise reading.Refused(f'{len(finals)} complete lines "Final result", '
                              'not one')
    parameters = {}
    for name, pattern in (('hash', _HASH), ('version', _VERSION)):
        match = pattern.search(text)
        if match is not None:
            parameters[name] = match[1]
    return _reading(number.figure(finals[0], 'Final result'), parameters)


def _read_report(found: dict[str, object]) -> reading.Reading:
    report = document.inner(found, 'profiles', 'hepscore') or found
    status = document.inner(report, 'status')
    if status != 'success':
        error = document.inner(report, 'ERROR') or document.inner(
            report, 'error')
        because = f': {error}' if error else ''
        raise reading.Refused(texts.quote(f'status is {status!r}{because}'))
    score = document.score(document.inner(report, 'score'), 'score')
    paths = {'name': ('settings', 'name'), 'hash': ('app_info', 'hash'),
             'version': ('app_info', 'hepscore_ver')}
    parameters = {}
    for name, path in paths.items():
        value = document.inner(report, *path)
        if isinstance(value, str) and value:
            parameters[name] = value
    return _reading(score, parameters)


def _reading(score: float, parameters: dict[str, str]) -> reading.Reading:
    return reading.Reading(
        {'score': outcome.Metric(score, UNIT, reading.UP)}, parameters)
