# SPDX-License-Identifier: Apache-2.0

"""Decide which hosts of a fleet are slow, and when that is too many.

A sign is on if the score of a host is over its limit for as long as the sign
requires. It goes off when the score was well below the limit for half an hour.
The limit is the highest of three:

* 1, the limits of the sign itself;
* one and a half times what was reached on two of the last fourteen days at
  this hour, or the hour before or after, by this host;
* one and a half times what a quarter of the other hosts of the class reach at
  the same time. What many hosts do at once is not the fault of one.

A host is observed for three days before anything is decided about it. A score
that lasts for longer than six hours is then no longer learned.
"""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.health import gate
from hpcvirt.health import signature

SCHEMA_VERSION = 1

LEARN_S = 3 * 86400.0

#: How many days are remembered, and how long what is learned may last.
DAYS = 14
LONGEST_USUAL_S = 6 * 3600.0

#: How much higher than usual a score must be.
MARGIN = 1.5

#: How long a score must be low before a sign goes off, and how low.
OFF_S = 1800.0
WELL_BELOW = 0.7

#: Fewer hosts are no class to compare with.
MIN_PEERS = 3
_QUARTER = 0.75

_NAMES = {sign.name: sign for sign in signature.SIGNS}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SignProgress:
    """The progress of a sign towards coming on or going off.

    :ivar over_s: how long it has lasted
    :ivar below_s: how long it has been gone
    :ivar reason: what the host did when the sign came on
    """

    over_s: float = 0.0
    below_s: float = 0.0
    on: bool = False
    reason: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostRecord:
    """What is remembered of a host.

    :ivar since: when it was first observed
    :ivar signs: the signs that have begun, by name
    :ivar usual: the highest score by sign, hour of the day (UTC) and day
    :ivar held: whether it was put in quarantine, or may have been
    :ivar changing: whether a change of its quarantine has begun, and the cloud
        has not confirmed it
    """

    since: float
    signs: Mapping[str, SignProgress] = dataclasses.field(default_factory=dict)
    usual: Mapping[str, Mapping[int, Mapping[int, float]]] = dataclasses.field(
        default_factory=dict)
    held: bool = False
    changing: bool = False

    @property
    def is_as_decided(self) -> bool:
        """Whether the host is in quarantine if it is slow, and only then."""
        return bool(self.reason) is self.held and not self.changing

    @property
    def reason(self) -> str:
        """Say what is wrong with the host; empty if nothing is."""
        return '; '.join(progress.reason for progress in self.signs.values()
                         if progress.on)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FleetRecord:
    """What is remembered of a fleet; it outlives the program.

    :ivar time: of the last readings, in seconds since 1970
    :ivar common: classes and signs that a quarter of the hosts show
    :ivar holds: when hosts were put in quarantine in the last hour
    :ivar gates: what is known of the gate of each compute host; None before
        the first start with a gate
    """

    schema_version: int = SCHEMA_VERSION
    time: float | None = None
    hosts: Mapping[str, HostRecord] = dataclasses.field(default_factory=dict)
    common: tuple[str, ...] = ()
    holds: tuple[float, ...] = ()
    gates: Mapping[str, gate.GatedHost] | None = None


def follow(record: FleetRecord, found: signature.Readings,
           classes: Mapping[str, Sequence[str]], now: float) -> FleetRecord:
    """Take readings into account.

    :param classes: the names of the hosts of each class
    """
    length = 0.0 if record.time is None else min(
        max(0.0, now - record.time), signature.LONGEST_S)
    hosts = {}
    common = []
    for class_name, names in classes.items():
        ranks = {sign: sorted(found[name][sign].score for name in names
                              if sign in found.get(name, {}))
                 for sign in _NAMES}
        common += [f'{class_name}: {sign}' for sign, scores in ranks.items()
                   if _find_peers(scores) >= 1]
        for name in names:
            if name in record.hosts:
                hosts[name] = record.hosts[name]
            if name in found:
                hosts[name] = _follow_host(
                    hosts.get(name, HostRecord(since=now)), found[name],
                    ranks, now, length)
    return dataclasses.replace(
        record, time=now, common=tuple(common), hosts=hosts,
        holds=tuple(time for time in record.holds if now - time < 3600.0))


def _find_peers(scores: Sequence[float], own: float | None = None) -> float:
    """Find what a quarter of the hosts reach; 0 if there are too few.

    :param scores: in ascending order
    :param own: the score of the host that is compared with the others
    """
    number = len(scores) - (own is not None)
    if number < MIN_PEERS:
        return 0.0
    place = int(_QUARTER * number)
    if own is not None and own <= scores[place]:
        place += 1
    return scores[place]


