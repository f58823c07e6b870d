# SPDX-License-Identifier: Apache-2.0

"""Read the written files back as their consumers would, and compare.

The files of a deployment are parsed by oslo.config with the types of Nova's
options: those of nova-compute on each host, of nova-api, which makes requests
for the devices of PCI aliases, of nova-scheduler, which asks Placement, and of
Placement. :mod:`hpcvirt.deployment.after_reboot` reads what the operating
system gets: huge pages, lists of CPUs, virtual functions.

All of it must be what the plan says, and lists of CPUs must agree with Nova's.
Then each planned flavor must fit as often as planned on the empty hosts that
come out. A difference is an error of the files, of the plan, or of two classes
that contradict each other; it is found before any file is replaced.

For example, nova-scheduler with ``pci_in_placement`` asks Placement for the
devices of all flavors. A host without ``report_in_placement`` would have none
there, so that its flavors with virtual functions would fit nowhere.
"""

import dataclasses
import json
import os
import re
import tempfile
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_config import types

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.deployment import after_reboot
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.deployment import written_files
from hpcvirt.fit import capacity
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import memory
from hpcvirt.flavors import plan_warnings
from hpcvirt.flavors import planned as plans
from hpcvirt.model import cpuset
from hpcvirt.specs import vocabulary

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
#: Those of Placement.
PLACEMENT_OPTIONS = (
    cfg.IntOpt('max_allocation_candidates', default=-1),
    cfg.StrOpt('allocation_candidates_generation_strategy',
               default='depth-first'))
#: The options of each type of mediated devices.
MDEV_OPTIONS = (cfg.ListOpt('device_addresses', default=[]),
                cfg.StrOpt('mdev_class', default='VGPU'))

#: The settings of a host that its nova.conf must have as planned.
_COMPARED = (
    'cpu_dedicated_set', 'cpu_shared_set', 'reserved_host_memory_mb',
    'reserved_host_cpus', 'cpu_allocation_ratio', 'ram_allocation_ratio',
    'reserved_huge_pages', 'packing_host_numa_cells_allocation_strategy',
    'pci_device_spec', 'mdev_types')
_NOVAS_NAMES = {'pci_device_spec': 'device_spec',
                'mdev_types': 'enabled_mdev_types'}
#: The profile of TuneD that hpcvirt's own extends.
_TUNED = 'virtual-host'
#: How Placement must generate candidates, and the schema of provider.yaml.
_STRATEGY = 'breadth-first'
_SCHEMA = '1.0'
#: What oslo.config says of the file that it reads, which is not that of users.
_LOCATION = re.compile(r" from LocationInfo[(].*detail='[^']*'[)]")
#: The vendor of cards that can be InfiniBand.
_INFINIBAND = '15b3'


def check(deployer: str, files: Iterable[tree.File],
          plan: plans.Plan) -> None:
    """Check that hosts and Nova have with the files what the plan says.

    :param deployer: a key of :data:`hpcvirt.deployment.formats.FORMATS`
    :raises InvalidInput: naming the first file or host that differs, or an
        option that Nova refuses
    """
    written = written_files.sort_files(deployer, files, plan)
    with tempfile.TemporaryDirectory() as folder:
        reader = _Reader(folder)
        services = {name: reader.parse(own.path, own.text)
                    for name, own in written.services.items()}
        _check_same(services)
        _check_services(written, services, plan)
        api = services[written_files.API]
        # Hosts of one kind share their state and their files.
        checked: set[object] = set()
        for planned in plan.hosts:
            own = written.hosts[planned.name]
            key = id(planned.state), own.key()
            if key in checked:
                continue
            checked.add(key)
            conf = reader.parse(own.conf.path, own.conf.text)
            booted = after_reboot.read(planned.host, own)
            traits = _read_traits(own.provider)
            _check_traits(planned, plan, own.provider.path, traits)
            _check_aliases(own.conf.path, conf, plan)
            state = _make_state(planned, plan, own.conf.path, conf, booted,
                                traits, api)
            _check_booted(planned, conf, booted)
            for row in plan.flavors:
                _compare(row, planned, state, api)


def _refuse(where: str, found: str, wanted: str) -> exception.InvalidInput:
    """Word a difference from the plan."""
    return exception.InvalidInput(
        where, f'{found}, and the plan says {wanted}; nothing is written')


