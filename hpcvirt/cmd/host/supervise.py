# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host supervise``: put the slow hosts of a cloud in quarantine."""

import argparse
import collections
import contextlib
import functools
import itertools
import re
import time
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import saved_document
from hpcvirt import serialization
from hpcvirt.cmd import cloud_arguments
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd import yaml_file
from hpcvirt.health import gate_keeper
from hpcvirt.health import readings
from hpcvirt.health import supervisor
from hpcvirt.model import quarantine

_EPILOG = """\
FILE of --classes is YAML, and maps the name of each class to the list of its
hosts, as nova-compute calls them. Hosts are learned for three days. If more
hosts look slow than --max-share or --max-per-hour allow, nothing is changed
any more until a person removes the file that is named then. With --apply, the
cloud is chosen as by every OpenStack client. Exit status: 0 after SIGTERM, or
with --once if the cloud is as decided; 2 if it is not, or if the input cannot
be used.
"""

#: Between two readings: the hosts take a sample a minute.
_INTERVAL_S = 60.0

_MOST = 1 << 22
_HOST = re.compile(r'[A-Za-z0-9][\w.-]{0,252}', re.ASCII)


class SuperviseHosts(command.Command):
    """Put the slow hosts of a cloud in quarantine.

    Read what "hpcvirt host watch" exports on each host, and print which hosts
    are slow: compared with their limits, with what is usual at this hour, and
    with their class now. With --apply, put them in quarantine and release
    them again. Quarantine by others is left alone. Run this once for a cloud.
    """

    epilog = _EPILOG

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--classes', metavar='FILE', required=True,
                            help='the hosts of each class')
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            '--prometheus', metavar='URL',
            help='the Prometheus that scrapes the hosts; the label instance '
            'is the name of the host, with or without a port')
        source.add_argument('--textfiles', metavar='FOLDER',
                            help='read HOST.prom in this folder')
        parser.add_argument(
            '--state', metavar='FILE', required=True,
            help='where the state is kept from start to start')
        parser.add_argument(
            '--max-share', default=10, metavar='PERCENT',
            type=command.whole_number(0, 100),
            help='of each class that may be in quarantine, but one host at '
            'least (default: %(default)s)')
        parser.add_argument(
            '--max-per-hour', default=5, metavar='N',
            type=command.whole_number(1, 10_000),
            help='hosts that may be put in quarantine within an hour '
            '(default: %(default)s)')
        # Gates take minutes, and would end with a program that runs once.
        pace = parser.add_mutually_exclusive_group()
        pace.add_argument(
            '--gate', metavar='TARGET',
            help='hold new and repaired hosts until the quick gate passes '
            'there, such as ssh://root@{host}')
        pace.add_argument('--once', action='store_true',
                          help='decide once, and end')
        cloud_arguments.add_apply(parser, 'decisions')

    def take_action(self, args: argparse.Namespace) -> int:
        """Supervise until SIGTERM, or once."""
        if args.prometheus is not None and not re.match(
                'https?://', args.prometheus):
            raise exception.InvalidInput('--prometheus', 'is no URL of HTTP')
        if args.gate is not None and not args.apply:
            raise exception.InvalidInput('--gate', 'needs --apply')
        classes = read_classes(args.classes)
        hosts = list(itertools.chain.from_iterable(classes.values()))

        def change(host: str, hold: quarantine.Hold | None) -> None:
            cloud = cloud_arguments.connect_quarantine(args)
            if hold is None:
                cloud.release(host, quarantine.WATCH)
            else:
                cloud.hold(host, hold)

        with (saved_document.lock(
                args.state, f'{args.state} is used') as state,
              command.sigterm_event() as stop,
              _keep_gates(args) as keeper):
            supervised = supervisor.Supervisor(
                classes, functools.partial(
                    readings.read_folder, args.textfiles, hosts, complain=say)
                if args.textfiles is not None else functools.partial(
                    readings.read_prometheus, args.prometheus,
                    frozenset(hosts)),
                change if args.apply else None, state, args.max_share / 100,
                args.max_per_hour, say, keeper)
            while True:
                done = supervised.step(time.time())
                if args.once:
                    return 0 if done else 2
                if stop.wait(_INTERVAL_S):
                    return 0


@contextlib.contextmanager
def _keep_gates(args: argparse.Namespace,
                ) -> Iterator[gate_keeper.GateKeeper | None]:
    """Keep instances off hosts without a passed gate, if that is wanted."""
    if args.gate is None:
        yield None
        return
    from hpcvirt.cloud import gated_hosts
    keeper = gate_keeper.GateKeeper(
        lambda: gated_hosts.read(cloud_arguments.connect(args)),
        lambda host: gated_hosts.count_instances(
            cloud_arguments.connect(args), host),
        lambda host, hold: cloud_arguments.connect_quarantine(args).hold(
            host, hold),
        lambda host: cloud_arguments.connect_quarantine(args).release(
            host, quarantine.GATE),
        lambda host: gate_keeper.GateProcess(
            host, args.gate.replace('{host}', host)), say)
    try:
        yield keeper
    finally:
        keeper.close()


def say(line: str) -> None:
    """Print a line; no decision depends on whether it can be written."""
    try:
        print(line, flush=True)
    except output.ReaderLeft:
        raise
    except output.Unwritable as exc:
        output.complain(f'hpcvirt host supervise: {exc}')


def read_classes(path: str) -> Mapping[str, Sequence[str]]:
    """Read the classes; each host is in one of them."""
    classes = serialization.load(
        Mapping[str, tuple[str, ...]],  # type: ignore[type-abstract]
        yaml_file.read(path, _MOST), path)
    hosts = collections.Counter(
        itertools.chain.from_iterable(classes.values()))
    for host, number in hosts.items():
        if not _HOST.fullmatch(host) or number > 1:
            raise exception.InvalidInput(
                path, f'{host[:64]!r} is not the name of a compute host, or '
                'is there twice')
    if not hosts:
        raise exception.InvalidInput(path, 'has no host')
    return classes
