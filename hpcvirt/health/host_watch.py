# SPDX-License-Identifier: Apache-2.0

"""Watch a host: sample it, decide, act, and go on whatever fails."""

import dataclasses
import datetime
import threading
import typing
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.health import host_sample
from hpcvirt.health import quarantine_reconciler
from hpcvirt.health import rates
from hpcvirt.health import recording
from hpcvirt.health import sampler
from hpcvirt.health import signature

_Result = typing.TypeVar('_Result')


@dataclasses.dataclass
class HostWatch:
    """The host that is watched.

    :ivar applies: whether the cloud is changed
    :ivar path: where the state is kept from start to start; None for nowhere
    :ivar say: prints a line about the host
    :ivar complain: prints a line about what failed
    :ivar latest: those since the last sample
    """

    host: str
    signs: Sequence[signature.Sign]
    reconciler: quarantine_reconciler.QuarantineReconciler
    applies: bool
    path: str | None
    say: Callable[[str], None]
    complain: Callable[[str], None]
    state: signature.HostHealth = dataclasses.field(init=False)
    latest: rates.Rates = dataclasses.field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Read the state; one that cannot be read is put aside.

        The service must not stop because of it. It then leaves the host as it
        is until it has observed it for long enough.
        """
        self.state = signature.HostHealth()
        if self.path is not None:
            try:
                self.state = recording.load(self.path)
            except exception.InvalidInput as exc:
                aside = recording.put_aside(self.path)
                self.complain(f'{exc}; it is now {aside}')

    def run(self, source: sampler.HostSampler, interval_s: float,
            stop: threading.Event, record: str | None = None) -> None:
        """Take samples until the end; one that fails is left out.

        :param record: the file to which each sample is appended
        """
        while True:
            sample = self._attempt(source.take)
            if sample is not None:
                if record is not None:
                    self._attempt(recording.append, record, sample)
                self.take(sample)
            if stop.wait(interval_s):
                return

    def take(self, sample: host_sample.HostSample) -> None:
        """Decide anew, and act on it."""
        before = self.state
        self.state, self.latest = signature.follow(before, sample, self.signs)
        time = datetime.datetime.fromtimestamp(
            sample.time, datetime.UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
        for name, progress in self.state.signs.items():
            known = before.signs.get(name, signature.SignProgress())
            if progress.on is not known.on:
                self.say(f'{time} {self.host}: {name} '
                         + (f'begins: {progress.words}' if progress.on
                            else 'is over'))
        if self.applies:
            self.state, line = self.reconciler.settle(self.state, time)
            if line is not None:
                self.say(f'{time} {self.host}: {line}')
        if self.path is not None:
            self._attempt(recording.save, self.path, self.state)

    def _attempt(self, act: Callable[..., _Result],
                 *given: typing.Any) -> _Result | None:
        """Go on without something that does not work now."""
        try:
            return act(*given)
        except exception.HpcvirtError as exc:
            self.complain(str(exc))
            return None
