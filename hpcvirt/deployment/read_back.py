# SPDX-License-Identifier: Apache-2.0

"""Read the written files back as Nova would, and count the flavors on them.

The files of a deployment are parsed by oslo.config with the types of Nova's
options: those of nova-compute on each host, of nova-api, which makes requests
for the devices of PCI aliases, and of nova-scheduler, which asks Placement.
The settings that come out make the empty hosts anew. On these, each planned
flavor must fit as often as the plan says; a difference is an error of the
files, of the plan, or of two classes that contradict each other.

For example, nova-scheduler with ``pci_in_placement`` asks Placement for the
devices of all flavors. A host without ``report_in_placement`` has none there,
so that its flavors with virtual functions fit nowhere.
"""

import dataclasses
import json
import os
import tempfile
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import yaml
from oslo_config import cfg
from oslo_config import types

from hpcvirt import exception
from hpcvirt.deployment import ansible
from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.fit import capacity
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset
from hpcvirt.specs import vocabulary

API, SCHEDULER, CONDUCTOR = 'nova-api', 'nova-scheduler', 'nova-conductor'
_SERVICES = (API, SCHEDULER, CONDUCTOR)

#: The options of Nova that the files may set, with its types and defaults.
OPTIONS: Mapping[str, Sequence[cfg.Opt]] = {
    'DEFAULT': (
        cfg.IntOpt('reserved_host_memory_mb', default=512),
        cfg.IntOpt('reserved_host_cpus', default=0),
        cfg.MultiOpt('reserved_huge_pages', item_type=types.Dict()),
        cfg.FloatOpt('cpu_allocation_ratio'),
        cfg.FloatOpt('ram_allocation_ratio'),
        cfg.FloatOpt('initial_cpu_allocation_ratio', default=4.0),
        cfg.FloatOpt('initial_ram_allocation_ratio', default=1.0)),
    'compute': (
        cfg.StrOpt('cpu_dedicated_set'),
        cfg.StrOpt('cpu_shared_set'),
        cfg.BoolOpt('packing_host_numa_cells_allocation_strategy',
                    default=False)),
    'devices': (cfg.ListOpt('enabled_mdev_types', default=[]),),
    'filter_scheduler': (cfg.BoolOpt('pci_in_placement', default=False),),
    'pci': (
        cfg.MultiStrOpt('alias', default=[]),
        cfg.MultiStrOpt('device_spec', default=[]),
        cfg.BoolOpt('report_in_placement', default=False)),
    'scheduler': (
        cfg.IntOpt('max_placement_results', default=1000),
        cfg.BoolOpt('enable_isolated_aggregate_filtering', default=False)),
    'workarounds': (cfg.BoolOpt('disable_fallback_pcpu_query',
                                default=False),),
}
#: The options of each type of mediated devices.
MDEV_OPTIONS = (cfg.ListOpt('device_addresses', default=[]),
                cfg.StrOpt('mdev_class', default='VGPU'))


@dataclasses.dataclass(frozen=True)
class WrittenFiles:
    """The files of a deployment, sorted by who reads them.

    :ivar compute: host -> the options of its nova-compute
    :ivar providers: host -> its document of provider.yaml, parsed
    :ivar services: service of the controllers -> its options
    """

    compute: Mapping[str, str]
    providers: Mapping[str, Any]
    services: Mapping[str, str]


def sort_files(deployer: str, files: Iterable[tree.File],
               plan: plans.Plan) -> WrittenFiles:
    """Find who reads which file of a deployment.

    :param deployer: a key of :data:`hpcvirt.deployment.formats.FORMATS`
    """
    texts = {file.path: file.text for file in files}
    compute: dict[str, str] = {}
    providers: dict[str, Any] = {}
    if deployer in ('kolla', 'kayobe'):
        root = 'kolla/' if deployer == 'kayobe' else ''
        folder = f'{root}config/nova'
        ending = '/hpcvirt.yml' if deployer == 'kayobe' else '.yml'
        for group, hosts in _read_inventory(texts, root).items():
            variables = yaml.safe_load(
                texts[f'{root}inventory/group_vars/{group}{ending}'])
            for host in hosts:
                compute[host] = texts[f'{folder}/{host}/nova.conf']
                providers[host] = variables[
                    'nova_cell_compute_provider_config']
        services = {name: texts.get(f'{folder}/{name}.conf', '')
                    for name in _SERVICES}
        return WrittenFiles(compute, providers, services)
    if deployer == 'ansible':
        for group, hosts in _read_inventory(texts, '').items():
            variables = yaml.safe_load(
                texts[f'inventory/group_vars/{group}.yml'])
            own = {item['path'].removeprefix('/'): item['content']
                   for item in variables['hpcvirt_host_files']}
            for host in hosts:
                compute[host] = own[host_files.NOVA_CONF]
                providers[host] = yaml.safe_load(
                    own.get(host_files.PROVIDER, ''))
    elif deployer == 'edpm':
        for alike in ansible.group_hosts(plan, host_files.files):
            _, config = yaml.safe_load_all(texts[f'{alike.name}.yaml'])
            data = config['data']
            for planned in alike.hosts:
                compute[planned.name] = data['90-nova-hpcvirt.conf']
                providers[planned.name] = yaml.safe_load(
                    data.get('provider-hpcvirt.yaml', ''))
    else:
        for planned in plan.hosts:
            folder = f'{planned.name}/'
            if folder + host_files.NOVA_CONF not in texts:
                # The files of the host itself.
                folder = ''
            compute[planned.name] = texts[folder + host_files.NOVA_CONF]
            providers[planned.name] = yaml.safe_load(
                texts.get(folder + host_files.PROVIDER, ''))
    common = texts.get(formats.CONTROLLER)
    if common is None:
        # The files of one host have none for the controllers.
        common = '\n'.join(nova_conf.controller(plan))
    return WrittenFiles(compute, providers, dict.fromkeys(_SERVICES, common))


