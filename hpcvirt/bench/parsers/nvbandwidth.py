# SPDX-License-Identifier: Apache-2.0

"""Read nvbandwidth 0.1 to 0.8: a matrix and its sum for each test."""

from collections.abc import Mapping

from hpcvirt.bench.parsers import expectation
from hpcvirt.bench.parsers import reading

KEYS = (
    expectation.whole('tests', 'tests that ran and were not waived'),
)

#: The tests that become figures: rates, and one latency in ns.
_RATES = ('host_to_device_memcpy_ce', 'device_to_host_memcpy_ce',
          'device_to_device_memcpy_read_ce',
          'device_to_device_memcpy_write_ce', 'device_local_copy')
_LATENCY = 'host_device_latency_sm'

_RUNNING = reading.line(r'Running (\w+)\.?$')
_FAILED = reading.line(r'.*(?:Invalid value when checking|CUDA_ERROR_).*$')


def read(text: str, expect: Mapping[str, str]) -> reading.Reading:
    """Read the standard output."""
    reading.refuse(text, _FAILED)
    # What precedes the first test, then names and bodies in turn.
    _, *pieces = _RUNNING.split(text)
    metrics = {}
    for name, body in zip(pieces[::2], pieces[1::2], strict=True):
        total = reading.find_figure(
            reading.line(rf'SUM {name} (\S+)[ \t]*\n'), body, f'SUM {name}')
        reading.require(name not in metrics, 'several runs in one file')
        if name in _RATES:
            metrics[name] = reading.rate(total, 'GB/s')
        elif name == _LATENCY:
            metrics[name] = reading.duration(total, 'ns')
    return reading.Reading(
        metrics, {'tests': str(len(pieces) // 2)},
        remarks=() if 'tests' in expect else (
            'only --expect tests can show that the output is complete',))
