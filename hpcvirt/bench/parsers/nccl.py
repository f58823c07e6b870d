# SPDX-License-Identifier: Apache-2.0

"""Read nccl-tests 2 and rccl-tests: ``all_reduce_perf`` and its kin.

The first process prints a line for each rank, which has a GPU of its own. A
row ends with time, algorithm bandwidth, bus bandwidth and wrong values, out of
place and in place. Sizes are rounded to what all ranks can share.

Without MPI, each process of mpirun measures alone, and prints all of this. If
NCCL_TESTS_SPLIT is set, each group of ranks does. Neither is the collective of
all GPUs.
"""

from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.word('test', 'such as all_reduce_perf'),
    expectation.whole('gpus', 'ranks, one for each GPU', 'ranks'),
    expectation.whole('hosts', 'hosts of the ranks, by their names', 'nodes'),
    *expectation.SIZES,
)

_HEADER = reading.line(
    r'#? *nThread \d+ nGpus \d+ minBytes (\d{1,18}) maxBytes (\d{1,18}) '
    r'step: (\d{1,18})\((factor|bytes)\)')
_TEST = reading.line(r'# Collective test starting: (\w+?_perf)\w*$')
#: Rank, group (not in old versions), process, host and device.
_RANK = reading.line(r'# +Rank +(\d+) +(?:Group +(\d+) +)?Pid +\d+ +on +'
                     r'(\S+) +device +(\d+) +\[')
#: Old versions have the largest difference instead, which may be above 0.
_COUNTS_WRONG = reading.line(r'# +size +count .* #wrong +time')
#: The units of time, algorithm bandwidth and bus bandwidth, out of place.
_UNITS = reading.line(r'# +\(B\) +\(elements\) +\(us\) +\(\S+\) +\((\S+)\)')
_ROW = reading.line(r' *(\d+) +\d+ +[a-z]\w* +(\S.*)$')
_BOUNDS = reading.line(r'# Out of bounds values : (?!0 OK)(.*)$')
_AVERAGE = reading.line(r'# Avg bus bandwidth +: +(\S+)[ \t]*\n')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output of one test."""
    header = reading.find(_HEADER, text, 'no line "nThread ... minBytes"')
    gpus, hosts = _count_gpus(text)
    reading.check_single(text, _HEADER)
    reading.refuse(text, _BOUNDS, prefix='Out of bounds values: ')
    metrics = {'avg_busbw_gb_s': reading.find_figure(
        _AVERAGE, text, 'Avg bus bandwidth')}
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
            metrics[name] = reading.figure(words[-6], name)
    least, most, step, kind = header.groups()
    expected = _count(reading.whole(least, 'minBytes'),
                      reading.whole(most, 'maxBytes'),
                      reading.whole(step, 'the step'), kind == 'factor')
    reading.require(len(rows) == expected > 0,
                    f'{len(rows)} rows of {expected}')
    parameters = reading.find_parameters(text, test=_TEST)
    remarks = () if parameters else (
        'the output does not say which collective it is of',)
    units = reading.find_parameters(text, avg_busbw_gb_s=_UNITS,
                                    busbw_gb_s=_UNITS)
    return reading.Reading(metrics, {
        'test': expect.get('test', 'unknown'), **parameters,
        'gpus': str(gpus), 'hosts': str(hosts),
        'min_size': least, 'max_size': most, 'rows': str(expected),
    }, remarks=remarks, units=units)


def _count_gpus(text: str) -> tuple[int, int]:
    """Count the GPUs and the hosts of one collective.

    :raises InvalidOutput: if the ranks are of several
    """
    ranks, groups, hosts, devices = set(), set(), set(), set()
    for rank, group, host, device in _RANK.findall(text):
        reading.require(
            rank not in ranks, f'rank {rank} is there twice: several runs in '
            'one file, or each process ran alone since the program was built '
            'without MPI=1, or for another MPI')
        reading.require(
            (host, device) not in devices, f'two ranks are on device {device} '
            f'of {host}, or two hosts have this name')
        ranks.add(rank)
        groups.add(group)
        hosts.add(host)
        devices.add((host, device))
    reading.require(len(groups) < 2, f'{len(groups)} groups of ranks ran at '
                    'the same time (NCCL_TESTS_SPLIT), not one collective')
    return len(ranks), len(hosts)


def _count(least: int, most: int, step: int, is_factor: bool) -> int:
    """Return the number of sizes that the program measures."""
    if not is_factor:
        return len(range(least, most + 1, max(step, 1)))
    return sum(max(least, 1) * step ** power <= most for power in range(64))
