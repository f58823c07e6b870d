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

"""``hpcvirt host watch``: find out when a host becomes slow."""

import argparse
import contextlib
import datetime
import pathlib
import signal
import socket
import threading
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.health import frame as frames
from hpcvirt.health import keeper
from hpcvirt.health import rates
from hpcvirt.health import recording
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.health import usual
from hpcvirt.model import cpuset

_ABOUT = """\
Sample this host until SIGTERM, and print when it begins and ends to look like
a slow node: interrupts, system time, iowait with swapping, steal, growing
slab, strangers on dedicated CPUs, corrected memory errors, throttling. With
--apply, put it in quarantine and release it again. Quarantine by others is
left alone, and so is everything that runs on the host.
"""

_EPILOG = """\
With --apply, the cloud is chosen as by every OpenStack client. A cloud that
does not answer is asked again later. Exit status: 0 after SIGTERM or the end
of the replay; 2 if the input cannot be used, or at the end of a replay the
cloud is not as wanted.
"""

_LONGEST_INTERVAL_S = 300


def add(verbs: 'argparse._SubParsersAction[argparse.ArgumentParser]') -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'watch', help='put a host in quarantine while it is slow',
        description=_ABOUT, epilog=_EPILOG)
    parser.add_argument(
        '--host', default=socket.gethostname(), metavar='NAME',
        help='what nova-compute calls this host (default: its host name)')
    parser.add_argument(
        '--interval', type=int, default=60, metavar='SECONDS',
        help='between two samples (default: %(default)s)')
    parser.add_argument(
        '--dedicated', metavar='CPUS', help='the CPUs of guests, such as 2-63 '
        '(default: those that the kernel isolates)')
    parser.add_argument(
        '--usual', metavar='FILE', action='append', default=[],
        help='frames that were recorded on a host of the same class: what is '
        'usual there is no sign; may be given several times')
    parser.add_argument('--record', metavar='FILE',
                        help='append each frame to this file')
    parser.add_argument('--replay', metavar='FILE',
                        help='take the frames of this file instead of this '
                        'host, without pauses')
    parser.add_argument('--state', metavar='FILE',
                        help='where the state is kept from start to start')
    parser.add_argument(
        '--serve', metavar='ADDRESS', nargs='?', const='127.0.0.1:9835',
        help='serve metrics to Prometheus on this host and port, %(const)s if '
        'none is given')
    cloud_arguments.add(parser)
    parser.add_argument('--apply', action='store_true',
                        help='change the cloud; without it the decisions are '
                        'only printed')
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Watch this host, or replay a recording."""
    if not 1 <= args.interval <= _LONGEST_INTERVAL_S:
        raise exception.InvalidInput(
            '--interval', f'must be from 1 to {_LONGEST_INTERVAL_S}')
    if args.replay is not None and args.record is not None:
        raise exception.InvalidInput('--record', 'is not for --replay')
    watch = Watch(args)
    if args.replay is not None:
        return _replay(watch, args)
    stop = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with _serving(watch, args.serve):
            for frame in _frames(args, stop):
                if args.record is not None:
                    _attempt(lambda frame=frame: recording.append(
                        args.record, frame))
                watch.take(frame)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


class Watch:
    """The state of the host that is watched.

    :ivar found: the rates since the last frame
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.signs: Sequence[signature.Sign] = usual.signs(
            list(recording.read(path)) for path in args.usual
        ) if args.usual else signature.SIGNS
        self.state = _load(args.state)
        self.found: rates.Rates = {}
        self.keeper = keeper.Keeper(
            args.host, lambda: _cloud(args),
            f'hpcvirt-watch@{socket.gethostname()}', args.interval)

    def take(self, frame: frames.Frame) -> None:
        """Decide anew, and act on it."""
        before = self.state
        self.state, self.found = signature.follow(before, frame, self.signs)
        time = datetime.datetime.fromtimestamp(
            frame.time, datetime.UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
        for name, progress in self.state.signs.items():
            known = before.signs.get(name, signature.Progress())
            if progress.on is not known.on:
                print(f'{time} {self._args.host}: {name} '
                      + (f'begins: {progress.words}' if progress.on
                         else 'is over'), flush=True)
        if self._args.apply:
            self.state, line = self.keeper.settle(self.state, time)
            if line is not None:
                print(f'{time} {self._args.host}: {line}', flush=True)
        if self._args.state is not None:
            _attempt(lambda: recording.save(self._args.state, self.state))


def _load(path: str | None) -> signature.State:
    """Read the state; one that cannot be read is put aside.

    The service must not stop because of it. It then leaves the host as it is
    until it has observed it for long enough.
    """
    if path is None:
        return signature.State()
    try:
        return recording.load(path)
    except exception.InvalidInput as exc:
        aside = recording.put_aside(path)
        output.complain(f'hpcvirt host watch: {exc}; it is now {aside}')
        return signature.State()


def _replay(watch: Watch, args: argparse.Namespace) -> int:
    for frame in recording.read(args.replay):
        watch.take(frame)
    if watch.state.last is None:
        raise exception.InvalidInput(args.replay, 'has no frame')
    reason = watch.state.reason
    print(f'{args.host}: ' + (f'slow: {reason}' if reason
                              else 'no sign is on'))
    wanted = watch.state.wanted
    return 2 if args.apply and wanted not in (None, watch.state.held) else 0


def _frames(args: argparse.Namespace,
            stop: threading.Event) -> Iterator[frames.Frame]:
    """Sample until the end; a sample that fails is left out."""
    dedicated = None if args.dedicated is None else cpuset.parse(
        args.dedicated, '--dedicated')
    source = sampler.Sampler(pathlib.Path('/'), dedicated)
    while True:
        taken: list[frames.Frame] = []
        _attempt(lambda taken=taken: taken.append(source.take()))
        yield from taken
        if stop.wait(args.interval):
            return


def _attempt(act: Any) -> None:
    """Go on without something that does not work now."""
    try:
        act()
    except exception.HpcvirtError as exc:
        output.complain(f'hpcvirt host watch: {exc}')


def _cloud(args: argparse.Namespace) -> keeper.Cloud:
    # The client libraries take half a second to load.
    from hpcvirt.cloud import placement
    from hpcvirt.cloud import quarantine
    from hpcvirt.cloud import session
    return quarantine.Quarantine(
        cloud_arguments.connect(args),
        placement.Placement(session.placement(args.os_cloud)))


@contextlib.contextmanager
def _serving(watch: Watch, address: str | None) -> Iterator[None]:
    if address is None:
        yield
        return
    with extras.named('exporter'):
        from hpcvirt.cmd.fleet import exporter
        from hpcvirt.cmd.host import watch_metrics
    with exporter.serving(watch_metrics.Collector(watch),
                          exporter.address(address)):
        yield
