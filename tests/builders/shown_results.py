# SPDX-License-Identifier: Apache-2.0

"""Simulate results for a report with every verdict and drawing.

The names have the largest length, and some contain HTML.
"""

import datetime
import math
import random
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import summary

UP, DOWN = outcome.Direction.UP, outcome.Direction.DOWN
#: Name to native value, guest / native, unit and better direction.
_Figures = Mapping[str, tuple[float, float, str, outcome.Direction]]
HOST = 'compute7.cell1.example.org'
LONG_HOST = ('a-very-long-name-of-a-compute-node-0017.rack42.'
             'datacentre-north.hpc.example.org')
LONG_FLAVOR = ('hpc.96c.memory-bound.numa-all-cells.hugepages-1g.'
               'production-2026')
HPCC: _Figures = {
    'HPL_Tflops': (1.21, 0.99, 'Tflop/s', UP),
    'StarRandomAccess_GUPs': (0.0184, 0.985, 'GUP/s', UP),
    'StarSTREAM_Triad': (11.3, 0.985, 'GB/s', UP),
    'MaxPingPongLatency_usec': (1.31, 1.08, 'us', DOWN)}


def shown(described: Iterable[Mapping[str, Any]] | None = None,
          ) -> list[summary.Shown]:
    """Simulate results, the same each time.

    :param described: the properties of each result; None for one of each kind
    """
    return [_shown(number, **more) for number, more in enumerate(
        _results() if described is None else described)]


def _results() -> Iterator[dict[str, Any]]:
    yield from _stream(1, 1, 1, 1, 1)
    yield {'benchmark': 'hpcc', 'figures': HPCC}
    yield {'benchmark': 'hpcc', 'host': LONG_HOST, 'flavor': LONG_FLAVOR,
           'figures': {**HPCC, 'StarRandomAccess_GUPs':
                       (0.0184, 0.7, 'GUP/s', UP)}}
    yield {'benchmark': 'npb-cg', 'noise': 0.03, 'figures':
           _rate('mops_total', 24000, 0.945)}
    yield {'benchmark': 'npb-ft', 'pairs': 3}
    yield {'benchmark': 'npb-lu', 'pairs': 4, 'planned': 10}
    yield {'benchmark': 'npb-mg', 'figures': _rate('mops_total', 24000, 1.5)}
    yield {'benchmark': 'npb-sp', 'broken':
           'no "Verification" <script>alert(1)</script> & so on',
           'flavor': '<b>bold</b> & "quoted"', 'host': '<img src=x>'}
    yield {'benchmark': 'npb-ep', 'purpose': record.Purpose.UNPAIRED}
    yield {'benchmark': 'npb-is', 'purpose': record.Purpose.AA}
    yield {'benchmark': 'osu-latency', 'figures': _sized(
        23, 'latency_us', lambda size: 1.1 + size / 12000, 'us', DOWN,
        lambda size: 1.02 if size < 4096 else 1.25)}
    yield {'benchmark': 'osu-bandwidth', 'broken': 'a size is missing',
           'figures': _sized(23, 'bandwidth_mb_s', lambda size: size, 'MB/s',
                             UP, lambda _: 0.99)}
    yield {'benchmark': 'netpipe', 'noise': 0.002, 'figures': {
        **_sized(100, 'latency_us', lambda size: 1.1 + size / 12000, 'us',
                 DOWN, lambda _: 1.02),
        **_sized(100, 'bandwidth_mb_s', lambda size: 24000 * size /
                 (size + 9000), 'MB/s', UP, lambda _: 0.98)}}
    yield {'benchmark': 'mpi4py-pingpong', 'figures': _sized(
        21, 'latency_us', lambda size: 1.1 + size / 12000, 'us', DOWN,
        lambda _: 1.02), 'purpose': record.Purpose.UNPAIRED}
    for case, ratio in (('small-on', 0.84), ('large-on', 0.96)):
        yield {'benchmark': 'hpcc', 'host': LONG_HOST, 'study': 'S1',
               'case': case, 'flavor': '1x8', 'launch': None, 'figures': {
                   **HPCC, 'StarRandomAccess_GUPs':
                   (0.0184, ratio, 'GUP/s', UP)}}
    for name in ('npb-bt', 'npb-cg', 'npb-ft'):
        yield {'benchmark': name, 'study': 'S2', 'case': 'numa-socket'}
    yield from _stream(1, 1, *[0.9] * 9)


def _stream(*slow: float) -> Iterator[dict[str, Any]]:
    for factor in slow:
        yield {'benchmark': 'stream', 'variant': 'openmp', 'figures':
               _rate('triad_mb_s', 310000 * factor, 0.99, 'MB/s')}


def _rate(name: str, native: float, ratio: float,
          unit: str = 'Mop/s') -> _Figures:
    return {name: (native, ratio, unit, UP)}


def _sized(count: int, name: str, value: Callable[[float], float], unit: str,
           direction: outcome.Direction,
           ratio: Callable[[float], float]) -> _Figures:
    """Spread message sizes over 1 B to 4 MiB."""
    sizes = sorted({round(4194304 ** (number / (count - 1)))
                    for number in range(count)})
    return {f'{name}[{size}]': (value(size), ratio(size), unit, direction)
            for size in sizes}


def _shown(number: int, *, benchmark: str, variant: str = 'mpi',
           figures: _Figures | None = None, pairs: int = 12,
           planned: int | None = None, noise: float = 0.004,
           host: str = HOST, flavor: str = 'hpc.24c',
           purpose: record.Purpose = record.Purpose.COMPARE,
           launch: record.Launch | None = record.Launch.WARM,
           broken: str = '', study: str | None = None,
           case: str | None = None) -> summary.Shown:
    dice = random.Random(number)
    figures = figures or _rate('mops_total', 24000, 0.99)
    started_at = (datetime.datetime(2026, 1, 5, 8, tzinfo=datetime.UTC)
                  + datetime.timedelta(days=number)).isoformat()
    samples = []
    for pair in range(pairs):
        for side in record.Side:
            is_guest = side is record.Side.GUEST
            if purpose is record.Purpose.UNPAIRED and not is_guest:
                continue
            found = outcome.Outcome(True, None, {
                name: outcome.Metric(
                    native * (ratio if is_guest and purpose is not
                              record.Purpose.AA else 1)
                    * math.exp(dice.gauss(0, noise)), unit, direction)
                for name, (native, ratio, unit, direction)
                in figures.items()})
            if broken and is_guest and pair == 2:
                found = outcome.Outcome(False, broken)
            samples.append(record.Sample(
                side, pair, len(samples), found, environment={
                    'kernel': '6.12.48+deb13-amd64', 'pages.thp':
                    '[always] madvise never', 'cpu.model':
                    'AMD EPYC-Genoa Processor' if is_guest
                    else 'AMD EPYC 9654 96-Core Processor',
                    **({'pages': 'large'} if is_guest else {})}))
    run = record.Run(
        id=f'{number:016x}-0', benchmark=benchmark, variant=variant,
        samples=tuple(samples), host=host, shape=flavor, purpose=purpose,
        planned_pairs=planned or pairs, launch=launch, study=study,
        case=case, started_at=started_at)
    result = verdict.judge_result(record.Result(
        (run,), software={'hpcvirt': '1.0.0'}))
    return summary.Shown(f'{number:016x}', result, started_at, planned is None)