def _check_same(services: Mapping[str, cfg.ConfigOpts]) -> None:
    """Check that the services agree on whether to ask Placement."""
    asking = [name for name in written_files.SERVICES
              if services[name].filter_scheduler.pci_in_placement]
    if asking and len(asking) < len(written_files.SERVICES):
        others = [name for name in written_files.SERVICES
                  if name not in asking]
        raise exception.InvalidInput(
            ', '.join(asking), 'would ask Placement for PCI devices, and '
            f'{", ".join(others)} would not')


def _check_services(written: written_files.WrittenFiles,
                    services: Mapping[str, cfg.ConfigOpts],
                    plan: plans.Plan) -> None:
    """Check what controllers and Placement get for sets of devices."""
    scheduler = services[written_files.SCHEDULER]
    where = written.services[written_files.SCHEDULER].path
    packing = scheduler.compute.packing_host_numa_cells_allocation_strategy
    if packing != plan.packing:
        raise _refuse(
            where, 'gives nova-scheduler '
            f'packing_host_numa_cells_allocation_strategy = {packing}',
            str(plan.packing))
    isolates = scheduler.scheduler.enable_isolated_aggregate_filtering
    if isolates != bool(plan.isolated):
        raise _refuse(where, 'gives enable_isolated_aggregate_filtering = '
                      f'{isolates}', str(bool(plan.isolated)))
    for name in (written_files.API, written_files.SCHEDULER):
        _check_aliases(written.services[name].path, services[name], plan)
    results = plan_warnings.find_results(plan)
    asks = scheduler.filter_scheduler.pci_in_placement
    if asks != (results is not None):
        raise _refuse(where, f'gives pci_in_placement = {asks}',
                      str(not asks))
    if results is None:
        return
    if not scheduler.workarounds.disable_fallback_pcpu_query:
        raise _refuse(where, 'gives disable_fallback_pcpu_query = False',
                      'True')
    found = scheduler.scheduler.max_placement_results
    if found != results:
        raise _refuse(where, f'gives max_placement_results = {found}',
                      str(results))
    placement_conf = services.get(written_files.PLACEMENT)
    if placement_conf is None:
        # The files of one host have none for Placement.
        return
    own = placement_conf.placement
    where = written.services[written_files.PLACEMENT].path
    if own.max_allocation_candidates != results:
        raise _refuse(where, 'gives max_allocation_candidates = '
                      f'{own.max_allocation_candidates}', str(results))
    strategy = own.allocation_candidates_generation_strategy
    if strategy != _STRATEGY:
        raise _refuse(
            where, 'gives allocation_candidates_generation_strategy = '
            f'{strategy}', _STRATEGY)


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
        conf.register_opts(PLACEMENT_OPTIONS, 'placement')
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
                where, 'would get options that Nova refuses: '
                + _LOCATION.sub('', str(exc)).replace(path, where)) from exc
        self._known[text] = conf
        return conf


def _check_aliases(where: str, conf: cfg.ConfigOpts,
                   plan: plans.Plan) -> None:
    """Check that a service has the PCI aliases of all classes."""
    wanted: list[Mapping[str, str]] = []
    for settings in plan.list_settings():
        wanted += settings.pci_alias
    found = _read_objects(conf.pci.alias, where)
    for alias in wanted:
        if alias not in found:
            raise exception.InvalidInput(
                where, f'does not give alias = {json.dumps(alias)}, which '
                'flavors of the plan name; nothing is written')
    for alias in found:
        if alias not in wanted:
            raise _refuse(where, f'gives alias = {json.dumps(alias)}',
                          'no such alias')


def _make_state(planned: plans.PlannedHost, plan: plans.Plan, where: str,
                conf: cfg.ConfigOpts, booted: after_reboot.Booted,
                traits: set[str], api: cfg.ConfigOpts) -> placement.HostState:
    """Make the empty host that Nova sees with the files.

    :raises InvalidInput: if its options are not those of the plan
    """
    settings = _read_settings(planned, plan, where, conf, booted, api)
    _check_options(planned, where, settings)
    reports = bool(plan.has_sets and planned.settings.pci_device_spec)
    if conf.pci.report_in_placement != reports:
        raise _refuse(where, 'gives report_in_placement = '
                      f'{conf.pci.report_in_placement}', str(reports))
    state = host_settings.make_empty_host(planned.host, settings)
    return dataclasses.replace(
        state, kept_for=planned.state.kept_for,
        traits=_add_traits(planned.state.traits, traits))


