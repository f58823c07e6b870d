# SPDX-License-Identifier: Apache-2.0

"""Check existing flavors for what Nova refuses, misplaces or wastes.

Each rule is a function that takes a flavor and the guest that Nova makes of
it. To add one, write the function and append it to :data:`RULES`. The letters
of Nova's defects are those of :mod:`hpcvirt.fit.claim`.
"""

import dataclasses
import enum
import math
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt import words
from hpcvirt.flavors import address_width
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import diff
from hpcvirt.flavors import memory
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import mistakes
from hpcvirt.specs import scheduler_keys
from hpcvirt.specs import vocabulary


class LintSeverity(enum.StrEnum):
    """The severity of a finding.

    ``error``: instances are refused, are placed incorrectly, or fit nowhere.
    ``warning``: instances perform worse than they could, or waste resources.
    ``note``: for information.
    """

    ERROR = 'error'
    WARNING = 'warning'
    NOTE = 'note'


@dataclasses.dataclass(frozen=True, slots=True)
class LintFinding:
    """A problem of a flavor.

    :ivar code: the kind of problem; it does not change between releases
    :ivar key: the extra spec at fault, or ``ram`` or ``vcpus``
    :ivar problem: one sentence without a full stop
    :ivar advice: how to correct it
    :ivar hosts: the hosts that have the problem; empty if it is one of the
        flavor alone
    """

    code: str
    severity: LintSeverity
    flavor: str
    key: str
    problem: str
    advice: str
    hosts: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        if not self.hosts:
            return self.problem
        return f'{words.join_names(self.hosts, "hosts")}: {self.problem}'


_ERROR = LintSeverity.ERROR
_WARNING = LintSeverity.WARNING
_NOTE = LintSeverity.NOTE

#: With this many guest cells, Nova's search takes seconds if nothing fits:
#: 10.3 s for 6 guest cells on 16 host cells, measured with Nova 34.
MANY_CELLS = 6


#: The code, the severity, the key, the problem and the advice of a finding.
Problem = tuple[str, LintSeverity, str, str, str]

Rule = Callable[[flavor_model.Flavor, shape_model.Shape], Iterator[Problem]]


def lint(flavor: flavor_model.Flavor) -> tuple[LintFinding, ...]:
    """Check a flavor, regardless of hosts.

    A flavor that hpcvirt made, and nobody has changed, has only errors: it is
    as its operator chose in the profile, and the plan gave the warnings.
    """
    existing = diff.Existing('', flavor)
    is_as_made = diff.is_ours(existing) and not diff.is_edited(flavor)
    found = []
    for code, severity, key, problem, advice in _check(flavor):
        if severity is _ERROR or not is_as_made:
            found.append(LintFinding(code, severity, flavor.name, key,
                                     problem, advice))
    return tuple(found)


def _check(flavor: flavor_model.Flavor) -> Iterator[Problem]:
    wrong_keys = list(_keys(flavor))
    yield from wrong_keys
    found = mistakes.find(flavor.vcpus, flavor.ram_mib, flavor.extra_specs)
    for exc in found.refusals:
        if not any(severity is _ERROR and key == exc.where
                   for _, severity, key, *_ in wrong_keys):
            yield ('refused', _ERROR, exc.where,
                   f'Nova refuses the flavor: {exc.what}', 'correct the value')
    if found.guest is None:
        return
    corrected = dataclasses.replace(flavor, extra_specs=found.specs)
    for rule in RULES:
        for problem in rule(corrected, found.guest):
            # What follows from a correction is no finding.
            if not mistakes.is_affected(problem[2], found.corrected):
                yield problem


def _keys(flavor: flavor_model.Flavor) -> Iterator[Problem]:
    """Find unknown keys, and values of the wrong type."""
    for key, value in flavor.extra_specs.items():
        row = vocabulary.find(key)
        if vocabulary.is_unknown(key):
            yield 'unknown-key', _ERROR, key, (
                'the extra spec is unknown: Nova ignores it, and its API '
                'refuses to set it from microversion 2.86 on'), (
                'correct or remove it' + vocabulary.nearest(key))
        elif row is not None and not row.accepts(value):
            yield 'bad-value', _ERROR, key, (
                f'{value[:64]!r} is not one of its values ({row.values})'), (
                'correct the value')
        elif len(value) > catalogue.MAX_VALUE:
            yield 'too-long', _ERROR, key, (
                f'the value has {len(value)} characters, and Nova stores at '
                f'most {catalogue.MAX_VALUE}'), 'use shorter aliases'
        elif vocabulary.is_unvalidated(key):
            yield 'not-validated', _NOTE, key, (
                'Nova reads the extra spec, but its API has no validator for '
                'it and refuses to set it from microversion 2.86 on'), (
                'set it with an older one, as in openstack '
                '--os-compute-api-version 2.85 flavor set')


