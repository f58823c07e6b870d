# SPDX-License-Identifier: Apache-2.0

"""Carry out the acceptance of a host, and undo what it needed.

Each step is written to the record before the next one begins. After a kill
the same request finds the record, the instances and the samples, and goes on.
However it ends otherwise, the instances, the key pair and the copies of
flavors are removed.
"""

import dataclasses
import time
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Protocol

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import measurement
from hpcvirt.acceptance import records
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.results import location
from hpcvirt.bench.run import runner
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import target as targets
from hpcvirt.model import quarantine

_MINUTE_S = 60.0
#: Name of a fact to the file below /sys/class/dmi/id; only root may read the
#: serial number.
_DMI = {'vendor': 'sys_vendor', 'product': 'product_name',
        'serial number': 'product_serial', 'firmware': 'bios_version',
        'firmware date': 'bios_date', 'board': 'board_name'}
_SCRIPT = """
for name; do
  read -r value 2>/dev/null < "/sys/class/dmi/id/$name" &&
    echo "$name=$value"
done
:
"""
#: Facts of a sample that describe the machine as well.
_FACTS = {'CPU': 'cpu.model', 'microcode': 'cpu.microcode',
          'CPUs online': 'cpu.online', 'SMT': 'cpu.smt', 'kernel': 'kernel',
          'kernel command line': 'kernel.cmdline'}


class HostClient(Protocol):
    """The host in its cloud."""

    def check_free(self, host: str) -> None:
        """Raise InvalidInput if the host has instances of others."""

    def fill(self, flavor: str, count: int, without: Collection[str],
              public_key: str) -> Sequence[str]:
        """Start instances, or find them, and return their ids."""

    def stop(self) -> None:
        """Delete the instances."""

    def clear(self) -> None:
        """Remove all that was created."""

    def hold(self, hold: quarantine.Hold) -> None:
        """Put the host in quarantine."""

    def release(self, holder: str) -> None:
        """End the quarantine by one holder."""

    def set_traits(self, earned: Iterable[str], of: Collection[str]) -> None:
        """Set those of some traits that the host has earned."""