def _read_settings(planned: plans.PlannedHost, plan: plans.Plan, where: str,
                   conf: cfg.ConfigOpts, booted: after_reboot.Booted,
                   api: cfg.ConfigOpts) -> host_settings.HostSettings:
    """Read the settings of a host from its files."""
    small = memory.small_page_kib(planned.host)
    booted_pages = booted.pages[0].pages if booted.pages else {}
    pages = {}
    for cell, found in planned.settings.pages.items():
        # The rest of the memory is in normal pages; no file says it.
        own = {small: found[small]} if small in found else {}
        for size in found.keys() - {small}:
            own[size] = booted_pages.get(cell, {}).get(size, 0)
        pages[cell] = dict(sorted(own.items()))
    return host_settings.HostSettings(
        cpu_dedicated_set=_read_cpus(conf.compute.cpu_dedicated_set),
        cpu_shared_set=_read_cpus(conf.compute.cpu_shared_set),
        reserved_host_memory_mb=conf.reserved_host_memory_mb,
        reserved_host_cpus=_find_option(
            conf, ('reserved_host_cpus',),
            planned.settings.reserved_host_cpus),
        cpu_allocation_ratio=_find_option(
            conf, ('cpu_allocation_ratio', 'initial_cpu_allocation_ratio'),
            planned.settings.cpu_allocation_ratio),
        ram_allocation_ratio=_find_option(
            conf, ('ram_allocation_ratio', 'initial_ram_allocation_ratio'),
            planned.settings.ram_allocation_ratio),
        reserved_huge_pages=tuple(
            _read_reserved(item, where)
            for item in conf.reserved_huge_pages or ()),
        # The claim on the host and the scheduler use their own.
        packing_host_numa_cells_allocation_strategy=(
            conf.compute.packing_host_numa_cells_allocation_strategy
            or _keeps_packing(planned, plan)),
        pages=pages,
        device_counts={**planned.settings.device_counts,
                       **booted.functions.counts},
        pci_device_spec=_read_objects(conf.pci.device_spec, where),
        pci_alias=_read_objects(api.pci.alias, written_files.API),
        mdev_types=tuple(
            host_settings.MdevType(
                name, tuple(conf[f'mdev_{name}'].device_addresses),
                conf[f'mdev_{name}'].mdev_class)
            for name in conf.devices.enabled_mdev_types))


def _keeps_packing(planned: plans.PlannedHost, plan: plans.Plan) -> bool:
    """Whether the host fills cells one after the other by its own file."""
    own = planned.settings.packing_host_numa_cells_allocation_strategy
    return own and not plan.packing


def _find_option(conf: cfg.ConfigOpts, names: Sequence[str],
                 kept: float) -> Any:
    """Return the value of an option that the files set.

    :param kept: what the host has otherwise; a plan for present settings has
        read it from the nova.conf of the host
    """
    for name in names:
        location = conf.get_location(name)
        if location is not None and location.location.is_user_controlled:
            return conf[name]
    return kept


def _read_reserved(item: Mapping[str, str],
                   where: str) -> host_settings.ReservedPages:
    text = ','.join(f'{key}:{value}' for key, value in item.items())
    found = host_settings.read_reserved_pages(text)
    if found is None:
        raise exception.InvalidInput(
            where, f'gives reserved_huge_pages = {text}, which Nova refuses')
    return found


def _read_objects(texts: Iterable[str],
                  where: str) -> tuple[Mapping[str, str], ...]:
    """Read the JSON of an option."""
    found = []
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise exception.InvalidInput(
                where, f'would get {text[:64]!r}, which is no JSON object')
        found.append(value)
    return tuple(found)


def _check_options(planned: plans.PlannedHost, where: str,
                   found: host_settings.HostSettings) -> None:
    """Compare the options of nova-compute with the plan."""
    wanted = planned.settings
    for field in _COMPARED:
        own, other = getattr(found, field), getattr(wanted, field)
        if field == 'mdev_types' and not planned.offered:
            other = ()
        if own == other:
            continue
        name = _NOVAS_NAMES.get(field, field)
        if not isinstance(own, tuple):
            raise _refuse(where, f'gives {name} = {own}', str(other))
        # One item says more than all.
        lost = [item for item in other if item not in own]
        more = [item for item in own if item not in other]
        if more:
            raise _refuse(where, f'gives {name} = {more[0]}',
                          str(lost[0]) if lost else 'nothing about it')
        raise _refuse(where, f'does not give {name} as planned',
                      str(lost[0]) if lost else 'another order')


