# SPDX-License-Identifier: Apache-2.0

"""Where benchmarks run: a guest, and the machine below it."""

from hpcvirt.bench.run import target
from tests.builders import places


def guest(name='vm', cpus=4, host_cpus=frozenset(range(4)), **known):
    """Make a guest; ``known`` is more of what is known of it."""
    return target.Target(places.Machine(name, cpus), name, f'{name}.net',
                         host_cpus=host_cpus, **known)


def native(name='host'):
    """Make a host of 64 CPUs."""
    return target.Target(places.Machine(name, 64), name, f'{name}.net')
