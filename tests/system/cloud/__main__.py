# SPDX-License-Identifier: Apache-2.0

"""The command: ``python3 -m tests.system.cloud up``, ``status``, ``down``."""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence

from tests.system.cloud import cloud as clouds
from tests.system.cloud import errors
from tests.system.cloud import progress
from tests.system.cloud import services
from tests.system.cloud import settings


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: 0 on success, 1 if a service is down (``status``), 2 on an
        error
    """
    args = _parser().parse_args(argv)
    # A CI job that is cancelled gets SIGTERM: clean up as for Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cloud = clouds.Cloud(settings.load())
        status: int = args.run(cloud, args)
        return status
    except errors.CloudError as exc:
        progress.complain(f'cloud: {exc}')
        return 2
    except KeyboardInterrupt:
        progress.complain('cloud: interrupted')
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='python3 -m tests.system.cloud',
        description='A complete OpenStack on one machine, with five '
        'simulated NUMA hosts and one real libvirt host. The environment '
        'variables HPCVIRT_CLOUD_* configure it; see '
        'tests/system/cloud/README.rst.')
    verbs = parser.add_subparsers(metavar='VERB', required=True)
    up = verbs.add_parser('up', help='bring the cloud up')
    up.add_argument('--keep', action='store_true',
                    help='keep what was started if something fails')
    up.set_defaults(run=_up)
    verbs.add_parser(
        'status', help='list the services and their memory').set_defaults(
            run=_status)
    down = verbs.add_parser('down', help='stop the cloud and clean up')
    down.add_argument('--purge', action='store_true',
                      help='delete the caches and logs as well')
    down.set_defaults(run=_down)
    verbs.add_parser(
        'env', help='print the credentials for a shell').set_defaults(
            run=_env)
    for verb, line in (('start', 'start one service'),
                       ('stop', 'stop one service'),
                       ('kill', 'kill one service'),
                       ('restart', 'stop and start one service')):
        parser_ = verbs.add_parser(verb, help=line)
        parser_.add_argument('service', metavar='SERVICE')
        parser_.set_defaults(run=_control, verb=verb)
    return parser


def _up(cloud: clouds.Cloud, args: argparse.Namespace) -> int:
    with cloud.locked():
        cloud.up(keep=args.keep)
    return 0


def _down(cloud: clouds.Cloud, args: argparse.Namespace) -> int:
    if os.geteuid() != 0:
        raise errors.CloudError('only root can stop the cloud')
    if not cloud.settings.state.exists():
        progress.say('the cloud is already down')
        return 0
    with cloud.locked():
        cloud.down()
        if args.purge:
            cloud.purge()
    return 0


def _status(cloud: clouds.Cloud, args: argparse.Namespace) -> int:
    del args
    total = 0
    for name in [*services.all_names(), services.SPARE]:
        pid = cloud.running.pid(name)
        if pid is None and name == services.SPARE:
            continue
        memory = cloud.running.resident_mib(name)
        total += memory
        state = f'up    pid {pid:<8d}' if pid else 'down  ' + ' ' * 12
        print(f'{name:16s} {state} {memory:5d} MiB  '
              f'{cloud.running.log_file(name)}')
    print(f'resident memory {total} MiB')
    return 1 if cloud.dead() else 0


def _env(cloud: clouds.Cloud, args: argparse.Namespace) -> int:
    del args
    if not cloud.settings.run.exists():
        raise errors.CloudError('the cloud is down')
    for name, value in cloud.settings.credentials().items():
        print(f'export {name}={shlex.quote(value)}')
    print(f'export PATH={shlex.quote(str(cloud.settings.venv / "bin"))}'
          ':"$PATH"')
    return 0


def _control(cloud: clouds.Cloud, args: argparse.Namespace) -> int:
    with cloud.locked():
        if args.verb == 'kill':
            cloud.stop(args.service, patience_s=0)
        elif args.verb == 'stop':
            cloud.stop(args.service)
        elif args.verb == 'start':
            cloud.start(args.service)
        else:
            cloud.restart(args.service)
    return 0


if __name__ == '__main__':
    sys.exit(main())