def _read_cpus(text: str | None) -> str:
    return cpuset.render(cpuset.parse(text)) if text else ''


def _read_traits(provider: written_files.WrittenVariables) -> set[str]:
    """Read the traits that provider.yaml gives to the host itself.

    :raises InvalidInput: if Nova does not take the document
    """
    found: set[str] = set()
    if not provider.values:
        return found
    try:
        version = provider.values['meta']['schema_version']
        for item in provider.values.get('providers', ()):
            if item['identification'] == {'uuid': '$COMPUTE_NODE'}:
                found.update(item['traits']['additional'])
    except (AttributeError, KeyError, TypeError):
        raise exception.InvalidInput(
            provider.path, 'has no traits of a provider that Nova understands'
            ) from None
    if version != _SCHEMA:
        raise _refuse(provider.path, f'has the schema_version {version}',
                      _SCHEMA)
    return found


def _add_traits(planned: frozenset[str] | None,
                written: set[str]) -> frozenset[str] | None:
    """Return the traits of a host: those written, and those of Nova.

    An acceptance gives a host the traits with its own prefix.
    """
    if planned is None:
        return None
    others = {trait for trait in planned
              if not trait.startswith('CUSTOM_')
              or trait.startswith(nova_conf.CHANGING)}
    return frozenset(written | others)


def _check_traits(planned: plans.PlannedHost, plan: plans.Plan, where: str,
                  found: set[str]) -> None:
    """Check that a host gets the traits that its flavors require, only."""
    wanted: set[str] = set()
    for row in plan.flavors:
        if row.per_host.get(planned.name):
            wanted.update(
                trait for trait in compiled_flavor.make(row.flavor).required
                if trait.startswith('CUSTOM_')
                and not trait.startswith(nova_conf.CHANGING))
    for trait in sorted(wanted - found):
        raise exception.InvalidInput(
            where, f'does not give {planned.name} the trait {trait}, which '
            'its flavors require; nothing is written')
    for trait in sorted(found - wanted):
        raise exception.InvalidInput(
            where, f'gives {planned.name} the trait {trait}, which none of '
            'its flavors requires; nothing is written')


def _check_booted(planned: plans.PlannedHost, conf: cfg.ConfigOpts,
                  booted: after_reboot.Booted) -> None:
    """Compare what a host has after a reboot with the plan."""
    for reserved in booted.pages:
        _check_pages(planned, reserved)
    _check_cpus(planned, conf, booted.cpu_lists)
    _check_functions(planned, booted.functions)
    state = kernel_settings.make_state(planned)
    for given in booted.parameters:
        _check_values(given, {
            item.name: item.value for item in state.parameters
            if item.name not in after_reboot.READ_ALONE}, 'the kernel')
    _check_values(booted.sysctls, {
        item.name: item.value for item in state.sysctls}, 'the kernel')
    if booted.modules is not None:
        _check_values(booted.modules, {
            f'{module}.{item.name}': item.value
            for module, item in state.module_options.items()}, 'modules')
    _check_values(booted.merges, {
        after_reboot.KSM: kernel_settings.KSM_STOPPED}, 'the kernel')
    wanted = {}
    for option, pairs in kernel_settings.list_network_words(
            planned.profile).items():
        for name, value in pairs.items():
            wanted[f'{option} {name}'] = value
    _check_values(booted.network, wanted, 'network devices')
    for profile in booted.profiles:
        _check_values(profile, {
            'main.include': _TUNED, 'cpu.force_latency': str(
                kernel_settings.MAX_LATENCY_US)}, 'TuneD')


def _check_values(found: after_reboot.Settings,
                  wanted: Mapping[str, str], who: str) -> None:
    """Compare settings by name."""
    for name in {**wanted, **found.values}:
        own, other = found.values.get(name), wanted.get(name)
        if own != other:
            raise _refuse(
                found.where, f'gives {who} ' + (
                    f'no {name}' if own is None else f'{name}={own}'),
                'none' if other is None else other)


