# SPDX-License-Identifier: Apache-2.0

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
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.health import host_sample
from hpcvirt.health import quarantine_reconciler
from hpcvirt.health import rates
from hpcvirt.health import recording
from hpcvirt.health import sampler
from hpcvirt.health import signature
from hpcvirt.model import cpuset

_EPILOG = """\
With --apply, the cloud is chosen as by every OpenStack client. A cloud that
does not answer is asked again later. Exit status: 0 after SIGTERM or the end
of the replay; 2 if the input cannot be used, or at the end of a replay the
cloud is not as wanted.
"""

_LONGEST_INTERVAL_S = 300


class WatchHost(command.Command):
    """Put a host in quarantine while it is slow.

    Sample this host until SIGTERM, and print when it begins and ends to look
    like a slow node: interrupts, system time, iowait with swapping, steal,
    growing slab, foreign tasks on dedicated CPUs, corrected memory errors,
    throttling. With --apply, put it in quarantine and release it again.
    Quarantine by others is left alone, and so is everything that runs on the
    host.
    """

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--hostname', default=socket.gethostname(), metavar='NAME',
            dest='host',
            help='what nova-compute calls this host (default: its host name)')
        parser.add_argument(
            '--interval', type=int, default=60, metavar='SECONDS',
            help='between two samples (default: %(default)s)')
        parser.add_argument(
            '--dedicated', metavar='CPUS',
            help='the CPUs of guests, such as 2-63 (default: those that the '
            'kernel isolates)')
        parser.add_argument(
            '--baseline', metavar='FILE', action='append', default=[],
            help='samples that were recorded on a host of the same class: '
            'what is usual there is no sign; may be given several times')
        parser.add_argument(
            '--record', metavar='FILE',
            help='append each sample to this file')
        parser.add_argument(
            '--replay', metavar='FILE',
            help='take the samples of this file instead of this host, '
            'without pauses')
        parser.add_argument(
            '--state', metavar='FILE',
            help='where the state is kept from start to start')
        parser.add_argument(
            '--serve', metavar='ADDRESS', nargs='?', const='127.0.0.1:9835',
            help='serve metrics to Prometheus on this host and port, '
            '%(const)s if none is given')
        cloud_arguments.add(parser)
        parser.add_argument(
            '--apply', action='store_true',
            help='change the cloud; without it the decisions are only printed')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Watch this host, or replay a recording."""
        args = parsed_args
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
                for sample in _samples(args, stop):
                    if args.record is not None:
                        _attempt(lambda sample=sample: recording.append(
                            args.record, sample))
                    watch.take(sample)
        finally:
            signal.signal(signal.SIGTERM, before)
        return 0


class Watch:
    """The state of the host that is watched.

    :ivar found: the rates since the last sample
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.signs: Sequence[signature.Sign] = signature.learn_signs(
            list(recording.read(path)) for path in args.baseline
        ) if args.baseline else signature.SIGNS
        self.state = _load(args.state)
        self.found: rates.Rates = {}
        self.reconciler = quarantine_reconciler.QuarantineReconciler(
            args.host, lambda: cloud_arguments.connect_quarantine(args),
            f'hpcvirt-watch@{socket.gethostname()}', args.interval)

    def take(self, sample: host_sample.HostSample) -> None:
        """Decide anew, and act on it."""
        before = self.state
        self.state, self.found = signature.follow(before, sample, self.signs)
        time = datetime.datetime.fromtimestamp(
            sample.time, datetime.UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
        for name, progress in self.state.signs.items():
            known = before.signs.get(name, signature.SignProgress())
            if progress.on is not known.on:
                print(f'{time} {self._args.host}: {name} '
                      + (f'begins: {progress.words}' if progress.on
                         else 'is over'), flush=True)
        if self._args.apply:
            self.state, line = self.reconciler.settle(self.state, time)
            if line is not None:
                print(f'{time} {self._args.host}: {line}', flush=True)
        if self._args.state is not None:
            _attempt(lambda: recording.save(self._args.state, self.state))


def _load(path: str | None) -> signature.HostHealth:
    """Read the state; one that cannot be read is put aside.

    The service must not stop because of it. It then leaves the host as it is
    until it has observed it for long enough.
    """
    if path is None:
        return signature.HostHealth()
    try:
        return recording.load(path)
    except exception.InvalidInput as exc:
        aside = recording.put_aside(path)
        output.complain(f'hpcvirt host watch: {exc}; it is now {aside}')
        return signature.HostHealth()


def _replay(watch: Watch, args: argparse.Namespace) -> int:
    for sample in recording.read(args.replay):
        watch.take(sample)
    if watch.state.last is None:
        raise exception.InvalidInput(args.replay, 'has no sample')
    reason = watch.state.reason
    print(f'{args.host}: ' + (f'slow: {reason}' if reason
                              else 'no sign is on'))
    wanted = watch.state.wanted
    return 2 if args.apply and wanted not in (None, watch.state.held) else 0


def _samples(args: argparse.Namespace,
            stop: threading.Event) -> Iterator[host_sample.HostSample]:
    """Sample until the end; a sample that fails is left out."""
    dedicated = None if args.dedicated is None else cpuset.parse(
        args.dedicated, '--dedicated')
    source = sampler.HostSampler(pathlib.Path('/'), dedicated)
    while True:
        taken: list[host_sample.HostSample] = []
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


@contextlib.contextmanager
def _serving(watch: Watch, address: str | None) -> Iterator[None]:
    if address is None:
        yield
        return
    with extras.require('exporter'):
        from hpcvirt.cmd.fleet import exporter
        from hpcvirt.cmd.host import watch_metrics
    with exporter.run_server(watch_metrics.WatchCollector(watch),
                             exporter.address(address)):
        yield
