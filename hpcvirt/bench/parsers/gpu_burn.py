# SPDX-License-Identifier: Apache-2.0

"""Read gpu-burn 0.4 to 1.1.

It ends with exit status 0 whatever it found, and calls a GPU OK that computed
nothing. The figures are those of the last line, when the GPUs are hot.
"""

import re
from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('gpus', 'GPUs'),
)

_PROGRESS = reading.line(
    r"(\d+\.\d)% +proc'd:([^e\n]*)errors:([^t\n]*)temps:")
_RATE = re.compile(r'\((\S+) Gflop/s\)')
_TESTED = reading.line(r'Tested (\d{1,4}) GPUs:$')
_GOOD = reading.line(r'[ \t]*GPU \d+: OK[ \t]*\n')
_FAILED = reading.line(r"(?:Couldn't init a GPU test|No clients are alive|"
                       r'[ \t]*GPU \d+: FAULTY).*$')


def read(text: str, _expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output."""
    reading.refuse(text, _FAILED)
    lines = _PROGRESS.findall(text)
    for progress, _, errors in lines:
        reading.require(not errors.strip('0 -'),
                        f'errors at {progress} %: {errors.strip()[:60]}')
    tested = reading.find(_TESTED, text, 'no "Tested ... GPUs": the output is '
                          'not complete')
    reading.check_single(text, _TESTED)
    good = _GOOD.findall(text, tested.end())
    reading.require(lines and lines[-1][0] == '100.0', 'no line at 100.0%: '
                    'the burn was not finished, or too short',
                    reading.Missing)
    rates = [reading.figure(word, f'the rate of GPU {gpu}')
             for gpu, word in enumerate(_RATE.findall(lines[-1][1]))]
    gpus = reading.whole(tested[1], 'the number of GPUs')
    reading.require(len(rates) == len(good) == gpus,
                    f'{len(rates)} rates and {len(good)} times OK for '
                    f'{tested[1]} GPUs')
    return reading.Reading(
        {'gflops': sum(rates), 'slowest_gpu_gflops': min(rates)},
        {'gpus': tested[1]})