def _check_pages(planned: plans.PlannedHost,
                 found: after_reboot.BootedPages) -> None:
    """Compare the huge pages of each cell."""
    small = memory.small_page_kib(planned.host)
    known: set[int] = set()
    for pages in planned.settings.pages.values():
        known.update(pages)
    for cell, pages in planned.settings.pages.items():
        own = found.pages.get(cell, {})
        for size in sorted({*pages, *own} - {small}):
            if size not in known:
                raise exception.InvalidInput(
                    found.where, f'sets pages of {size} KiB of cell {cell}'
                    f'{found.kernel}, and the host has no such pages; nothing '
                    'is written')
            count, wanted = own.get(size, 0), pages.get(size, 0)
            if count != wanted:
                raise _refuse(
                    found.where, f'gives cell {cell} {count} pages of '
                    f'{words.format_size(size)}{found.kernel}', str(wanted))


def _check_cpus(planned: plans.PlannedHost, conf: cfg.ConfigOpts,
                lists: Iterable[after_reboot.CpuList]) -> None:
    """Check that lists of CPUs agree with those of Nova."""
    dedicated = cpuset.parse(conf.compute.cpu_dedicated_set or '')
    shared = cpuset.parse(conf.compute.cpu_shared_set or '')
    quiet = set(dedicated)
    for cell in planned.host.cells:
        for core in cell.siblings:
            if core & dedicated:
                quiet |= core
    quiet -= shared
    rest = planned.host.cpus - quiet
    for item in lists:
        cpus = quiet if item.of_guests else rest
        whose = ('those of guests (cpu_dedicated_set and their siblings)'
                 if item.of_guests else 'those of the host itself (without '
                 'cpu_dedicated_set and their siblings)')
        # Without a CPU of its own, a host shares all of them with guests.
        is_wanted = bool(rest) and (bool(quiet) or not item.is_parameter)
        if item.cpus is None and is_wanted:
            raise exception.InvalidInput(
                item.where, f'does not set {item.option}, and {whose} are '
                f'{cpuset.render(cpus)}; nothing is written')
        if item.cpus is not None and not is_wanted:
            raise _refuse(
                item.where, f'sets {item.option} to '
                f'{cpuset.render(item.cpus)}', 'that services run everywhere')
        if item.cpus is not None and item.cpus != cpus:
            raise exception.InvalidInput(
                item.where, f'sets {item.option} to '
                f'{cpuset.render(item.cpus) or "no CPU"}, and {whose} are '
                f'{cpuset.render(cpus) or "none"}; nothing is written')


def _check_functions(planned: plans.PlannedHost,
                     found: after_reboot.Functions) -> None:
    """Compare the virtual functions of each device."""
    wanted = {}
    for item in planned.offered:
        if item.wanted.kind is device_choice.DeviceKind.VF:
            wanted[item.device.address] = item.count
    devices = {device.address: device for device in planned.host.devices}
    for address in {**wanted, **found.counts}:
        count, other = found.counts.get(address, 0), wanted.get(address, 0)
        device = devices.get(address)
        if device is not None and 0 < device.total_vfs < count:
            raise exception.InvalidInput(
                found.where, f'creates {count} virtual functions of '
                f'{address}, which has at most {device.total_vfs} '
                '(sriov_totalvfs); nothing is written')
        if count != other:
            raise _refuse(found.where, f'creates {count} virtual functions of '
                          f'{address}', str(other))
        guids = None if found.guids is None else found.guids.get(address, 0)
        if (device is not None and device.vendor_id == _INFINIBAND
                and guids is not None and guids != count):
            raise exception.InvalidInput(
                found.where, f'creates {count} virtual functions of '
                f'{address}, but sets GUIDs of {guids}; nothing is written')


def _compare(row: plans.PlannedFlavor, planned: plans.PlannedHost,
             state: placement.HostState, api: cfg.ConfigOpts) -> None:
    """Compare how many instances of a flavor Nova takes with the plan."""
    wanted = row.per_host.get(planned.name, 0)
    why = _find_unknown(row, api)
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


def _find_unknown(row: plans.PlannedFlavor, api: cfg.ConfigOpts) -> str:
    """Say which PCI alias of a flavor nova-api does not know."""
    text = row.flavor.extra_specs.get(vocabulary.PCI_ALIAS.name, '')
    known = {alias.get('name') for alias
             in _read_objects(api.pci.alias, written_files.API)}
    for term in text.split(','):
        name = term.partition(':')[0].strip()
        if name and name not in known:
            return f'nova-api does not know the PCI alias {name}'
    return ''
