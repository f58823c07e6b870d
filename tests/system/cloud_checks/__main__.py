# SPDX-License-Identifier: Apache-2.0

"""Start the one-machine cloud, check hpcvirt in it, and stop the cloud.

Without arguments all checks run except the long ones (load, benchmarks, prove,
tune).
The cloud is stopped in any case, unless --keep is given or it was up before.
"""

import argparse
import signal
import sys
from collections.abc import Sequence

from tests.system.cloud import cloud as clouds
from tests.system.cloud import errors
from tests.system.cloud import progress
from tests.system.cloud import settings as cloud_settings
from tests.system.cloud_checks import accept
from tests.system.cloud_checks import benchmarks
from tests.system.cloud_checks import drain
from tests.system.cloud_checks import flavors
from tests.system.cloud_checks import fleet
from tests.system.cloud_checks import gate
from tests.system.cloud_checks import guide
from tests.system.cloud_checks import load
from tests.system.cloud_checks import prove
from tests.system.cloud_checks import quarantine
from tests.system.cloud_checks import schedulers
from tests.system.cloud_checks import store
from tests.system.cloud_checks import tempest_run
from tests.system.cloud_checks import tune

CHECKS = {
    # The pages assume a cloud without flavors, and remove their own.
    'guide': guide.check,
    'flavors': lambda cloud: flavors.check(cloud.settings),
    'tempest': lambda cloud: tempest_run.run(cloud.settings),
    'fleet': fleet.check,
    'drain': drain.check,
    'schedulers': schedulers.check,
    'load': load.check,
    'quarantine': quarantine.check,
    'gate': gate.check,
    'store': store.check,
    'benchmarks': benchmarks.check,
    'prove': prove.check,
    'accept': accept.check,
    'tune': tune.check,
}
#: Checks that run only if they are selected, because they take long and their
#: subject seldom changes.
SELECTED = frozenset({'load', 'benchmarks', 'prove', 'tune'})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: 0 if all checks pass, 1 if one fails
    """
    parser = argparse.ArgumentParser(
        prog='python3 -m tests.system.cloud_checks', description=__doc__)
    parser.add_argument('--keep', action='store_true',
                        help='keep the cloud running')
    parser.add_argument('check', nargs='*', metavar='CHECK',
                        help='one of ' + ', '.join(CHECKS))
    args = parser.parse_args(argv)
    for name in args.check:
        if name not in CHECKS:
            parser.error(f'no check {name!r}; there are {", ".join(CHECKS)}')
    # A CI job that is cancelled gets SIGTERM: clean up as for Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cloud = clouds.Cloud(cloud_settings.load())
        _run(cloud, args.check or [
            name for name in CHECKS if name not in SELECTED], keep=args.keep)
    except errors.CloudError as exc:
        progress.complain(f'cloud_checks: {exc}')
        return 1
    except KeyboardInterrupt:
        progress.complain('cloud_checks: interrupted')
        return 130
    return 0


def _run(cloud: clouds.Cloud, checks: list[str], keep: bool) -> None:
    with cloud.locked():
        was_up = not cloud.dead()
        cloud.up()
    try:
        for name in checks:
            with progress.step(f'check {name} passed'):
                CHECKS[name](cloud)
        with cloud.locked():
            dead = cloud.dead()
        if dead:
            raise errors.ServiceError(dead[0], 'ended during the checks',
                                      cloud.running.tail(dead[0]))
    finally:
        if not (keep or was_up):
            with cloud.locked():
                cloud.down()


if __name__ == '__main__':
    sys.exit(main())
