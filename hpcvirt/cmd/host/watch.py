# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host watch``: export how much this host looks like a slow node."""

import argparse
import contextlib
import pathlib
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.fleet import metrics
from hpcvirt.health import host_watch
from hpcvirt.health import readings
from hpcvirt.health import sampler
from hpcvirt.model import cpuset

_LONGEST_INTERVAL_S = 300
_PORT = 9835


class WatchHost(command.Command):
    """Export how much a host looks like a slow node.

    Sample this host until SIGTERM, and export scores for Prometheus:
    interrupts, shoot-downs, swapping, steal, slab, foreign tasks on dedicated
    CPUs, frequency, throttling, memory errors, PCIe links. Nothing is changed
    on the host or in the cloud; "hpcvirt host supervise" decides.
    """

    epilog = ('At the start, the signs that this host cannot show are named. '
              'Exit status: 0 after SIGTERM; 2 if the input cannot be used.')

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--interval', default=60, metavar='SECONDS',
            type=command.whole_number(1, _LONGEST_INTERVAL_S),
            help='between two samples (default: %(default)s)')
        parser.add_argument(
            '--dedicated', metavar='CPUS',
            help='the CPUs of guests, such as 2-63 (default: those that the '
            'kernel isolates or leaves without a timer tick)')
        parser.add_argument(
            '--textfile', metavar='FILE',
            help='write metrics to this file for node_exporter (FILE.prom)')
        parser.add_argument(
            '--serve', metavar='ADDRESS', nargs='?',
            const=f'127.0.0.1:{_PORT}',
            help='serve the metrics to Prometheus on this host and port, '
            '%(const)s if none is given')

    def take_action(self, args: argparse.Namespace) -> int:
        """Watch this host."""
        if args.textfile is None and args.serve is None:
            raise exception.InvalidInput(
                '--textfile, --serve', 'one of them is needed')
        dedicated = (None if args.dedicated is None
                     else cpuset.parse(args.dedicated, '--dedicated'))
        with extras.require('exporter'):
            from hpcvirt.cmd.fleet import exporter
        watch = host_watch.HostWatch(
            lambda line: output.complain(f'hpcvirt host watch: {line}'))

        def answer(_: bool) -> bytes:
            return exporter.write(list_families(watch)).encode()

        def export() -> None:
            if args.textfile is not None:
                output_file.write(args.textfile, answer(False))

        export()
        with (command.sigterm_event() as stop,
              contextlib.nullcontext() if args.serve is None
              else exporter.run_server(answer,
                                       exporter.address(args.serve, _PORT))):
            watch.run(sampler.HostSampler(pathlib.Path('/'), dedicated),
                      args.interval, stop, export)
        return 0


def list_families(watch: host_watch.HostWatch) -> Iterator[metrics.Family]:
    """List what the last samples said; what is not known is missing."""
    yield metrics.Family(
        readings.SCORE, 'What the worst unit of the host has reached of the '
        'limits of the sign for 10 of the last 30 minutes; less than half is '
        '0', ('sign', 'unit'), {
            (sign, unit): score
            for sign, (score, unit) in watch.scores.items()})
    rates: dict[tuple[str, ...], float] = {}
    for sign, values in watch.worst.items():
        for name, value in values.items():
            rates[sign, name.value] = value
    yield metrics.Family(
        'hpcvirt_host_rate', 'What this unit does, in the units of the '
        'documentation', ('sign', 'quantity'), rates)
    sample = watch.latest
    if sample is None:
        return
    yield metrics.Family(
        readings.TIME, 'When the last sample was taken', (),
        {(): sample.time})
    for place, part in enumerate(('', '_free')):
        yield metrics.Family(
            f'hpcvirt_host_huge_pages{part}', f'Huge pages{part and ", free"}',
            ('cell', 'size_kib'), {
                labels: numbers[place]
                for labels, numbers in sample.huge_pages.items()})
    if sample.ksm_pages is not None:
        yield metrics.Family('hpcvirt_host_ksm_pages', 'Pages that KSM has '
                             'merged', (), {(): sample.ksm_pages})
    if sample.slab_kib is not None:
        yield metrics.Family('hpcvirt_host_slab_bytes', 'Unreclaimable slab',
                             (), {(): sample.slab_kib * 1024})