def _follow_host(host: HostRecord, scores: Mapping[str, signature.SignScore],
                 ranks: Mapping[str, Sequence[float]], now: float,
                 length: float) -> HostRecord:
    signs = dict(host.signs)
    usual = dict(host.usual)
    day, hour = int(now // 86400), int(now // 3600) % 24
    for name, each in scores.items():
        learned = usual.get(name, {})
        if now - host.since >= LEARN_S:
            limit = max(1.0, MARGIN * _find_usual(learned, day, hour),
                        MARGIN * _find_peers(ranks[name], each.score))
            signs[name] = _advance(_NAMES[name], signs.get(
                name, SignProgress()), each, limit, length)
            if signs[name] == SignProgress():
                del signs[name]
        lasts_s = signs[name].over_s if name in signs else 0.0
        if each.score > 0 and lasts_s <= LONGEST_USUAL_S:
            days = learned.get(hour, {})
            if each.score > days.get(day, 0.0):
                usual[name] = {**learned, hour: {
                    **{old: value for old, value in days.items()
                       if day - old <= DAYS}, day: round(each.score, 2)}}
    return dataclasses.replace(host, signs=signs, usual=usual)


def _find_usual(learned: Mapping[int, Mapping[int, float]], day: int,
                hour: int) -> float:
    """Find what was reached on two days, at this hour or the next ones."""
    pasts = (sorted(score for old, score in learned.get(near % 24, {}).items()
                    if 0 < day - old <= DAYS)
             for near in (hour - 1, hour, hour + 1))
    return max((past[-2] for past in pasts if len(past) > 1), default=0.0)


def _advance(sign: signature.Sign, before: SignProgress,
             found: signature.SignScore, limit: float,
             length: float) -> SignProgress:
    if found.score < WELL_BELOW * limit:
        below_s = before.below_s + length
        if before.on and below_s < OFF_S:
            return dataclasses.replace(before, below_s=below_s)
        return SignProgress()
    if found.score < limit:
        return before
    over_s = before.over_s + length
    if before.on or over_s < sign.on_s:
        return dataclasses.replace(before, over_s=over_s, below_s=0.0)
    place = f' on {found.unit}' if found.unit else ''
    return SignProgress(over_s=over_s, on=True, reason=(
        f'{sign.name}{place} at {found.score:.1f} times its limit'
        + (f'; {limit / MARGIN:.1f} is usual' if limit > 1 else '')))


def begin_changes(record: FleetRecord, now: float) -> FleetRecord:
    """Note the changes that are to be made, before the cloud is changed.

    A host that is to be put in quarantine counts as held from then on, so that
    no limit forgets it if the program is killed or the cloud does not answer.
    """
    hosts = dict(record.hosts)
    holds = list(record.holds)
    for name, host in record.hosts.items():
        if host.is_as_decided:
            continue
        if host.reason and not host.held:
            holds.append(now)
        hosts[name] = dataclasses.replace(
            host, held=host.held or bool(host.reason), changing=True)
    return dataclasses.replace(record, hosts=hosts, holds=tuple(holds))


def end_change(record: FleetRecord, name: str) -> FleetRecord:
    """Note that a host is in the cloud as decided."""
    host = record.hosts[name]
    done = dataclasses.replace(host, held=bool(host.reason), changing=False)
    return dataclasses.replace(record, hosts={**record.hosts, name: done})


def find_excess(record: FleetRecord, classes: Mapping[str, Sequence[str]],
                share: float, per_hour: int) -> str | None:
    """Say why no further hosts may be put in quarantine, if that is so.

    :param share: the largest fraction of a class, but one host at least
    :param per_hour: the most hosts in an hour
    """
    new = 0
    for class_name, names in classes.items():
        hosts = [record.hosts[name] for name in names if name in record.hosts]
        slow = sum(bool(host.reason) and not host.held for host in hosts)
        held = sum(host.held for host in hosts)
        most = max(1, int(share * len(names)))
        if slow and held + slow > most:
            return (f'{held} hosts of the class {class_name} are in '
                    f'quarantine, {slow} more look slow, and no more than '
                    f'{most} of {len(names)} may be in quarantine')
        new += slow
    if new and len(record.holds) + new > per_hour:
        return (f'{len(record.holds)} hosts were put in quarantine within an '
                f'hour, {new} more look slow, and no more than {per_hour} may '
                'be put there')
    return None
