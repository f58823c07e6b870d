# SPDX-License-Identifier: Apache-2.0

"""Check the configuration of hosts with the programs that read it.

``python -m tests.system.deployment``, as root on Debian, plans every shipped
machine with every shipped profile. The files of ``hpcvirt host config`` are
read by systemd, systemd-tmpfiles, sysctl, modprobe, udev, TuneD, the shell
that reads GRUB's files, Ansible, kolla-ansible, kolla-build, the templates of
kayobe and the tasks of edpm-ansible. Each must read the values of the plan,
and refuse a damaged file. hpcvirt must read small files with odd syntax like
these programs. The Ansible collection is built, judged, and run on six
stand-in hosts. The last line counts the checks.
"""

import dataclasses
import functools
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from collections.abc import Sequence
from concurrent import futures

from hpcvirt import exception
from hpcvirt.cmd import hosts
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from tests.system.deployment import fleet
from tests.system.deployment import orchestration
from tests.system.deployment import readers
from tests.system.deployment import syntax
from tests.system.deployment import system

ROOT = pathlib.Path(__file__).parents[3]
CHECKS = (*system.CHECKS, *syntax.CHECKS, *orchestration.CHECKS,
          *fleet.CHECKS)


def main() -> int:
    """Run the checks, and print the faults."""
    found = list(_plans())
    failed = 0
    # The checks mostly wait for other programs. The longest are the last.
    with futures.ThreadPoolExecutor(2) as pool:
        for ran, words in pool.map(functools.partial(_run, found),
                                   reversed(CHECKS)):
            print(words, flush=True)
            failed += not ran
    print(f'{len(CHECKS) - failed} passed, {failed} failed')
    return int(failed > 0)


def _run(found: Sequence[plans.Plan], check: system.Check) -> tuple[bool, str]:
    """Run a check; return whether it passed, and its message."""
    with tempfile.TemporaryDirectory(prefix='hpcvirt-') as folder:
        try:
            words = check(found, pathlib.Path(folder))
        except readers.Fault as exc:
            return False, f'{check.__name__}: FAILED: {exc}'
        return True, f'{check.__name__}: {words}'


def _plans() -> Iterator[plans.Plan]:
    """Plan each machine with each profile that suits it."""
    topologies = sorted((ROOT / 'etc/hpcvirt/topologies').glob('*.json'))
    profiles = [hosts.read_profile(str(path)) for path in sorted(
        (ROOT / 'etc/hpcvirt/profiles').glob('*.yaml'))]
    for host in hosts.read_hosts([str(path) for path in topologies]):
        for profile in profiles:
            try:
                yield planner.plan([host], dataclasses.replace(
                    profile, smallest_cores=None, extra_specs=(
                        ('trait:CUSTOM_HPC', 'required'),)))
            except exception.InvalidInput:
                # The machine lacks the devices of the profile.
                if not profile.devices:
                    raise


if __name__ == '__main__':
    sys.exit(main())
