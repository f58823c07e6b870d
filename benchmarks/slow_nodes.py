# SPDX-License-Identifier: Apache-2.0

"""Count the false alarms of ``hpcvirt host watch``, and how soon it is right.

Healthy hosts with heavy-tailed, daily and autocorrelated noise (see
``benchmarks/host_samples.py``) are replayed sample by sample through the
decision of the service; any sign that comes on is a false alarm. Then hosts
become slow as the published ones did, with the same noise on top of
everything else.

    python benchmarks/slow_nodes.py [HOST_DAYS]
"""

import collections
import itertools
import random
import statistics
import sys

import host_samples

from hpcvirt.health import signature

_SAMPLES_A_DAY = 1440


def false_alarms(host_days: int) -> collections.Counter[str]:
    """Count the signs that come on; each host is replayed for ten days."""
    found: collections.Counter[str] = collections.Counter()
    for host in range(-(-host_days // 10)):
        dice = random.Random(f'healthy {host}')
        on: set[str] = set()
        for state in _follow(host_samples.healthy(dice, 10 * _SAMPLES_A_DAY)):
            now = {name for name, each in state.signs.items() if each.on}
            found.update(now - on)
            on = now
    return found


def delays_s(slow: dict[str, float], hosts: int) -> list[float | None]:
    """Measure how long each host is slow before a sign comes on.

    :returns: None for a host on which none came on within an hour
    """
    found: list[float | None] = []
    for host in range(hosts):
        dice = random.Random(f'slow {host}')
        healthy = host_samples.healthy(dice, 120)
        rates = itertools.chain(
            itertools.islice(healthy, 60),
            ({**each, **{name: value * dice.uniform(0.8, 1.25)
                         for name, value in slow.items()}}
             for each in healthy))
        delay = None
        for number, state in enumerate(_follow(rates)):
            if state.reason:
                delay = (number - 60) * host_samples.INTERVAL_S
                break
        found.append(delay)
    return found


def _follow(rates):
    state = signature.HostHealth()
    for sample in host_samples.make_samples(rates):
        state, _ = signature.follow(state, sample)
        yield state


def main(words: list[str]) -> int:
    """Print both."""
    host_days = int(words[0]) if words else 1000
    alarms = false_alarms(host_days)
    print(f'{host_days} host-days: {sum(alarms.values())} false alarms '
          f'{dict(alarms) or ""}')
    for name, slow in (('shoot-downs', host_samples.SHOOTDOWNS),
                       ('swapping', host_samples.SWAPPING)):
        delays = delays_s(slow, 200)
        seen = [delay for delay in delays if delay is not None]
        print(f'{name}: {len(seen)} of {len(delays)} hosts found, after '
              f'{statistics.median(seen) / 60:.0f} minutes (at most '
              f'{max(seen) / 60:.0f})')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
