# SPDX-License-Identifier: Apache-2.0

"""Hold hosts until their quick gate passes, a batch at a time.

The gates run in processes of their own, because each takes minutes and the
supervisor goes on meanwhile, and end with it. The hosts stay held then: they
are tested again after the next start. A gate that outlives a supervisor that
was killed keeps others off its measurement; they are tried an hour later.
"""

import dataclasses
import functools
import json
import pathlib
import select
import sys
import tempfile
from collections.abc import Callable
from collections.abc import Mapping
from typing import Protocol

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt.health import gate
from hpcvirt.health import host_change
from hpcvirt.model import quarantine

_CHUNK = 65536
#: How long a gate has after SIGTERM to stop its jobs on the host and to end.
_GRACE_S = 30.0

_PROGRAM = 'import sys; from hpcvirt.cmd import main; sys.exit(main.main())'


class GateRun(Protocol):
    """A gate that was begun."""

    def poll(self) -> tuple[str, str] | None:
        """Return its result and the reason; None until it has ended."""

    def close(self) -> None:
        """End it."""


class GateProcess:
    """The quick gate of a host, ``hpcvirt bench run --quick``.

    :param target: where the gate is taken
    """

    def __init__(self, host: str, target: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='hpcvirt-gate-')
        self._found = pathlib.Path(self._folder.name, 'found')
        self._output = b''
        document = pathlib.Path(self._folder.name, 'gate.json')
        try:
            document.write_text(json.dumps({
                'kind': 'acceptance', 'schema_version': 1, 'gate': target,
                'json_lines': self._found.name}))
            self._child = child_process.Child(
                [sys.executable, '-c', _PROGRAM, 'bench', 'run',
                 str(document), host, '--quick', '--apply'], where=host,
                environment=child_environment.choose(
                    *child_environment.SITE, *child_environment.OWN),
                stderr=child_process.STDOUT)
        except BaseException:
            self._folder.cleanup()
            raise

    def poll(self) -> tuple[str, str] | None:
        """Return the result and the reason; None until it has ended."""
        stream = self._child.process.stdout
        while stream is not None and select.select([stream], [], [], 0)[0]:
            chunk = stream.read(_CHUNK)
            if not chunk:
                break
            self._output = (self._output + chunk)[-_CHUNK:]
        if not self._child.has_ended():
            return None
        try:
            found = json.loads(self._found.read_text().splitlines()[-1])
            answer = str(found['result']), str(found['reason'])
        except (OSError, ValueError, LookupError, TypeError):
            lines = self._output.decode(errors='replace').split('\n')
            said = [line.strip() for line in lines if line.strip()]
            answer = 'nothing', said[-1][:200] if said else 'it printed none'
        self.close()
        return answer

    def close(self) -> None:
        """End it with all that it has started."""
        try:
            self._child.end(_GRACE_S)
        finally:
            self._folder.cleanup()


@dataclasses.dataclass
class GateKeeper:
    """Keeps instances off hosts until their gate passes.

    :ivar read: reads the compute hosts of the cloud
    :ivar count: counts the instances of a host
    :ivar hold: puts a host in the quarantine of the gate
    :ivar release: ends that
    :ivar begin: begins the gate of a host
    :ivar say: prints a line
    """

    read: Callable[[], Mapping[str, gate.GatedCompute]]
    count: Callable[[str], int]
    hold: Callable[[str, quarantine.Hold], None]
    release: Callable[[str], None]
    begin: Callable[[str], GateRun]
    say: Callable[[str], None]
    #: Of the last look.
    computes: Mapping[str, gate.GatedCompute] = dataclasses.field(
        default_factory=dict)
    runs: dict[str, GateRun] = dataclasses.field(default_factory=dict)
    _full: set[str] = dataclasses.field(default_factory=set)

    def look(self, known: Mapping[str, gate.GatedHost] | None, now: float,
             time: str) -> dict[str, gate.GatedHost]:
        """Find out what has changed, in the cloud and of the gates.

        :returns: what is to be remembered before anything is changed
        :raises HpcvirtError: if the cloud does not answer
        """
        self.computes = self.read()
        decided = None if known is None else dict(known)
        for name, run in [*self.runs.items()]:
            answer = run.poll()
            if answer is None:
                continue
            del self.runs[name]
            if decided is not None and name in decided:
                decided[name] = gate.decide(decided[name], *answer, now)
        # Somebody may have taken the host out of service meanwhile.
        hosts = gate.follow(decided, self.computes, self.count, now)
        for name, host in hosts.items():
            before = (known or {}).get(name)
            if before is not None and before.state is host.state:
                # A repair counts only if it lasts until it is seen.
                if host.repairing and not before.repairing:
                    self.say(f'{time} {name}: is being repaired; the gate '
                             'follows')
                continue
            if before is None and host.state is gate.GateState.PASSED:
                continue
            self.say(f'{time} {name}: '
                     + (host.reason or 'the gate has passed'))
        return hosts

    def act(self, hosts: Mapping[str, gate.GatedHost], time: str) -> bool:
        """Hold, release and test hosts; whether all was done."""
        done = True
        held, released = gate.list_changes(hosts, self.computes)
        for name in held:
            hold = host_change.make_hold(quarantine.GATE, hosts[name].reason,
                                         time)
            done &= host_change.attempt(
                functools.partial(self.hold, name, hold), self.say,
                f'{time} {name}', 'hold',
                'hold for the gate' if self.computes[name].hold is None
                else 'note of the reason at the hold')
        for name in released:
            done &= host_change.attempt(
                functools.partial(self.release, name), self.say,
                f'{time} {name}', 'release', 'release for the gate')
        for name in gate.list_ready(hosts, self.computes, self.runs):
            if len(self.runs) >= gate.BATCH:
                break
            try:
                self._begin(name, time)
            except exception.HpcvirtError as exc:
                self.say(f'{time} {name}: the gate cannot be taken: {exc}')
                done = False
        return done

    def _begin(self, name: str, time: str) -> None:
        """Begin the gate of a host, unless it has instances."""
        number = self.count(name)
        if number:
            if name not in self._full:
                self.say(f'{time} {name}: the gate waits until the host is '
                         f'empty; it has {number} now')
            self._full.add(name)
            return
        self._full.discard(name)
        self.runs[name] = self.begin(name)
        self.say(f'{time} {name}: the gate has begun')

    def close(self) -> None:
        """End the gates that run."""
        for run in self.runs.values():
            run.close()
        self.runs.clear()
