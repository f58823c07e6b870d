# SPDX-License-Identifier: Apache-2.0

"""Count the false alarms and the detections of ``hpcvirt host supervise``.

Classes of eight hosts with heavy-tailed, daily and autocorrelated noise (see
``benchmarks/host_rates.py``) are scored as by ``hpcvirt host watch`` and
supervised minute by minute, for three days of learning and further days. Any
sign that comes on is a false alarm. Then one host of a class becomes slow,
while its peers do not change.

    python benchmarks/slow_nodes.py [HOST_DAYS [HOSTS [CPUS...]]]

HOST_DAYS are simulated for each kind of noise and size, and HOSTS become slow
by each cause. It takes about four minutes on two cores.
"""

import concurrent.futures
import copy
import dataclasses
import functools
import itertools
import os
import statistics
import sys

import host_rates
import host_scores
import numpy
from host_rates import MINUTES

from hpcvirt.health import signature
from hpcvirt.health import supervision
from hpcvirt.health.signature import Quantity

SIZES = (32, 128, 512)
HOSTS = 8
_LEARN_DAYS = 3

#: How long a cause may take to be found, in minutes.
LIMIT = 300


def _peak(arrays, name, value, host, cpus=slice(None), rows=slice(None)):
    """Let a quantity reach a value, give or take a fifth."""
    places = rows if arrays[name].ndim == 1 else (rows, cpus)
    before = arrays[name][places]
    values = value * host.dice.uniform(0.8, 1.25, size=len(before))
    arrays[name][places] = numpy.maximum(before.T, values).T


def _totals(values, host, arrays, rows=slice(None)):
    """Let a quantity reach the published totals of slow hosts."""
    for name, value in values.items():
        each = value / host.cpus if name in host_rates.CPU_NOISE else value
        _peak(arrays, name, each, host, rows=rows)


#: The rates of published slow hosts with 32 CPUs [CERN-HEPiX-2015].
PUBLISHED = {Quantity.SYSTEM: 0.4 * 32, Quantity.INTERRUPTS: 120_000.0,
             Quantity.SHOOTDOWNS: 80_000.0}
LOWER_END = {Quantity.SYSTEM: 0.3 * 32, Quantity.INTERRUPTS: 100_000.0,
             Quantity.SHOOTDOWNS: 50_000.0}
SWAPPING = {Quantity.IOWAIT: 0.25 * 32, Quantity.SWAPPED: 2000.0}


def _often(arrays, host, _first):
    """Be slow in 5 of every 10 minutes."""
    minutes = len(arrays[Quantity.SYSTEM])
    _totals(PUBLISHED, host, arrays, numpy.arange(minutes) % 10 < 5)


