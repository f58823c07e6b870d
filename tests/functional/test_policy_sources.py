# SPDX-License-Identifier: Apache-2.0

"""CPU policies that flavor and image set, alike or otherwise.

Nova makes the cells of the guest from both, and the claim sees the cells only.
"""

import collections
import dataclasses
import itertools

from nova import exception
from nova import objects
from nova.virt import hardware

from hpcvirt.nova import filters
from tests.builders import cases
from tests.functional import nova_objects
from tests.functional import soundness

CPU_POLICIES = (None, 'shared', 'dedicated', 'mixed')
THREAD_POLICIES = (None, 'prefer', 'require', 'isolate')
EMULATOR_POLICIES = (None, 'share', 'isolate')


def a_case(threads):
    """A host cell of 12 shared and 12 dedicated CPUs."""
    return soundness.as_installed(cases.Case(
        host=(cases.HostCell(
            id=0, socket=0, shared=frozenset(range(12)),
            dedicated=frozenset(range(12, 24)), pinned=frozenset(),
            siblings=tuple(frozenset(range(cpu, cpu + threads))
                           for cpu in range(0, 24, threads)),
            cpu_usage=0, memory_mib=8192, memory_used_mib=0,
            pages=(cases.Pages(2048, 4096),)),),
        guest=(), policy=None, page_kib=2048))


def requests(case):
    """Yield a guest as Nova makes it, for each combination it takes.

    :returns: the policies, the case with this guest, and the RequestSpec
    """
    for policies in itertools.product(
            CPU_POLICIES, CPU_POLICIES, THREAD_POLICIES, THREAD_POLICIES,
            EMULATOR_POLICIES):
        cpus, image_cpus, threads, image_threads, emulator = policies
        flavor = objects.Flavor(vcpus=4, memory_mb=1024, extra_specs={
            key: value for key, value in {
                'hw:cpu_policy': cpus, 'hw:cpu_thread_policy': threads,
                'hw:emulator_threads_policy': emulator,
                'hw:mem_page_size': '2048', 'hw:numa_nodes': '1',
                'hw:cpu_dedicated_mask':
                    '0-2' if 'mixed' in (cpus, image_cpus) else None,
            }.items() if value})
        image = objects.ImageMeta(properties=objects.ImageMetaProps(**{
            key: value for key, value in {
                'hw_cpu_policy': image_cpus,
                'hw_cpu_thread_policy': image_threads}.items() if value}))
        try:
            guest = hardware.numa_get_constraints(flavor, image)
        except (exception.NovaException, exception.Invalid):
            continue
        cell, = guest.cells
        asked = dataclasses.replace(
            case, policy=cell.cpu_policy, threads=cell.cpu_thread_policy,
            isolated_emulator=guest.emulator_threads_isolated,
            guest=(cases.GuestCell(len(cell.pcpuset), len(cell.cpuset),
                                   cell.memory),))
        spec = nova_objects.request_spec(asked)
        spec.flavor, spec.image, spec.numa_topology = flavor, image, guest
        yield policies, asked, spec


class PolicySourcesTest(soundness.ClaimingTestCase):
    def test_the_filter_decides_as_the_claim_with_every_pair(self):
        found = collections.Counter()
        for threads in (1, 2):
            # Every other one, with another one for the other host.
            for policies, case, spec in itertools.islice(
                    requests(a_case(threads)), threads - 1, None, 2):
                with self.subTest(policies, threads=threads):
                    claimed = soundness.Claims(case).claim(
                        {}, guest=spec.numa_topology.obj_clone())
                    fits = soundness.fault(case, claimed) is None
                    self.assertEqual(fits, filters.HPCTopologyFilter(
                        ).host_passes(nova_objects.host_state(case), spec))
                    found[threads, fits] += 1
        for outcome in itertools.product((1, 2), (True, False)):
            self.assertGreater(found[outcome], 10, found)

    def test_the_flavor_may_take_siblings_that_the_image_requires(self):
        """Nova's own filter refuses this host, its claim does not."""
        wanted = ('dedicated', None, 'prefer', 'require', None)
        (case, spec), = ((case, spec) for policies, case, spec
                         in requests(a_case(1)) if policies == wanted)
        self.assertEqual(
            'prefer', spec.numa_topology.cells[0].cpu_thread_policy)
        self.assertTrue(filters.HPCTopologyFilter().host_passes(
            nova_objects.host_state(case), spec))