def _set_of_devices(_flavor: flavor_model.Flavor,
                    guest: shape_model.Shape) -> Iterator[Problem]:
    """Find sets of devices of which Placement offers none, or few."""
    key = vocabulary.PCI_ALIAS.name
    if guest.device_set is None:
        return
    if not guest.devices:
        yield 'set-without-devices', _ERROR, scheduler_keys.DEVICE_SET.name, (
            'the flavor requests a set, but no devices'), (
            'request a device for each place of the set')
    places: dict[str, list[str]] = {}
    for device in guest.devices:
        name, _, place = (device.alias or '').rpartition('-')
        if place.isdecimal() and name.startswith(guest.device_set):
            places.setdefault(name, []).extend([place] * device.count)
        elif device.count > 1:
            yield 'set-by-count', _WARNING, key, (
                f'{device.count} devices of {device.alias} are seldom a set: '
                'Placement offers permutations of all devices, 1,680 of each '
                'host for 4 of 8, and nova-scheduler gets only some'), (
                'request one device for each place, as a plan with sets does')
    for name, found in places.items():
        if sorted(map(int, found)) != [*range(len(found))]:
            yield 'set-places', _ERROR, key, (
                f'the places {", ".join(found)} of {name} are not 0 and so '
                'on, each once, so that no set has them'), (
                'request one device for each place')


def _unequal_cells(_flavor: flavor_model.Flavor,
                   guest: shape_model.Shape) -> Iterator[Problem]:
    """Find guest cells that differ (defect A)."""
    cells = [(cell.pcpus + cell.vcpus, cell.memory_mib)
             for cell in guest.cells]
    if len(set(cells)) < 2:
        return
    key = vocabulary.NUMA_CPUS.at(num=0)
    if cells == sorted(cells, reverse=True):
        yield 'unequal-cells', _WARNING, key, (
            "the guest cells differ; Nova's claim confuses such cells: it "
            'refuses hosts that have room, and after a build that failed on '
            'another host it can leave vCPUs unpinned'), 'make the cells equal'
    else:
        yield 'smallest-cell-first', _ERROR, key, (
            'the guest cells differ and a smaller cell comes before a '
            "larger; Nova's claim then accepts hosts where the guest does "
            'not fit and refuses hosts where it does'), (
            'make the cells equal, or put the largest first')


def _address_width(flavor: flavor_model.Flavor,
                   _guest: shape_model.Shape) -> Iterator[Problem]:
    """Find widths that libvirt refuses, or in which the memory is too much."""
    specs = flavor.extra_specs
    mode = specs.get(vocabulary.MAXPHYSADDR_MODE.name)
    bits = specs.get(vocabulary.MAXPHYSADDR_BITS.name)
    end = address_width.find_end_mib(flavor.ram_mib, ())
    needed = max(address_width.count_bits(end), address_width.DEFAULT_BITS)
    refusal = address_width.find_refusal(specs)
    if refusal is not None:
        # The image may say otherwise, and releases of libvirt differ.
        key, why = refusal
        yield 'address-width', _WARNING, key, (
            f'libvirt refuses the instance: {why}'), (
            'give a number of bits with the mode emulate, and with no other')
    elif mode is None and bits is not None:
        yield ('address-width', _WARNING, vocabulary.MAXPHYSADDR_BITS.name,
               ('without a mode, here or in the image, it selects hosts, but '
                'the instance has 40 bits of addresses, unless cpu_mode is '
                'host-passthrough'),
               f'set {vocabulary.MAXPHYSADDR_MODE.name}: emulate')
    elif mode == 'emulate' and bits and 2 ** address_width.read_bits(
            specs) >> 20 < end:
        yield ('address-width', _ERROR, vocabulary.MAXPHYSADDR_BITS.name,
               'QEMU does not start an instance with so much memory',
               f'set {needed} bits or more')
    elif mode is None and needed > address_width.DEFAULT_BITS:
        yield ('address-width', _WARNING, 'ram',
               ('on x86, QEMU starts an instance with so much memory only if '
                'cpu_mode is host-passthrough'),
               (f'set {vocabulary.MAXPHYSADDR_MODE.name}: emulate and '
                f'{vocabulary.MAXPHYSADDR_BITS.name}: {needed}, or '
                'passthrough'))