def _read_inventory(texts: Mapping[str, str],
                    root: str) -> dict[str, list[str]]:
    """Return the hosts of each group of an inventory."""
    inventory = yaml.safe_load(texts[f'{root}inventory/hpcvirt.yml'])
    return {group: list(own['hosts']) for group, own
            in inventory[ansible.GROUP]['children'].items()}


def check(deployer: str, files: Iterable[tree.File],
          plan: plans.Plan) -> None:
    """Check that Nova takes as many instances with the files as planned.

    :param deployer: a key of :data:`hpcvirt.deployment.formats.FORMATS`
    :raises InvalidInput: naming the first host and flavor that differ, or an
        option that Nova refuses
    """
    written = sort_files(deployer, files, plan)
    with tempfile.TemporaryDirectory() as folder:
        reader = _Reader(folder)
        services = {name: reader.parse(name, text)
                    for name, text in written.services.items()}
        api, scheduler = services[API], services[SCHEDULER]
        _check_same(services)
        # Hosts of one kind share their state and their files.
        checked: set[object] = set()
        for planned in plan.hosts:
            text = written.compute[planned.name]
            document = written.providers[planned.name]
            conf = reader.parse(planned.name, text)
            key = id(planned.state), text, str(document)
            if key in checked:
                continue
            checked.add(key)
            state = _make_state(planned, conf, api, scheduler, document)
            for row in plan.flavors:
                _compare(row, planned, state, conf, services)


def _check_same(services: Mapping[str, cfg.ConfigOpts]) -> None:
    """Check that the services agree on whether to ask Placement."""
    asking = [name for name in _SERVICES
              if services[name].filter_scheduler.pci_in_placement]
    if asking and len(asking) < len(_SERVICES):
        others = [name for name in _SERVICES if name not in asking]
        raise exception.InvalidInput(
            ', '.join(asking), 'would ask Placement for PCI devices, and '
            f'{", ".join(others)} would not')


