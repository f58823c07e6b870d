# SPDX-License-Identifier: Apache-2.0

"""Read nccl-tests 2 and rccl-tests: ``all_reduce_perf`` and its kin.

A row ends with time, algorithm bandwidth, bus bandwidth and wrong values, out
of place and in place. Sizes are rounded to what all ranks can share.
"""

from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('test', 'such as all_reduce_perf'),
    expectation.whole('gpus', 'ranks, one for each GPU', 'ranks'),
    *expectation.SIZES,
)

_HEADER = reading.line(
    r'#? *nThread \d+ nGpus \d+ minBytes (\d{1,18}) maxBytes (\d{1,18}) '
    r'step: (\d{1,18})\((factor|bytes)\)')
_TEST = reading.line(r'# Collective test starting: (\w+?_perf)\w*$')
_RANK = reading.line(r'# +Rank +\d+ ')
#: Old versions have the largest difference instead, which may be above 0.
_COUNTS_WRONG = reading.line(r'# +size +count .* #wrong +time')
_ROW = reading.line(r' *(\d+) +\d+ +[a-z]\w* +(\S.*)$')
_BOUNDS = reading.line(r'# Out of bounds values : (?!0 OK)(.*)$')
_AVERAGE = reading.line(r'# Avg bus bandwidth +: +(\S+)[ \t]*\n')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of one test."""
    header = reading.find(_HEADER, text, 'no line "nThread ... minBytes"')
    reading.check_single(text, _HEADER)
    reading.refuse(text, _BOUNDS, prefix='Out of bounds values: ')
    metrics = {'avg_busbw_gb_s': reading.rate(reading.find_figure(
        _AVERAGE, text, 'Avg bus bandwidth'), 'GB/s')}
    counts_wrong = _COUNTS_WRONG.search(text)
    rows = _ROW.findall(text)
    for size, row in rows:
        name = f'busbw_gb_s[{size}]'
        words = row.split()
        reading.require(len(words) >= 8, f'the row of {name} is truncated')
        wrong = {words[-5], words[-1]} - {'0', 'N/A'}
        reading.require(not (wrong and counts_wrong),
                        f'wrong values at {size} bytes: {" ".join(wrong)}')
        rates = [reading.real(word, name) for word in (words[-6], words[-2])]
        reading.require(name not in metrics and min(rates) >= 0,
                        f'{name} is below 0, or there are several tables')
        if rates[0]:
            metrics[name] = reading.rate(reading.figure(words[-6], name),
                                         'GB/s')
    least, most, step, kind = header.groups()
    expected = _count(reading.whole(least, 'minBytes'),
                      reading.whole(most, 'maxBytes'),
                      reading.whole(step, 'the step'), kind == 'factor')
    reading.require(len(rows) == expected > 0,
                    f'{len(rows)} rows of {expected}')
    parameters = reading.find_parameters(text, test=_TEST)
    remarks = () if parameters else (
        'the output does not say which collective it is of',)
    return reading.Reading(metrics, {
        'test': expect.get('test', 'unknown'), **parameters,
        'gpus': str(len(_RANK.findall(text))),
        'min_size': least, 'max_size': most, 'rows': str(expected),
    }, remarks=remarks)


def _count(least: int, most: int, step: int, is_factor: bool) -> int:
    """Return the number of sizes that the program measures."""
    if not is_factor:
        return len(range(least, most + 1, max(step, 1)))
    return sum(max(least, 1) * step ** power <= most for power in range(64))
