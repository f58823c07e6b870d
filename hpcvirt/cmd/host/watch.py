# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host watch``: find out when a host becomes slow."""

import argparse
import contextlib
import pathlib
import signal
import socket
import threading
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.health import host_watch
from hpcvirt.health import quarantine_reconciler
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
            '--interval', default=60, metavar='SECONDS',
            type=command.whole_number(1, _LONGEST_INTERVAL_S),
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
        cloud_arguments.add_apply(parser, 'decisions')

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Watch this host, or replay a recording."""
        args = parsed_args
        if args.replay is not None and args.record is not None:
            raise exception.InvalidInput('--record', 'is not for --replay')
        watch = _make_watch(args)
        if args.replay is not None:
            return _replay(watch, args)
        source = sampler.HostSampler(
            pathlib.Path('/'), None if args.dedicated is None
            else cpuset.parse(args.dedicated, '--dedicated'))
        stop = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            with _serving(watch, args.serve):
                watch.run(source, args.interval, stop, args.record)
        finally:
            signal.signal(signal.SIGTERM, before)
        return 0


def _make_watch(args: argparse.Namespace) -> host_watch.HostWatch:
    return host_watch.HostWatch(
        args.host, signature.learn_signs(
            list(recording.read(path)) for path in args.baseline
        ) if args.baseline else signature.SIGNS,
        quarantine_reconciler.QuarantineReconciler(
            args.host, lambda: cloud_arguments.connect_quarantine(args),
            f'hpcvirt-watch@{socket.gethostname()}', args.interval),
        args.apply, args.state, lambda line: print(line, flush=True),
        lambda line: output.complain(f'hpcvirt host watch: {line}'))


def _replay(watch: host_watch.HostWatch, args: argparse.Namespace) -> int:
    for sample in recording.read(args.replay):
        watch.take(sample)
    if watch.state.last is None:
        raise exception.InvalidInput(args.replay, 'has no sample')
    reason = watch.state.reason
    print(f'{args.host}: ' + (f'slow: {reason}' if reason
                              else 'no sign is on'))
    wanted = watch.state.wanted
    return 2 if args.apply and wanted not in (None, watch.state.held) else 0


@contextlib.contextmanager
def _serving(watch: host_watch.HostWatch,
             address: str | None) -> Iterator[None]:
    if address is None:
        yield
        return
    with extras.require('exporter'):
        from hpcvirt.cmd.fleet import exporter
        from hpcvirt.cmd.host import watch_metrics
    with exporter.run_server(watch_metrics.WatchCollector(watch),
                             exporter.address(address)):
        yield
