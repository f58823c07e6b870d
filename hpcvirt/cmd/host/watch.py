# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host watch``: export how much this host looks like a slow node."""

import argparse
import contextlib
import pathlib

from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt.cmd import command
from hpcvirt.cmd import extras
from hpcvirt.cmd import output
from hpcvirt.health import host_watch
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
            help='write the metrics to this file, which ends with .prom, for '
            'the textfile collector of node_exporter')
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
            import prometheus_client

            from hpcvirt.cmd.fleet import exporter
            from hpcvirt.cmd.host import watch_metrics
        watch = host_watch.HostWatch(
            lambda line: output.complain(f'hpcvirt host watch: {line}'))
        collector = watch_metrics.WatchCollector(watch)

        def answer(_: bool) -> bytes:
            return prometheus_client.generate_latest(collector)

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