@dataclasses.dataclass(frozen=True)
class HostAcceptance:
    """Accepts one host.

    :ivar connect: makes a target of the id of an instance, its flavor and the
        file with its private key
    :ivar connect_native: makes a target of the host itself
    :ivar show: makes what shows the progress
    :ivar not_started: the error of instances that Nova did not start
    :ivar complain: tells the user what could not be removed
    :ivar by: who holds the host
    """

    host: HostClient
    bench: measurement.Measurement
    records: records.Records
    data: str
    time_limit_min: int
    connect: Callable[[str, str, str], targets.Target]
    connect_native: Callable[[], targets.Target]
    show: Callable[[], runner.Progress]
    not_started: type[exception.HpcvirtError]
    complain: Callable[[str], None]
    by: str

    def accept(self, asked: acceptance.Acceptance) -> acceptance.Acceptance:
        """Accept the host.

        :returns: what was decided; it is also in the records
        :raises HpcvirtError: if it cannot be decided; the record is kept
        """
        with location.measure(self.data, f'accept-{asked.host}'):
            begun = self.records.unfinished(asked.host, asked.request)
            found = dataclasses.replace(
                asked, parts=begun.parts if begun else asked.parts,
                began_at=begun.began_at if begun else sampler.read_clock())
            self.records.write(found)
            self._hold(found, 'is being accepted')
            # Something may have started before the host was held.
            self.host.check_free(found.host)
            found = self._carry_out(found)
            self._close(found)
            self.records.write(found)
            return found

    def _carry_out(self,
                   found: acceptance.Acceptance) -> acceptance.Acceptance:
        """Measure, clean up, judge."""
        deadline = time.monotonic() + _MINUTE_S * self.time_limit_min
        why = last = ''
        try:
            for number, part in enumerate(found.parts):
                if part.result:
                    continue
                shown = measurement.TimeLimit(self.show(), deadline)
                try:
                    found = self._measure(found, number, shown)
                except measurement.TimeUp:
                    last = shown.result
                    why = (f'the time limit of {self.time_limit_min} '
                           f'minutes was reached while {part.flavor} was '
                           'measured')
                    break
                except self.not_started as exc:
                    why = str(exc)
                    break
        finally:
            measurement.clear(self.host.clear,
                              self.records.key_file(found.host),
                              self.complain)
        runs = self._read_runs(found, [
            *(part.result for part in found.parts if part.result),
            *([last] if last else [])])
        return acceptance.decide(
            found, self._judge(found, runs) if runs else None, why,
            sampler.read_clock())

    def _measure(self, found: acceptance.Acceptance, number: int,
                 shown: measurement.TimeLimit) -> acceptance.Acceptance:
        """Measure the instances of one flavor."""
        part = found.parts[number]
        key_file = self.records.key_file(found.host)
        ids = self.host.fill(part.flavor, part.instances, acceptance.TRAITS,
                             measurement.read_public_key(
                                 key_file, self.host.clear))
        guests = [self.connect(server_id, part.flavor, key_file)
                  for server_id in ids]
        natives = [self.connect_native()
                   for _ in guests] if found.native else []
        if natives and not found.machine:
            found = dataclasses.replace(
                found, machine=read_machine(natives[0].place))
        entry = self.bench.run(guests, natives, shown, key_file)
        found = dataclasses.replace(found, parts=tuple(
            dataclasses.replace(each, result=entry) if each is part else each
            for each in found.parts))
        self.records.write(found)
        # Instances of the next flavor need the whole host.
        self.host.stop()
        return found

    def _read_runs(self, found: acceptance.Acceptance,
                   results: Sequence[str]) -> tuple[record.Run, ...]:
        """Read what was measured; nothing before a repair counts."""
        since = self.records.repaired_at(found.host)
        return tuple(
            dataclasses.replace(
                run, omitted=0 if since else run.omitted,
                earlier=tuple(attempt for attempt in run.earlier
                              if attempt.started_at >= since))
            for result in results
            for run in self.bench.store.result(result).runs)

    def _judge(self, found: acceptance.Acceptance,
               runs: Sequence[record.Run]) -> judgement.Verdict | None:
        if found.native:
            return verdict.judge_result(record.Result(tuple(runs))).verdict
        store = self.bench.store
        stored = [run for _, result in store.results(
            entry for entry in store.entries() if entry.finished_at)
            for run in result.runs]
        return class_verdict.judge(runs, stored, self.records.refused())

    def _close(self, found: acceptance.Acceptance) -> None:
        """Give a host what it has earned.

        An acceptance without a decision leaves the traits as they are.
        """
        if found.result is not judgement.VerdictResult.INCONCLUSIVE:
            self.host.set_traits(found.traits, acceptance.TRAITS)
        if found.result is judgement.VerdictResult.PASS:
            self.host.release(quarantine.ACCEPT)
        else:
            self._hold(found, f'acceptance: {found.result}, {found.reason}')

    def _hold(self, found: acceptance.Acceptance, reason: str) -> None:
        self.host.hold(quarantine.Hold(
            quarantine.ACCEPT, reason, found.ended_at or found.began_at,
            self.by))


def read_machine(place: executor.Executor) -> dict[str, str]:
    """Read what the firmware of a machine says of it, for a vendor.

    What it does not say is left out.

    :raises Unreachable: if the place does not answer
    """
    dmi = environment.parse(place.run(
        ['sh', '-c', _SCRIPT, 'dmi', *_DMI.values()]).stdout)
    facts = environment.facts(place)
    return {name: source[key] for names, source in ((_DMI, dmi),
                                                    (_FACTS, facts))
            for name, key in names.items() if source.get(key)}