class _Reader:
    """Parses the options of services with oslo.config.

    :ivar folder: a folder for its files
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._known: dict[str, cfg.ConfigOpts] = {}

    def parse(self, where: str, text: str) -> cfg.ConfigOpts:
        """Parse the options of a service.

        :param where: the host or the service, for errors
        :raises InvalidInput: if oslo.config refuses them
        """
        if text in self._known:
            return self._known[text]
        path = os.path.join(self.folder, f'{len(self._known)}.conf')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        conf = cfg.ConfigOpts()
        for group, options in OPTIONS.items():
            conf.register_opts(options,
                               None if group == 'DEFAULT' else group)
        try:
            conf([], project='nova', default_config_files=[path],
                 default_config_dirs=[])
            for name in conf.devices.enabled_mdev_types:
                conf.register_opts(MDEV_OPTIONS, f'mdev_{name}')
            # A value is parsed when it is read.
            for group, options in OPTIONS.items():
                owner = conf if group == 'DEFAULT' else conf[group]
                for option in options:
                    getattr(owner, option.dest)
        except cfg.Error as exc:
            raise exception.InvalidInput(
                where, f'would get options that Nova refuses: {exc}') from exc
        self._known[text] = conf
        return conf


def _make_state(planned: plans.PlannedHost, conf: cfg.ConfigOpts,
                api: cfg.ConfigOpts, scheduler: cfg.ConfigOpts,
                document: Any) -> placement.HostState:
    """Make the empty host that Nova sees with the options."""
    settings = host_settings.HostSettings(
        cpu_dedicated_set=_read_cpus(conf.compute.cpu_dedicated_set),
        cpu_shared_set=_read_cpus(conf.compute.cpu_shared_set),
        reserved_host_memory_mb=conf.reserved_host_memory_mb,
        reserved_host_cpus=conf.reserved_host_cpus,
        cpu_allocation_ratio=(conf.cpu_allocation_ratio
                              or conf.initial_cpu_allocation_ratio),
        ram_allocation_ratio=(conf.ram_allocation_ratio
                              or conf.initial_ram_allocation_ratio),
        reserved_huge_pages=tuple(
            host_settings.ReservedPages(int(item['node']), int(item['size']),
                                        int(item['count']))
            for item in conf.reserved_huge_pages or ()),
        # The claim on the host and the scheduler use their own.
        packing_host_numa_cells_allocation_strategy=(
            conf.compute.packing_host_numa_cells_allocation_strategy),
        # The kernel has the pages, and udev creates the virtual functions.
        pages=planned.settings.pages,
        device_counts=planned.settings.device_counts,
        pci_device_spec=tuple(map(json.loads, conf.pci.device_spec)),
        pci_alias=_read_aliases(api),
        mdev_types=tuple(
            host_settings.MdevType(
                name, tuple(conf[f'mdev_{name}'].device_addresses),
                conf[f'mdev_{name}'].mdev_class)
            for name in conf.devices.enabled_mdev_types))
    state = host_settings.make_empty_host(planned.host, settings)
    kept_for = planned.state.kept_for
    if not scheduler.scheduler.enable_isolated_aggregate_filtering:
        kept_for = frozenset()
    return dataclasses.replace(
        state, kept_for=kept_for,
        traits=_read_traits(planned.state.traits, document))


def _read_cpus(text: str | None) -> str:
    return cpuset.render(cpuset.parse(text)) if text else ''


def _read_aliases(conf: cfg.ConfigOpts) -> tuple[Mapping[str, str], ...]:
    return tuple(map(json.loads, conf.pci.alias))


def _read_traits(planned: frozenset[str] | None,
                 document: Any) -> frozenset[str] | None:
    """Return the traits of a host: those of provider.yaml, and those of Nova.

    ``hpcvirt host accept`` gives a host the traits with its own prefix.
    """
    if planned is None:
        return None
    written: set[str] = set()
    for provider in (document or {}).get('providers', ()):
        written.update(provider.get('traits', {}).get('additional', ()))
    others = {trait for trait in planned
              if not trait.startswith('CUSTOM_')
              or trait.startswith(nova_conf.CHANGING)}
    return frozenset(written | others)


def _compare(row: plans.PlannedFlavor, planned: plans.PlannedHost,
             state: placement.HostState, conf: cfg.ConfigOpts,
             services: Mapping[str, cfg.ConfigOpts]) -> None:
    """Compare how many instances of a flavor Nova takes with the plan."""
    wanted = row.per_host.get(planned.name, 0)
    why = _find_refusal(row, conf, services)
    if why:
        count = 0
    elif placement.describe(state) == placement.describe(planned.state):
        # The same host takes the same number.
        count = wanted
    else:
        guest = compiled_flavor.make(row.flavor)
        limit = None if guest.demand.cells else wanted + 1
        filling = capacity.fill(guest, state, limit)
        count = filling.count
        if filling.misfit is not None:
            why = filling.misfit.message
    if count != wanted:
        raise exception.InvalidInput(
            planned.name, f'would take {count} instances of '
            f'{row.flavor.name} with these files, and the plan says {wanted}'
            + (f': {why}' if why else '') + '; nothing is written')


def _find_refusal(row: plans.PlannedFlavor, conf: cfg.ConfigOpts,
                  services: Mapping[str, cfg.ConfigOpts]) -> str:
    """Say why Nova finds no device for a flavor, whatever the host has."""
    text = row.flavor.extra_specs.get(vocabulary.PCI_ALIAS.name, '')
    names = [term.partition(':')[0].strip() for term in text.split(',')
             if term]
    known = {alias['name'] for alias in _read_aliases(services[API])}
    for name in names:
        if name not in known:
            return f'nova-api does not know the PCI alias {name}'
    asks = services[SCHEDULER].filter_scheduler.pci_in_placement
    if names and asks and not conf.pci.report_in_placement:
        return ('nova-scheduler asks Placement for its devices, and the host '
                'does not report them')
    if row.guest.device_set is not None and not asks:
        return 'nova-scheduler does not ask Placement for sets of devices'
    return ''
