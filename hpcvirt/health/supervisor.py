# SPDX-License-Identifier: Apache-2.0

"""Read a fleet, decide, and act, with a brake.

If more hosts look slow than may be put in quarantine, the cause is probably
common to them, such as an update of all hosts. Nothing is changed then until a
person has removed the file that says so.

What is to be changed is written to the state before the cloud is changed. A
supervisor that is killed or cannot write goes on where it was, and its limits
count what it did. While the state cannot be written, nothing is changed.
"""

import dataclasses
import datetime
import functools
import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt import saved_document
from hpcvirt.health import gate_keeper
from hpcvirt.health import host_change
from hpcvirt.health import signature
from hpcvirt.health import supervision
from hpcvirt.model import quarantine

Change = Callable[[str, quarantine.Hold | None], None]


@dataclasses.dataclass
class Supervisor:
    """Supervises the hosts of a cloud.

    :ivar read: returns the readings of now
    :ivar change: puts a host in quarantine, or without a hold releases it, and
        can be repeated; None if the cloud is not to be changed
    :ivar path: where the state is kept from start to start
    :ivar share: the largest fraction of a class that may be in quarantine
    :ivar per_hour: the most hosts that may be put there within an hour
    :ivar brake: the file that says why nothing is changed any more
    :ivar say: prints a line about a host, or about what failed
    :ivar keeper: keeps instances off hosts until their gate passes; None
        without a gate
    """

    classes: Mapping[str, Sequence[str]]
    read: Callable[[float], signature.Readings]
    change: Change | None
    path: str
    share: float
    per_hour: int
    say: Callable[[str], None]
    keeper: gate_keeper.GateKeeper | None = None
    brake: str = dataclasses.field(init=False)
    record: supervision.FleetRecord = dataclasses.field(init=False)
    #: What the brake has to say, until it can be written.
    _unwritten: str = dataclasses.field(init=False, default='')

    def __post_init__(self) -> None:
        """Read the state, a new one if there is no file yet.

        :raises InvalidInput: if it is of another form
        """
        self.brake = f'{self.path}.stopped'
        self.record = saved_document.find(
            supervision.FleetRecord, supervision.SCHEMA_VERSION,
            self.path) or supervision.FleetRecord()

    def step(self, now: float) -> bool:
        """Decide once.

        :returns: whether the cloud is as decided, and the state is written
        """
        try:
            found = self.read(now)
        except exception.HpcvirtError as exc:
            self.say(str(exc))
            return False
        before = self.record
        self.record = supervision.follow(before, found, self.classes, now)
        time = datetime.datetime.fromtimestamp(now, datetime.UTC).strftime(
            '%Y-%m-%dT%H:%M:%SZ')
        for line in _compare(before, self.record):
            self.say(f'{time} {line}')
        try:
            is_braked = self.change is not None and self._brake(time)
            if self.change is None or is_braked:
                self._write()
                return not is_braked
            self.record = supervision.begin_changes(self.record, now)
            is_gated = self._look_at_gates(now, time)
            self._write()
            begun = self.record
            done = self._act(self.change, time) and is_gated
            if self.keeper is not None and is_gated:
                done = self.keeper.act(
                    self.record.gates or {}, time) and done
            if self.record != begun:
                self._write()
        except exception.InvalidInput as exc:
            # A full disk, for example: the next step tries again.
            self.say(f'{time} {exc}; it is tried again')
            return False
        return done

    def _look_at_gates(self, now: float, time: str) -> bool:
        """Note what is new about gates; whether the cloud has answered."""
        if self.keeper is None:
            return True
        try:
            gates = self.keeper.look(self.record.gates, now, time)
        except exception.HpcvirtError as exc:
            self.say(f'{time} gates: {exc}; it is tried again')
            return False
        self.record = dataclasses.replace(self.record, gates=gates)
        return True

    def _write(self) -> None:
        saved_document.save(self.path, self.record)

    def _brake(self, time: str) -> bool:
        """Whether nothing may be changed.

        :raises InvalidInput: if the file of the brake cannot be written
        """
        if os.path.lexists(self.brake):
            return True
        excess = supervision.find_excess(self.record, self.classes,
                                         self.share, self.per_hour)
        if excess is not None and not self._unwritten:
            self._unwritten = (f'{time} stopped: {excess}; remove '
                               f'{self.brake} to go on')
            self.say(self._unwritten)
        if not self._unwritten:
            return False
        output_file.write(self.brake, f'{self._unwritten}\n'.encode())
        self._unwritten = ''
        return True

    def _act(self, change: Change, time: str) -> bool:
        """Make the changes that the state says; whether all were made."""
        done = True
        for name, host in self.record.hosts.items():
            if not host.changing:
                continue
            what, hold = 'release from quarantine', None
            if host.reason:
                # The metadata of the aggregate cut a reason that is long.
                what, hold = 'quarantine', host_change.make_hold(
                    quarantine.WATCH, host.reason, time)
            if host_change.attempt(functools.partial(change, name, hold),
                                   self.say, f'{time} {name}', what, what):
                self.record = supervision.end_change(self.record, name)
            else:
                done = False
        return done


def _find_reasons(record: supervision.FleetRecord,
                  ) -> dict[tuple[str, str], str]:
    """Find the reason of each sign that is on, by host and sign."""
    reasons: dict[tuple[str, str], str] = {}
    for name, host in record.hosts.items():
        for sign, progress in host.signs.items():
            if progress.on:
                reasons[name, sign] = progress.reason
    return reasons


def _compare(before: supervision.FleetRecord,
             after: supervision.FleetRecord) -> list[str]:
    """Say what has begun and what is over."""
    old, new = _find_reasons(before), _find_reasons(after)
    lines = [f'{name}: {reason}' for (name, sign), reason in new.items()
             if (name, sign) not in old]
    lines += [f'{name}: {sign} is over' for name, sign in old
              if (name, sign) not in new and name in after.hosts]
    lines += [f'{each} is common now, so it is not the fault of one host'
              for each in after.common if each not in before.common]
    lines += [f'{each} is no longer common' for each in before.common
              if each not in after.common]
    return lines
