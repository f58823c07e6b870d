# SPDX-License-Identifier: Apache-2.0

"""Find the runs on hosts of a class, which can be compared with each other.

A class has the same measurement: the same benchmark with the same settings and
binaries, in as many instances of the same flavor, with the same CPU model and
the same software. Runs on hosts themselves, without guests, need only the same
measurement, CPU model and binaries: what else differs may be the reason why
one of them is slow.
"""

import json
from collections.abc import Collection
from collections.abc import Iterable

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.model import record

#: Facts in which peer hosts may differ, since they depend on the firmware.
_MAY_DIFFER = ('cpu.microcode', 'mitigation.')
#: Facts in which hosts without guests must not differ.
_OF_HOSTS = ('cpu.model', 'program.')


def peer_runs(run: record.Run, stored: Iterable[record.Run],
              refused: Collection[str] = ()) -> tuple[record.Run, ...]:
    """Return the last run on each peer of a host, sorted by host.

    :param refused: hosts that do not count as peers
    """
    wanted = _alike(run)
    found = find_classes(other for other in stored
                         if other.host not in (run.host, *refused)
                         and _alike(other) == wanted)
    return tuple(each for hosts in found for _, each in sorted(hosts.items()))


def find_classes(stored: Iterable[record.Run],
                 ) -> tuple[dict[str, record.Run], ...]:
    """Find the last valid run on each host, for each class of hosts."""
    found: dict[str, dict[str, record.Run]] = {}
    for run in stored:
        if (not run.host or run.purpose is record.Purpose.AA
                or sample_pairs.explain_invalid(run) is not None
                or len(list_counted(run)) < sample_pairs.MIN_PAIRS):
            continue
        hosts = found.setdefault(_alike(run), {})
        before = hosts.get(run.host)
        if before is None or before.started_at <= run.started_at:
            hosts[run.host] = run
    return tuple(found.values())


def list_counted(run: record.Run) -> list[record.Sample]:
    """List the samples of guests, or of hosts without guests, that count."""
    return [sample for sample in run.samples
            if sample.side is record.Side.GUEST and not sample.warm_up]


def _alike(run: record.Run) -> str:
    """Return what is equal for the runs on all hosts of a class."""
    identity = {
        name: value for name, value in run.identity.items()
        if not name.startswith(f'{record.Side.NATIVE} ')
        and not name.partition(' ')[2].startswith(_MAY_DIFFER)}
    if run.launch is None:
        identity = {
            name: value for name, value in identity.items()
            if not name.startswith(f'{record.Side.GUEST} ')
            or name.partition(' ')[2].startswith(_OF_HOSTS)}
    return json.dumps([run.benchmark, run.variant, run.shape, run.launch,
                       dict(run.parameters), identity], sort_keys=True)
