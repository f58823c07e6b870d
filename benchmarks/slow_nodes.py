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

"""Count the false alarms of ``hpcvirt host watch``, and how soon it is right.

Healthy hosts with heavy-tailed, daily and autocorrelated noise (see
``benchmarks/host_frames.py``) are replayed frame by frame through the decision
of the service; any sign that comes on is a false alarm. Then hosts become slow
as the published ones did, with the same noise on top of everything else.

    python benchmarks/slow_nodes.py [HOST_DAYS]
"""

import collections
import itertools
import random
import statistics
import sys

import host_frames

from hpcvirt.health import signature

_SAMPLES_A_DAY = 1440


def false_alarms(host_days: int) -> collections.Counter[str]:
    """Count the signs that come on; each host is replayed for ten days."""
    found: collections.Counter[str] = collections.Counter()
    for host in range(-(-host_days // 10)):
        dice = random.Random(f'healthy {host}')
        on: set[str] = set()
        for state in _follow(host_frames.healthy(
                dice, 10 * _SAMPLES_A_DAY)):
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
        healthy = host_frames.healthy(dice, 120)
        rates = itertools.chain(
            itertools.islice(healthy, 60),
            ({**each, **{name: value * dice.uniform(0.8, 1.25)
                         for name, value in slow.items()}}
             for each in healthy))
        delay = None
        for number, state in enumerate(_follow(rates)):
            if state.reason:
                delay = (number - 60) * host_frames.INTERVAL_S
                break
        found.append(delay)
    return found


def _follow(rates):
    state = signature.State()
    for frame in host_frames.frames_of(rates):
        state, _ = signature.follow(state, frame)
        yield state


def main(words: list[str]) -> int:
    """Print both."""
    host_days = int(words[0]) if words else 1000
    alarms = false_alarms(host_days)
    print(f'{host_days} host-days: {sum(alarms.values())} false alarms '
          f'{dict(alarms) or ""}')
    for name, slow in (('shoot-downs', host_frames.SHOOTDOWNS),
                       ('swapping', host_frames.SWAPPING)):
        delays = delays_s(slow, 200)
        seen = [delay for delay in delays if delay is not None]
        print(f'{name}: {len(seen)} of {len(delays)} hosts found, after '
              f'{statistics.median(seen) / 60:.0f} minutes (at most '
              f'{max(seen) / 60:.0f})')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