def _several_devices(_flavor: flavor_model.Flavor,
                     guest: shape_model.Shape) -> Iterator[Problem]:
    """Find several required devices of a guest with cells (defect B)."""
    strict = [device for device in guest.devices
              if device.affinity is shape_model.PCIAffinity.REQUIRED]
    count = sum(device.count for device in strict)
    if len(guest.cells) > 1 and count > 1:
        yield (
            'several-required-devices',
            _ERROR if len(strict) > 1 else _WARNING,
            vocabulary.PCI_NUMA_AFFINITY_POLICY.name,
            (f'the guest has several cells and {count} devices with the '
             "policy required; Nova's claim pins CPUs of the wrong cell if "
             'the devices belong to different host cells'),
            'use the policy preferred, or one device')


def _affinity_in_moves(_flavor: flavor_model.Flavor,
                       guest: shape_model.Shape) -> Iterator[Problem]:
    """Find affinity policies that a move can lose (defect I)."""
    aliases = sorted({device.alias for device in guest.devices
                      if device.alias and device.affinity is not None})
    if aliases and guest.cells:
        yield (
            'affinity-in-moves', _NOTE,
            vocabulary.PCI_NUMA_AFFINITY_POLICY.name,
            ('migrations, resizes and evacuations ignore this policy of the '
             'flavor and apply that of the alias'),
            ('set numa_policy in [pci]alias to the same policy for '
             f'{" and ".join(aliases)}'))


def _vgpus(flavor: flavor_model.Flavor,
           guest: shape_model.Shape) -> Iterator[Problem]:
    """Find vGPUs of guests whose CPUs belong to certain cells."""
    found = [key for key in flavor.extra_specs
             if vocabulary.VGPU_RESOURCE.fullmatch(key)]
    if found and guest.cells:
        yield 'vgpu-anywhere', _NOTE, found[0], (
            'on hosts with several cells, the vGPU can belong to another cell '
            'than the CPUs: Nova ignores cells when it chooses the card'), (
            'if that matters, use whole devices or virtual functions by a '
            'PCI alias')


def _page_size(_flavor: flavor_model.Flavor,
               guest: shape_model.Shape) -> Iterator[Problem]:
    """Find page sizes by class (defect C), and memory not in whole pages."""
    if not guest.cells:
        return
    key = scheduler_keys.MEM_PAGE_SIZE.name
    page_kib = guest.cells[0].page_kib
    if page_kib in (shape_model.PageClass.LARGE, shape_model.PageClass.ANY):
        # No instance is misplaced: the claim only refuses hosts.
        yield 'page-size-class', _WARNING, key, (
            'the first host cell that Nova tries determines the size for all '
            'others, so that hosts with pages of several sizes can be refused '
            'although they have room'), (
            'give the size, 2048 or 1048576')
    elif page_kib in (None, shape_model.PageClass.SMALL):
        yield 'small-pages', _WARNING, key, (
            'the memory is in small pages, which slow down address translation'
            + (' and are not reserved for the guest' if page_kib is None
               else '')), 'use huge pages, 2048 or 1048576'
    elif page_kib is not None:
        wrong = [cell.memory_mib for cell in guest.cells
                 if cell.memory_mib * 1024 % page_kib]
        if wrong:
            yield 'not-whole-pages', _ERROR, 'ram', (
                f'a guest cell of {wrong[0]} MiB is not a multiple of pages '
                f'of {memory.page_name(page_kib)}; the guest fits nowhere'), (
                'make the memory of each cell a multiple of the page size')


def _many_cells(_flavor: flavor_model.Flavor,
                guest: shape_model.Shape) -> Iterator[Problem]:
    """Find guests with many cells (defect D)."""
    count = len(guest.cells)
    if count >= MANY_CELLS:
        yield 'many-cells', _NOTE, vocabulary.NUMA_NODES.name, (
            f'on hosts with more than {count} cells on which the guest does '
            f'not fit, Nova tries all arrangements of {count} guest cells, '
            'which takes seconds to minutes'), (
            'enable HPCTopologyFilter, which refuses such hosts first')


