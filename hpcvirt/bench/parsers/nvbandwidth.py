# SPDX-License-Identifier: Apache-2.0

"""Read nvbandwidth 0.1 to 0.8: a matrix and its sum for each test."""

from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('tests', 'tests that ran and were not waived'),
)

#: The tests that become figures.
_TESTS = ('host_to_device_memcpy_ce', 'device_to_host_memcpy_ce',
          'device_to_device_memcpy_read_ce',
          'device_to_device_memcpy_write_ce', 'device_local_copy',
          'host_device_latency_sm')

_RUNNING = reading.line(r'Running (\w+)\.?$')
#: The title of a matrix ends with its unit.
_MATRIX = reading.line(r'mem\w+ .*\(([^\s()]+)\)$')
_WAIVED = reading.line(r'(?:Waived|\w+:? waived)\b')
_FAILED = reading.line(r'.*(?:Invalid value when checking|CUDA_ERROR_|'
                       r'\bERROR\b).*$')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output."""
    reading.refuse(text, _FAILED)
    # What precedes the first test, then names and bodies in turn.
    _, *pieces = _RUNNING.split(text)
    waived = len(_WAIVED.findall(text))
    if not pieces and waived:
        raise reading.InvalidOutput(
            f'no figure: all {waived} tests were waived, since the machine '
            'cannot run them')
    reading.require(pieces, 'no figure: no line "Running TEST."',
                    reading.Missing)
    metrics: dict[str, float] = {}
    units: dict[str, str] = {}
    names = pieces[::2]
    reading.require(len({*names}) == len(names), 'several runs in one file')
    for name, body in zip(names, pieces[1::2], strict=True):
        total = _read_sum(name, body)
        if name in _TESTS:
            metrics[name] = total
            units |= reading.find_parameters(body, **{name: _MATRIX})
    reading.require(
        metrics, f'no figure: {", ".join(names[:3])} ran, and the figures are '
        f'the sums of {", ".join(_TESTS)}')
    expected = expect.get('tests')
    if expected is not None and waived:
        is_complete = len(names) == reading.whole(expected, 'tests')
        reading.require(
            is_complete, f'tests={expected} was requested, but the output '
            f'says {len(names)}, and {waived} were waived, since the machine '
            'cannot run them')
    return reading.Reading(
        metrics, {'tests': str(len(names))}, units=units,
        remarks=() if expected is not None else (
            'only --expect tests can show that the output is complete',))


def _read_sum(name: str, body: str) -> float:
    """Read the sum of a test; one in both directions has a total."""
    what = name
    if '_bidirectional_' in name and f'SUM {name}_' in body:
        what = f'{name}_total'
    return reading.find_figure(
        reading.line(rf'SUM {what} (\S+)[ \t]*\n'), body, f'SUM {what}')