def _storm(arrays, host, _first):
    """Let the CPUs of one guest in four have a storm of TLB shootdowns."""
    cpus = slice(0, host.cpus // 4)
    _peak(arrays, Quantity.SYSTEM, 0.4, host, cpus)
    _peak(arrays, Quantity.SHOOTDOWNS, 2500.0, host, cpus)


def _swap_guest(arrays, host, _first):
    """Let one guest in four swap 50 MB/s; a fault reads 16 pages."""
    _peak(arrays, Quantity.SWAPPED, 12_800.0, host)
    _peak(arrays, Quantity.MAJOR_FAULTS, 800.0, host)
    _peak(arrays, Quantity.IOWAIT, 1.0, host)


def _errors(arrays, host, _first):
    """Let 40 corrected memory errors happen in an hour."""
    arrays[Quantity.CORRECTED_ERRORS] += numpy.convolve(host.dice.poisson(
        40 / 60, size=len(arrays[Quantity.SLAB]) + 29), numpy.ones(30),
        'valid')


def _reach(name, value, cpus=None):
    return lambda arrays, host, _first: _peak(
        arrays, name, value, host, slice(cpus))


def _all(*changes):
    def change(arrays, host, first):
        for each in changes:
            each(arrays, host, first)
    return change


def _reach_totals(values):
    return lambda arrays, host, _first: _totals(values, host, arrays)


CAUSES = {
    'published shoot-downs, same totals': _reach_totals(PUBLISHED),
    'their lower end, same totals': _reach_totals(LOWER_END),
    'published swapping, same totals': _reach_totals(SWAPPING),
    'shoot-downs in 5 of every 10 minutes': _often,
    'one guest of four swaps 50 MB/s': _swap_guest,
    'storm of shoot-downs in one guest of four': _storm,
    'PROCHOT: 60 % below the base frequency': _reach(Quantity.SLOWDOWN, 0.6),
    'throttled for 4 % of the time': _reach(Quantity.THROTTLED_S, 72.0),
    '40 corrected errors an hour': _errors,
    'one uncorrected error': lambda arrays, *_: arrays[
        Quantity.UNCORRECTED_ERRORS].fill(1.0),
    'a foreign task on one CPU': _reach(Quantity.FOREIGN_TASKS, 0.5, 1),
    'foreign tasks on 8 CPUs': _reach(Quantity.FOREIGN_TASKS, 0.5, 8),
    '40,000 interrupts/s on two CPUs': _reach(Quantity.INTERRUPTS, 20_000.0,
                                              2),
    'a link of half the width': lambda arrays, *_: arrays[
        Quantity.LINK_LOSS].fill(0.5),
    'mixed: lower end, and tasks on 8 CPUs': _all(
        _reach_totals(LOWER_END), _reach(Quantity.FOREIGN_TASKS, 0.5, 8)),
    'mixed: guest swaps, throttled, errors': _all(
        _swap_guest, _reach(Quantity.THROTTLED_S, 72.0), _errors),
}


def _network(arrays, host, _first):
    """Let an eighth of the CPUs serve a network, with more load by day."""
    days = 1 + numpy.sin(numpy.arange(len(arrays[Quantity.SLAB]))
                         * 2 * numpy.pi / MINUTES)[:, None]
    cpus = slice(0, host.cpus // 8)
    arrays[Quantity.INTERRUPTS][:, cpus] += 10_000 * days
    arrays[Quantity.SYSTEM][:, cpus] += 0.2 * days


def _balance(arrays, host, _first):
    """Let NUMA balancing take 30 % of the time."""
    _peak(arrays, Quantity.SYSTEM, 0.3, host)
    _peak(arrays, Quantity.SHOOTDOWNS, 1800.0, host)


def _nightly(values, begin, minutes):
    def change(arrays, host, _first):
        # Each host begins at its own time, within 20 minutes.
        start = int(begin + 60 * host.cpus % 7 + host.dice.integers(-10, 10))
        _totals(values, host, arrays, slice(start, start + minutes))
    return change


#: Kinds of noise: how much the hosts differ, how many of eight hosts have an
#: additional load, and which load.
NOISES = {
    'alike': (0.0, 0, None),
    'mixed fleet': (0.7, 0, None),
    'busy network on 2 of 8 hosts': (0.0, 2, _network),
    '30 % system time, NUMA balancing': (0.0, HOSTS, _balance),
    'a nightly backup on 2 of 8 hosts': (0.0, 2, _nightly(
        {Quantity.IOWAIT: 10.0, Quantity.SWAPPED: 500.0}, 120, 120)),
    '12 minutes of paging on 2 of 8 hosts': (0.0, 2, _nightly(
        SWAPPING, 200, 12)),
    'slab at 3 % on 2 of 8 hosts': (0.0, 2, lambda arrays, *_: arrays[
        Quantity.SLAB].fill(0.03)),
}


class Fleet:
    """A class of hosts with their scores and their supervision."""

    def __init__(self, name, cpus):
        level, number, self._change = NOISES[name]
        self._changed = set(range(number))
        self.hosts = [host_rates.Host([number, cpus, len(name)], cpus, level)
                      for number in range(HOSTS)]
        self.scores = [host_scores.HostScores(cpus) for _ in self.hosts]
        self.record = supervision.FleetRecord()
        self.classes = {'all': [f'n{each}' for each in range(HOSTS)]}
        self.minute = 0

    def run_day(self):
        """Yield the readings and the record of each minute."""
        days = []
        for number, host in enumerate(self.hosts):
            arrays = host.make_minutes(0, MINUTES)
            if number in self._changed:
                self._change(arrays, host, 0)
            days.append(self.scores[number].score(arrays))
        for found in zip(*days, strict=True):
            yield found, self.step(found)

    def step(self, scores):
        """Supervise the scores of all hosts, and return the record."""
        now = 1.8e9 // 86400 * 86400 + 60.0 * self.minute
        self.minute += 1
        if all(each is host_scores.NOTHING for each in scores) and not any(
                host.signs for host in self.record.hosts.values()):
            # Where nothing is found and nothing was, only time passes.
            self.record = dataclasses.replace(self.record, time=now, common=())
        else:
            self.record = supervision.follow(self.record, {
                f'n{number}': each for number, each in enumerate(scores)},
                self.classes, now)
        return self.record


def _find_signs(record):
    """Return the signs that are on: the host and the name of each."""
    found = set()
    for name, host in record.hosts.items():
        found.update((name, sign) for sign, each in host.signs.items()
                     if each.on)
    return found


def count_alarms(name, cpus, days):
    """Count the signs that come on after learning, by name."""
    fleet = Fleet(name, cpus)
    for _ in range(_LEARN_DAYS):
        for _ in fleet.run_day():
            pass
    found, on = {}, set()
    for _ in range(days):
        for _, record in fleet.run_day():
            now = _find_signs(record)
            for _, sign in now - on:
                found[sign] = found.get(sign, 0) + 1
            on = now
    return found


def measure_delays(prepared, cause, hosts):
    """Measure how many minutes a host is slow before a sign comes on.

    :param prepared: a fleet that has learned, and the scores of its peers in
        the following minutes
    :returns: None for a host without a sign within the limit
    """
    fleet, peers = prepared
    delays = []
    for number in range(hosts):
        trial = copy.copy(fleet)
        cpus = fleet.hosts[0].cpus
        host = host_rates.Host([number, cpus, 1], cpus)
        arrays = host.make_minutes(0, LIMIT)
        CAUSES[cause](arrays, host, 0)
        scores = copy.deepcopy(fleet.scores[0]).score(arrays)
        delays.append(next(
            (minute for minute, found in enumerate(scores, 1)
             if trial.step([found, *peers[minute - 1]]).hosts['n0'].reason),
            None))
    return delays


def prepare(cpus):
    """Let a fleet learn, and return it with the later scores of its peers."""
    fleet = Fleet('alike', cpus)
    for _ in range(_LEARN_DAYS):
        for _ in fleet.run_day():
            pass
    day = copy.deepcopy(fleet).run_day()
    return fleet, [next(day)[0][1:] for _ in range(LIMIT)]


def roll_out(at_once):
    """Give 40 hosts a kernel with three times the interrupts.

    :returns: how many are in quarantine in the end, and why no more are
    """
    names = [f'n{number}' for number in range(40)]
    classes, record, held = {'all': names}, supervision.FleetRecord(), 0
    for minute in range(6 * MINUTES):
        later = (minute - 4 * MINUTES) / 30
        score = functools.partial(signature.SignScore, unit='cpu0')
        record = supervision.follow(record, {
            name: {'interrupts': score(1.8 if later >= 0 and (
                at_once or number <= later) else 0.6)}
            for number, name in enumerate(names)}, classes, 60.0 * minute)
        excess = supervision.find_excess(record, classes, 0.1, 5)
        if excess:
            return held, excess
        slow = [name for name, host in record.hosts.items()
                if host.reason and not host.held]
        held += len(slow)
        record = dataclasses.replace(
            record, holds=record.holds + (60.0 * minute,) * len(slow),
            hosts={name: dataclasses.replace(host, held=bool(host.reason))
                   for name, host in record.hosts.items()})
    return held, 'nothing more was slow'


def main(words: list[str]) -> int:
    """Print the tables."""
    host_days = int(words[0]) if words else 200
    hosts = int(words[1]) if len(words) > 1 else 40
    sizes = tuple(map(int, words[2:])) or SIZES
    print(f'CPUs: {sizes}')
    with concurrent.futures.ProcessPoolExecutor(
            len(os.sched_getaffinity(0))) as pool:
        prepared = {cpus: pool.submit(prepare, cpus)
                    for cpus in sizes if hosts}
        alarms, delays = {}, {}
        if host_days:
            for name, cpus in itertools.product(NOISES, sizes):
                alarms[name, cpus] = pool.submit(
                    count_alarms, name, cpus, host_days // HOSTS)
        if hosts:
            for cause, cpus in itertools.product(CAUSES, sizes):
                delays[cause, cpus] = pool.submit(
                    measure_delays, prepared[cpus].result(), cause, hosts)
        print(f'False alarms in {host_days} host-days:')
        _print(alarms, sizes, lambda found:
               f'{sum(found.values()):4d} {found or ""}')
        print(f'Found of {hosts} slow hosts, and the median of the minutes:')
        _print(delays, sizes, _format_delays)
    for at_once in (True, False):
        held, reason = roll_out(at_once)
        print('A new kernel on 40 hosts, '
              f'{"at once" if at_once else "one by one"}: {held} in '
              f'quarantine; {reason}')
    return 0


def _print(results, sizes, write):
    for row in dict.fromkeys(row for row, _ in results):
        print(f'  {row:42}' + '  '.join(write(
            results[row, cpus].result()) for cpus in sizes), flush=True)


def _format_delays(delays):
    seen = [each for each in delays if each is not None]
    return (f'{len(seen):4d} {statistics.median(seen):4.0f}' if seen
            else '   0    -')


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
