# SPDX-License-Identifier: Apache-2.0

"""Several guests of one request: scheduled at once, claimed one by one."""

import dataclasses
import operator

from nova import exception
from nova import objects
from nova.scheduler import manager
from nova.virt import hardware

from tests.builders import cases
from tests.functional import nova_objects
from tests.functional import soundness

_CLASSES = {-1: 'small', -2: 'large', -3: 'any'}


@dataclasses.dataclass(frozen=True)
class Pick:
    """What the filter says of one candidate, and what its claim comes to.

    :ivar number: 0 for the first guest of the request
    :ivar passed: the filter has let the candidate pass
    :ivar fault: what is wrong with the claim; None if it can stand
    """

    number: int
    passed: bool
    fault: str | None
    case: cases.Case
    mapping: dict

    @property
    def wrong(self):
        """The filter is laxer or stricter than the claim."""
        return self.passed != (self.fault is None)


def a_fleet(dice):
    """Create a random guest that a flavor can name, and one or two hosts."""
    while True:
        first = cases.a_case(dice)
        if dice.random() < 0.1:
            first = cases.without_numa(first)
        if dice.random() < 0.8:
            # Small enough for a host to take several.
            first = dataclasses.replace(first, guest=tuple(
                cases.GuestCell(min(cell.pcpus, 2), min(cell.vcpus, 1),
                                min(cell.memory_mib, 512))
                for cell in first.guest))
        fleet = [first]
        if dice.random() < 0.3:
            fleet.append(cases.on_another_host(dice, first))
        # On a host that reports no pages, Nova fails to account for a guest.
        if all(cell.pages for case in fleet for cell in case.host) and (
                request_spec(first, 2) is not None):
            return [soundness.as_installed(case) for case in fleet]


def a_fleet_with_devices(dice):
    """Create a random guest with several devices, and a host."""
    while True:
        case = cases.a_case_with_devices(dice)
        # Nova creates one instance only with ports that exist.
        ports = {request.id for request in case.requests}
        case = dataclasses.replace(case, mappings=tuple(
            {group: uuids for group, uuids in mapping.items()
             if group not in ports} for mapping in case.mappings))
        if all(cell.pages for cell in case.host) and (
                request_spec(case, 2) is not None):
            return [soundness.as_installed(case)]


def extra_specs(case):
    """The extra specs of a flavor for the guest."""
    if not case.guest:
        return {}
    specs = {'hw:numa_nodes': str(len(case.guest))}
    start = 0
    dedicated = []
    for number, cell in enumerate(case.guest):
        cpus = range(start, start + cell.pcpus + cell.vcpus)
        specs[f'hw:numa_cpus.{number}'] = ','.join(map(str, cpus))
        specs[f'hw:numa_mem.{number}'] = str(cell.memory_mib)
        dedicated.extend(cpus[:cell.pcpus])
        start = cpus.stop
    specs.update({key: value for key, value in {
        'hw:cpu_policy': case.policy,
        'hw:cpu_thread_policy': case.threads,
        'hw:cpu_dedicated_mask': ','.join(map(str, dedicated))
        if case.policy == 'mixed' else None,
        'hw:emulator_threads_policy': 'isolate'
        if case.isolated_emulator else None,
        'hw:mem_page_size': _CLASSES.get(case.page_kib, case.page_kib and
                                         str(case.page_kib)),
    }.items() if value})
    return specs


def request_spec(case, count):
    """The request of several guests; None if no flavor makes this guest."""
    spec = nova_objects.request_spec(case, extra_specs(case))
    try:
        spec.numa_topology = hardware.numa_get_constraints(
            spec.flavor, spec.image)
    except exception.NovaException:
        return None
    if case.guest and not _is_same(spec.numa_topology,
                                   nova_objects.guest_topology(case)):
        return None
    spec.num_instances = count
    spec.instance_group = None
    spec.flavor.root_gb = spec.flavor.ephemeral_gb = 0
    spec.requested_resources = [
        objects.RequestGroup(requester_id=group)
        for group in case.mappings[0] if group]
    return spec


def _is_same(topology, wanted):
    fields = operator.attrgetter('id', 'pcpuset', 'cpuset', 'memory',
                                 'pagesize', 'cpu_policy', 'cpu_thread_policy')
    return topology is not None and (
        topology.emulator_threads_isolated ==
        wanted.emulator_threads_isolated and
        [fields(cell) for cell in topology.cells] ==
        [fields(cell) for cell in wanted.cells])


class Scheduler:
    """nova-scheduler with one filter, and the compute hosts that it sees."""

    def __init__(self, scheduler_filter):
        self._filter = scheduler_filter

    def create(self, dice, fleet, count):
        """Schedule guests on hosts, and let each claim its place.

        :param dice: chooses among the hosts that pass
        :returns: a Pick for each guest, host and candidate that was left
        """
        soundness.CONF.set_override(
            'packing_host_numa_cells_allocation_strategy', fleet[0].packing,
            'compute')
        spec = request_spec(fleet[0], count)
        hosts = {f'host{number}': case for number, case in enumerate(fleet)}
        states = [nova_objects.host_state(case, name)
                  for name, case in hosts.items()]
        picks = []
        for number in range(count):
            claims = {state.host: soundness.Claims(hosts[state.host])
                      for state in states}
            before = {state.host: list(state.allocation_candidates)
                      for state in states}
            passed = list(self._filter.filter_all(list(states), spec))
            for state in states:
                for candidate in before[state.host]:
                    mapping = candidate['mappings']
                    claimed = claims[state.host].claim(mapping)
                    picks.append(Pick(
                        number, state in passed and
                        candidate in state.allocation_candidates,
                        soundness.fault(hosts[state.host], claimed),
                        hosts[state.host], mapping))
            if not passed:
                break
            states = passed
            state = dice.choice(states)
            mapping = state.allocation_candidates[0]['mappings']
            hosts[state.host] = claims[state.host].settle(mapping)
            if hosts[state.host] is None:
                break
            for group in spec.requested_resources:
                group.provider_uuids = mapping.get(group.requester_id, [])
            manager.SchedulerManager._consume_selected_host(state, spec)
        return picks