def _threads(_flavor: flavor_model.Flavor,
             guest: shape_model.Shape) -> Iterator[Problem]:
    """Find cells that end within a core (defect E), and thread policies."""
    if guest.cpu_policy is shape_model.CPUPolicy.SHARED or not guest.cells:
        return
    key = vocabulary.CPU_THREAD_POLICY.name
    threads = guest.topology.threads if guest.topology else 1
    if guest.thread_policy is shape_model.ThreadPolicy.ISOLATE:
        yield 'isolate', _WARNING, key, (
            'isolate passes only hosts without SMT; it does not keep '
            'siblings idle'), (
            'use require with whole cores, or hosts that dedicate one '
            'thread of each core')
        return
    is_required = guest.thread_policy is shape_model.ThreadPolicy.REQUIRE
    consequence = ('leaves a thread of a core that no such guest can use'
                   if is_required else
                   'shares a core with another guest on hosts with SMT, '
                   'where prefer falls back to single threads')
    odd = [cell.pcpus for cell in guest.cells
           if cell.pcpus % max(threads, 2)]
    if odd:
        yield 'half-cores', _WARNING, key, (
            f'a guest cell of {odd[0]} dedicated CPUs {consequence}'), (
            'use whole cores: a multiple of the threads of a core')
    if threads > 1 and not is_required:
        yield 'siblings-not-held', _WARNING, vocabulary.CPU_THREADS.name, (
            f'the guest sees {threads} threads in each core, which need not '
            'be siblings on the host'), 'use the thread policy require'


def _policies(_flavor: flavor_model.Flavor,
              guest: shape_model.Shape) -> Iterator[Problem]:
    """Find CPUs that are not dedicated, and isolated emulator threads."""
    if guest.cpu_policy is shape_model.CPUPolicy.SHARED:
        key = (vocabulary.NUMA_NODES.name if guest.cells
               else vocabulary.CPU_POLICY.name)
        yield 'not-pinned', _WARNING, key, (
            'the vCPUs are not pinned'
            + (': they float over the shared CPUs of their cell'
               if guest.cells else ', and the guest has no NUMA cells')), (
            'use the CPU policy dedicated')
    elif guest.emulator_threads is shape_model.EmulatorThreads.ISOLATE:
        yield 'emulator-cpu', _NOTE, vocabulary.EMULATOR_THREADS_POLICY.name, (
            'each instance takes one dedicated CPU in addition to its vCPUs, '
            'on the host cell of guest cell 0'), (
            'use the policy share, which runs emulator threads on '
            'cpu_shared_set')


def _guest_topology(flavor: flavor_model.Flavor,
                    _guest: shape_model.Shape) -> Iterator[Problem]:
    """Find guest CPU topologies that do not match the vCPUs."""
    specs = flavor.extra_specs
    wanted = [(row.name, int(specs[row.name])) for row in (
        vocabulary.CPU_SOCKETS, vocabulary.CPU_CORES, vocabulary.CPU_THREADS)
        if row.name in specs]
    product = math.prod(number for _, number in wanted)
    whole = len(wanted) == 3
    vcpus = flavor.vcpus
    if product and (product != vcpus if whole else vcpus % product):
        yield 'topology-mismatch', _WARNING, wanted[0][0], (
            f'{" x ".join(str(number) for _, number in wanted)} does not give '
            f'{vcpus} vCPUs; Nova gives the guest another topology'), (
            'make sockets x cores x threads equal the number of vCPUs')


def _numbering(flavor: flavor_model.Flavor,
               guest: shape_model.Shape) -> Iterator[Problem]:
    """Find extra specs of guest cells that do not exist."""
    count = len(guest.cells)
    for row in (vocabulary.NUMA_CPUS, vocabulary.NUMA_MEM):
        known = {row.at(num=number) for number in range(count)}
        for key in flavor.extra_specs:
            if row.matches(key) and key not in known:
                yield 'no-such-cell', _WARNING, key, (
                    'the cell does not exist: the number of guest cells is '
                    f'{count}'), 'remove it, or number the cells from 0'


def _mark(flavor: flavor_model.Flavor,
          _guest: shape_model.Shape) -> Iterator[Problem]:
    """Find flavors that were changed after hpcvirt created them."""
    existing = diff.Existing('', flavor)
    if diff.is_ours(existing) and diff.is_edited(flavor):
        yield 'edited', _NOTE, vocabulary.GENERATED_BY.name, (
            'the flavor was changed after hpcvirt created it'), (
            'remove the mark to keep the change')


RULES: tuple[Rule, ...] = (
    _set_of_devices, _unequal_cells, _several_devices, _affinity_in_moves,
    _address_width, _vgpus, _page_size, _many_cells, _threads, _policies,
    _guest_topology, _numbering, _mark)
