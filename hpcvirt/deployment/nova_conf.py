# SPDX-License-Identifier: Apache-2.0

"""Write the options of Nova that a host needs, and its traits.

nova-compute reads ``provider.yaml`` only when it starts, and leaves a trait in
Placement that was taken out of the file. What changes while a host runs (its
overhead, its quarantine) is therefore set through the Placement API, and not
here. The file has the traits that the planned flavors require.
"""

import json
from collections.abc import Mapping
from typing import Any

from hpcvirt import words
from hpcvirt.deployment import tree
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import plan_warnings
from hpcvirt.flavors import planned as plans
from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary


def compute(planned: plans.PlannedHost, plan: plans.Plan) -> list[str]:
    """Write the lines for nova-compute, with a comment on each option."""
    settings = planned.settings
    mdevs = settings.mdev_types if planned.offered else ()
    return _join({
        'DEFAULT': [
            *tree.explain(
                ['reserved_host_memory_mb = '
                 + str(settings.reserved_host_memory_mb)],
                'For the host, without the emulators of its guests: '
                f'{_format_kept(planned)}.'),
            *tree.explain(
                (f'reserved_huge_pages = node:{item.node},size:{item.size},'
                 f'count:{item.count}'
                 for item in settings.reserved_huge_pages),
                'Pages for programs of the host, which no guest gets.',
                'Nova-Hugepages')],
        'compute': [
            *tree.explain(
                [f'cpu_dedicated_set = {settings.cpu_dedicated_set}'],
                'One guest CPU on each; whole cores of every cell.',
                'Nova-Cpus'),
            *tree.explain(
                [f'cpu_shared_set = {settings.cpu_shared_set}']
                if settings.shared else (),
                'Emulator threads, and guests without dedicated CPUs.',
                'Nova-Cpus'),
            *_packing(plan)],
        'pci': [
            *tree.explain((f'device_spec = {json.dumps(spec)}'
                           for spec in settings.pci_device_spec),
                          'The devices that guests get.', 'Nova-Devices'),
            *tree.explain(
                ['report_in_placement = true'] if (
                    plan.has_sets and settings.pci_device_spec) else (),
                'nova-scheduler asks Placement for all PCI devices, because '
                'some hosts have sets of them. Nova does not let this be '
                'taken back.', 'Nova-Devices'),
            *_aliases(plan)],
        'devices': [f'enabled_mdev_types = {mdev.name}' for mdev in mdevs],
        **{f'mdev_{mdev.name}': [
            f'device_addresses = {",".join(mdev.device_addresses)}',
            f'mdev_class = {mdev.mdev_class}'] for mdev in mdevs}})


def controller(plan: plans.Plan) -> list[str]:
    """Write the options of nova-api, nova-scheduler and nova-conductor.

    Some must be those of the hosts; the others are for sets of devices.
    """
    results = plan_warnings.find_results(plan)
    return _join({
        'compute': _packing(plan),
        'pci': _aliases(plan),
        'filter_scheduler': tree.explain(
            () if results is None else ['pci_in_placement = true'],
            'For the whole cloud: first let all hosts with PCI devices report '
            'them (report_in_placement), then set this.'),
        'scheduler': [
            *tree.explain(
                () if results is None else [
                    f'max_placement_results = {results}'],
                'All candidates of a set of devices on '
                f'{words.count_noun(len(plan.hosts), "host")}; plan again '
                'when there are more.'),
            *tree.explain(
                ['enable_isolated_aggregate_filtering = true']
                if plan.isolated else (),
                'The aggregates of isolated classes keep all instances off '
                'that do not require their traits ("hpcvirt flavor apply '
                '--aggregates" creates them).', 'Nova-Isolation')],
        'workarounds': tree.explain(
            () if results is None else ['disable_fallback_pcpu_query = true'],
            'Otherwise Nova asks Placement once more, for VCPU.')})


def placement(plan: plans.Plan) -> list[str]:
    """Write the options of Placement, for sets of devices."""
    results = plan_warnings.find_results(plan)
    return [] if results is None else _join({'placement': tree.explain(
        [f'max_allocation_candidates = {results}',
         'allocation_candidates_generation_strategy = breadth-first'],
        'As max_placement_results of nova-scheduler.')})


def _join(sections: Mapping[str, list[str]]) -> list[str]:
    """Join the sections that have lines, with an empty line between them."""
    joined: list[str] = []
    for name, lines in sections.items():
        if lines:
            joined += ['', f'[{name}]', *lines]
    return joined[1:]


def _packing(plan: plans.Plan) -> list[str]:
    """Write in which order Nova fills cells."""
    return tree.explain(
        ['packing_host_numa_cells_allocation_strategy = true']
        if plan.packing else (),
        'Nova fills one cell before the next; the same on hosts and '
        'nova-scheduler.', 'Nova-Cpus')


def _aliases(plan: plans.Plan) -> list[str]:
    """Write the PCI aliases that the flavors of all classes name."""
    lines: dict[str, None] = {}
    for settings in plan.list_settings():
        lines.update(dict.fromkeys(
            f'alias = {json.dumps(item)}' for item in settings.pci_alias))
    return tree.explain(
        lines, 'The same on hosts, nova-api and nova-scheduler.',
        'Nova-Devices')


def _format_kept(planned: plans.PlannedHost) -> str:
    """Say how much memory of each cell the host keeps."""
    cells: dict[int, list[int]] = {}
    for cell, rest in planned.rest_mib.items():
        cells.setdefault(rest, []).append(cell)
    return '; '.join(f'{cpu_partition.format_cells(numbers)} {rest} MiB'
                     for rest, numbers in cells.items())


#: Traits that the acceptance of a host sets.
CHANGING = 'CUSTOM_HPCVIRT_'


def list_changing(plan: plans.Plan) -> list[str]:
    """List the traits that flavors require and no file gives to hosts."""
    found: set[str] = set()
    for row in plan.flavors:
        found.update(trait for trait in codec.read_traits(
            row.flavor.extra_specs, vocabulary.REQUIRED)
            if trait.startswith(CHANGING))
    return sorted(found)


def make_provider(planned: plans.PlannedHost,
                  plan: plans.Plan) -> dict[str, Any] | None:
    """Write the document; None for a host that needs no trait."""
    required: set[str] = set()
    for item in plan.flavors:
        if item.per_host.get(planned.name):
            required |= codec.read_traits(item.flavor.extra_specs,
                                          vocabulary.REQUIRED)
    traits = sorted(
        trait for trait in required
        if trait.startswith('CUSTOM_') and not trait.startswith(CHANGING))
    if not traits:
        return None
    return {
        'meta': {'schema_version': '1.0'},
        'providers': [{
            'identification': {'uuid': '$COMPUTE_NODE'},
            'traits': {'additional': traits}}],
    }
