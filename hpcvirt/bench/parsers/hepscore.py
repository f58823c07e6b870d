# SPDX-License-Identifier: Apache-2.0

"""Read HEPscore: its JSON report, the report of a suite, or its log."""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading
from hpcvirt.bench.parsers import text as texts

KEYS = (
    expectation.word('name', 'such as HEPscore23'),
    expectation.word('hash', 'hash of the configuration', 'config_hash'),
    expectation.word('version', 'of hep-score'),
)

#: Without a newline, the number may be truncated.
_FINAL = re.compile(r'Final result: *(\S+)[ \t]*\n')
_ERROR = re.compile(r'^.*(?:\[(?:ERROR|CRITICAL)\]|Traceback).*$',
                    re.MULTILINE)
_HASH = re.compile(r'Config Hash: +([0-9a-f]+)')
_VERSION = re.compile(r'HEPscore version: +(\S+)')
#: Parameter to its path in the report.
_PATHS = {'name': ('settings', 'name'), 'hash': ('app_info', 'hash'),
          'version': ('app_info', 'hepscore_ver')}


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the report or the log."""
    found = reading.load_document(text)
    if found is None:
        reading.refuse(text, _ERROR)
        finals = _FINAL.findall(text)
        reading.require(len(finals) == 1, f'{len(finals)} complete lines '
                        '"Final result", not one')
        parameters = reading.find_parameters(text, hash=_HASH,
                                             version=_VERSION)
        score = reading.figure(finals[0], 'Final result')
    else:
        report = reading.inner(found, 'profiles', 'hepscore') or found
        status = reading.inner(report, 'status')
        error = reading.inner(report, 'ERROR') or reading.inner(
            report, 'error')
        reading.require(status == 'success', texts.quote(
            f'status is {status!r}' + (f': {error}' if error else '')))
        score = reading.score(reading.inner(report, 'score'), 'score')
        parameters = {
            name: value for name, path in _PATHS.items()
            if isinstance(value := reading.inner(report, *path), str)
            and value}
    return reading.Reading({'score': score}, parameters)
