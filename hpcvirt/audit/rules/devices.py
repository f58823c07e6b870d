# SPDX-License-Identifier: Apache-2.0

"""Rules about the devices that guests get."""

import fnmatch
import json
import math
import typing
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.audit import fact
from hpcvirt.audit.finding import Severity
from hpcvirt.audit.reading.hardware import GroupedFunction
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import join_first
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.model import wiring
from hpcvirt.topology import pci

T = typing.TypeVar('T')

#: Base classes [pci.ids].
_GPU, _NETWORK = ('03', '12'), '02'

#: With a payload of 128 bytes, a sixth of a transfer is headers, and with 256
#: bytes a tenth.
_FAIR_PAYLOAD = 256
#: The kernel and most firmware leave a device 512 bytes for a request; 4096
#: are the most that PCI Express has.
_USUAL_READ = 512
_LARGE_READ = 4096

#: Bridges, which VFIO allows in a group, and the drivers that it allows: they
#: do not let a device access memory.
_BRIDGES = ('0604', '0609')
_HARMLESS = ('pcieport', 'pci-stub')

_NVIDIA, _SWITCH = '10de', '0680'
_FABRIC = '/usr/share/nvidia/nvswitch/fabricmanager.cfg'

#: Base classes of what a host needs itself, unlike the audio function of a
#: GPU: disks and networks.
_NEEDED = ('01', '02')

#: What functions of a class, or of a base class, are.
_KINDS = {'0403': 'audio function', '0c03': 'USB controller',
          '0c05': 'SMBus controller', '0600': 'host bridge',
          '0601': 'ISA bridge', '0108': 'NVMe controller',
          '0107': 'SAS controller', '0106': 'SATA controller',
          '0104': 'RAID controller', '01': 'storage controller',
          '02': 'network function', '03': 'display function',
          '06': 'bridge', '08': 'system device', '0c': 'bus controller'}

#: An item of device_spec that names every device, and how it names them.
_ANY = {'address': '*', 'vendor_id': '*', 'product_id': '*'}
_PATTERN = '*{address}* {vendor_id} {product_id}'


class _Card(typing.NamedTuple):
    """A device that guests get as a whole, or by its virtual functions.

    :ivar kind: its base class; empty if it has no link
    :ivar spec: the item of device_spec for the card as a whole
    """

    kind: str
    model: str
    driver: str
    spec: Mapping[str, str] | None

    @property
    def is_whole(self) -> bool:
        return self.spec is not None or 'vfio' in self.driver


def _cards(subject: AuditSubject) -> Mapping[str, _Card]:
    """Find the cards of guests: address -> card."""
    facts, devices = subject.facts.hardware, subject.host.devices
    kinds = {item.address: item.kind for item in facts.links}
    busy = {item.address for item in facts.functions if item.count}
    given = busy.union(item.device.address for item in (
        subject.plan.offered if subject.plan else ()))
    specs = _read_specs(subject)
    found = {}
    for device in set(devices).difference(pci.list_virtual(devices)):
        address = device.address
        model = f'{device.vendor_id} {device.product_id}'
        card = _Card(
            kinds.get(address, ''), model, device.driver or '',
            next((spec for spec in specs
                  if (spec['product_id'] != '*' or address not in busy)
                  and _is_named(spec, address, model)), None))
        if card.is_whole or address in given:
            found[address] = card
    return dict(sorted(found.items()))


def _read_specs(subject: AuditSubject) -> list[Mapping[str, str]]:
    """Read the items of device_spec."""
    texts = subject.nova.all('pci', 'device_spec') if subject.nova else ()
    specs: list[Mapping[str, str]] = []
    try:
        for value in map(json.loads, texts):
            items = value if isinstance(value, list) else [value]
            specs += [_ANY | spec for spec in items]
        if any(isinstance(spec['address'], dict) for spec in specs):
            raise TypeError
    except (ValueError, TypeError, RecursionError) as exc:
        raise fact.NotKnown('[pci]device_spec', 'is not JSON, or has '
                            'regular expressions') from exc
    return specs


def _is_named(spec: Mapping[str, str], address: str, model: str) -> bool:
    """Whether an item of device_spec names a function."""
    return 'devname' not in spec and fnmatch.fnmatch(
        f'{address} {model}', _PATTERN.format_map(spec).lower())


def _drivers(subject: AuditSubject) -> Iterator[Violation]:
    for address, card in _cards(subject).items():
        found = f'{address} has {card.driver or "no driver"}'
        change = (f'driverctl set-override {address} vfio-pci',)
        if card.spec is None or 'vfio' in card.driver:
            continue
        if str(card.spec.get('managed')).lower() in ('no', 'false', '0'):
            yield Violation(f'{found}, and libvirt may not bind vfio-pci',
                            'vfio-pci', change)
        elif (card.driver and card.kind in _GPU
              and not _has_hook(subject)):
            yield Violation(
                f'{found}, which must release it for each guest',
                'vfio-pci since the boot', change, Severity.WARNING)


def _groups(subject: AuditSubject) -> Iterator[Violation]:
    given = {address for address, card in _cards(subject).items()
             if card.is_whole}
    virtual = {item.address for item in pci.list_virtual(subject.host.devices)}
    given |= virtual
    wired = subject.host.wiring if given else wiring.Wiring()
    if wired is None or wiring.UnknownWiring.IOMMU_GROUPS in wired.unknown:
        raise fact.NotKnown('the IOMMU groups of devices', 'was not captured')
    groups: dict[int, list[str]] = {}
    for each in wired.attachments:
        if each.iommu_group is not None:
            groups.setdefault(each.iommu_group, []).append(each.address)
    guests = {number: [address for address in members if address in given]
              for number, members in groups.items()}
    others = _find_others(subject, given, guests)
    yield from _held(guests, others, virtual)
    known = {each.address for each in others}
    for number, members in groups.items():
        shared = [address for address in members if address not in known]
        if len(shared) > 1 and guests[number]:
            yield Violation(
                f'{join_first(shared)} share IOMMU group {number}',
                'a group for each, unless one guest always gets all',
                (('# ACS on in the firmware, no pci=disable_acs_redir; see '
                  'device-peers'),),
                Severity.WARNING if given.issuperset(shared) else None)


def _find_others(subject: AuditSubject, given: Set[str],
                 guests: dict[int, list[str]]) -> list[GroupedFunction]:
    """Find the functions of IOMMU groups that are not for guests.

    :param given: the listed functions that are for guests
    :param guests: group -> functions for guests; those of classes that no
        topology lists are added
    """
    specs = _read_specs(subject)
    others: list[GroupedFunction] = []
    for each in subject.facts.hardware.grouped if given or specs else ():
        model = f'{each.vendor_id} {each.product_id}'
        if each.code in _BRIDGES or each.address in given:
            continue
        if 'vfio' in (each.driver or '') or any(
                _is_named(spec, each.address, model) for spec in specs):
            guests.setdefault(each.group, []).append(each.address)
        else:
            others.append(each)
    return others


def _held(guests: Mapping[int, Sequence[str]],
          others: Sequence[GroupedFunction],
          virtual: Set[str]) -> Iterator[Violation]:
    """Find functions in the groups of guests that drivers of the host hold.

    :param guests: group -> functions for guests
    """
    held: dict[tuple[int, str, str, bool], list[str]] = {}
    for each in others:
        if (each.driver is None or each.driver in _HARMLESS
                or not guests.get(each.group)):
            continue
        slot = each.address.rpartition('.')[0]
        is_of_card = any(address.rpartition('.')[0] == slot
                         for address in guests[each.group])
        held.setdefault((each.group, each.driver, each.code, is_of_card),
                        []).append(each.address)
    for (group, driver, code, is_of_card), addresses in held.items():
        kind = _KINDS.get(code, _KINDS.get(code[:2], 'function'))
        is_are = 'is'
        if len(addresses) > 1:
            kind, is_are = f'{kind}s', 'are'
        owner = 'of the same card' if is_of_card else 'of the host'
        change = ['# ACS on in the firmware, or the card in another slot']
        if is_of_card and code[:2] not in _NEEDED:
            change = [f'driverctl set-override {address} vfio-pci'
                      for address in addresses]
        elif is_of_card and virtual.isdisjoint(guests[group]):
            change = ['# without ACS in the card, a guest gets it whole']
        yield Violation(
            f'{join_first(addresses)}, the {kind} {owner} in IOMMU group '
            f'{group} of {join_first(sorted(guests[group]))}, {is_are} bound '
            f'to the host driver {driver}',
            'vfio-pci or no driver: QEMU refuses every guest otherwise '
            '("group is not viable")', tuple(change))


def _find_redirected(
        switches: Iterable[Sequence[tuple[wiring.Bridge, str]]],
        cards: Mapping[str, _Card],
        ) -> Iterator[tuple[wiring.Bridge, str]]:
    """Yield what is below switches with GPUs whose ports redirect requests."""
    for below in switches:
        if {cards[address].kind for _, address in below} > {_NETWORK}:
            for port, address in below:
                if 'ReqRedir' in _need(port.acs, port.address):
                    yield port, address


def _peers(subject: AuditSubject) -> Iterator[Violation]:
    cards = {address: card for address, card in _cards(subject).items()
             if card.kind in (*_GPU, _NETWORK)}
    kinds = {card.kind for card in cards.values()}
    wired = (_need(subject.host.wiring, 'wiring') if kinds > {_NETWORK}
             else wiring.Wiring())
    switches: dict[str, list[tuple[wiring.Bridge, str]]] = {}
    for each in wired.attachments:
        port = wired.by_address.get(each.above or '')
        if each.address in cards and port and port.above:
            switches.setdefault(port.above, []).append((port, each.address))
    redirected = list(_find_redirected(switches.values(), cards))
    bad = list(dict.fromkeys(
        port.address for port, _ in redirected
        if 'DirectTrans' not in (port.acs or ())))
    if bad:
        # A bit that is left open is that of the firmware, not of the kernel.
        flags = ';'.join(f'1011101@{port}' for port in bad)
        yield Violation(
            f'ACS of {join_first(bad)} redirects all requests between GPUs '
            'and network cards', 'direct translation too',
            (*(f'setpci -s {port} ECAP_ACS+6.w=40:40' for port in bad),
             '# lasting, quoted on the command line of Linux 6.16 or newer:',
             f'pci=config_acs={flags}'))
    for address in (address for _, address in redirected
                    if cards[address].kind == _NETWORK):
        _, ats = _need(subject.facts.hardware.controls.get(address), address)
        if not ats:
            state = 'missing' if ats is None else 'off at present'
            yield Violation(
                f'ATS of {address} is {state}',
                'on while a guest has it, as ACS redirects its requests',
                (f'# look while a guest runs: lspci -vvv -s {address}',
                 f'mlxconfig -d {address} set ATS_ENABLED=true'),
                None if ats is None else Severity.NOTE)


def _need(found: T | None, what: str) -> T:
    if found is None:
        raise fact.NotKnown(f'{what} (lspci)',
                            'was not captured, or needs permission')
    return found


def _ordering(subject: AuditSubject) -> Iterator[Violation]:
    if subject.facts.cpu.is_guest:
        return  # QEMU does not show what the card may.
    for address, card in _cards(subject).items():
        if card.kind == _NETWORK and _need(subject.facts.hardware.controls.get(
                address), address)[0] is False:
            yield Violation(
                f'relaxed ordering of {address} is off', 'on',
                (('# unless the kernel avoids an erratum: dmesg | grep -i '
                  '"relaxed ordering"'),
                 f'setpci -s {address} CAP_EXP+8.w=10:10'))


def _sizes(subject: AuditSubject) -> Iterator[Violation]:
    if subject.facts.cpu.is_guest:
        return  # QEMU does not show what the card may.
    cards = {address: card for address, card in _cards(subject).items()
             if card.kind in (*_GPU, _NETWORK)}
    sizes = subject.facts.hardware.sizes if cards else {}
    wired = subject.host.wiring
    places = {each.address: each for each in wired.attachments} if (
        wired) else {}
    for address, card in cards.items():
        own = _need(sizes.get(address), address)
        above = ([bridge.address for bridge in wired.path(places[address])]
                 if wired and address in places else [])
        most = min([own.most_payload, *(
            _need(sizes.get(bridge), bridge).most_payload
            for bridge in above)])
        if own.payload < most:
            yield Violation(
                f'MaxPayload of {address} is {own.payload} bytes',
                f'{most} bytes, which card and bridges above it can',
                (('# pci=pcie_bus_perf on the kernel command line, or the '
                  'setting of the firmware'),),
                None if own.payload < _FAIR_PAYLOAD else Severity.NOTE)
        if own.read_request < _LARGE_READ and (
                card.kind == _NETWORK or own.read_request < _USUAL_READ):
            yield Violation(
                f'MaxReadReq of {address} is {own.read_request} bytes',
                f'{_LARGE_READ} bytes', (
                    f'setpci -s {address} CAP_EXP+8.w=5000:7000',
                    ('# not lasting: the driver or the firmware of the card '
                     'sets it at each start')),
                None if own.read_request < _USUAL_READ else Severity.NOTE)


def _equals(subject: AuditSubject) -> Iterator[Violation]:
    hardware, models = subject.facts.hardware, dict[str, list[str]]()
    for address, card in _cards(subject).items():
        models.setdefault(card.model, []).append(address)
    links = {item.address: math.prod(item.best) for item in hardware.links}
    for cards in models.values():
        for figures, unit, change in (
                (hardware.bars, 'MiB of memory in its largest BAR',
                 'resizable BAR and decoding above 4G on in the firmware'),
                (links, 'GT/s in all lanes of card and slot',
                 'an equal slot, or bifurcation and speed as there')):
            best = max(cards, key=lambda card: figures.get(card, 0))
            for address in cards:
                if 0 < figures.get(address, 0) < figures[best]:
                    yield Violation(
                        f'{address} has {figures[address]:g} {unit}',
                        f'{figures[best]:g}, as {best} of the same model',
                        (f'# {change}',))


def _partitions(subject: AuditSubject) -> Iterator[Violation]:
    given = {address for address, card in _cards(subject).items()
             if card.kind in _GPU and card.is_whole}
    wired = subject.host.wiring or wiring.Wiring()
    listed: set[str] = set()
    for each in wired.partitions or ():
        listed.update(each.devices)
    for address in sorted(given - listed if listed else (),
                          key=pci.address_key):
        yield Violation(
            f'{address} is in no partition of the fabric manager',
            'a partition for each set of GPUs of a guest',
            ('# are all GPUs and NVSwitches healthy? nvswitch-audit',))
    for each in wired.partitions or ():
        others = [address for address in each.devices if address not in given]
        if each.active and others and not given.isdisjoint(each.devices):
            yield Violation(
                f'partition {each.number} is active, and joins GPUs of guests '
                f'with {join_first(others)}, which guests do not get',
                'partitions without GPUs of the host',
                (f'fmpm -d {each.number}',))


def _has_switches(subject: AuditSubject) -> bool:
    """Whether the host has NVSwitches, and no guest gets them.

    A guest with all GPUs and switches has a fabric manager of its own.
    """
    wired = subject.host.wiring
    if wired and wired.partitions:
        return True
    specs = _read_specs(subject)
    return any(
        each.code == _SWITCH and each.vendor_id == _NVIDIA
        and 'vfio' not in (each.driver or '') and not any(
            _is_named(spec, each.address,
                      f'{each.vendor_id} {each.product_id}')
            for spec in specs)
        for each in subject.facts.hardware.grouped)


def _has_hook(subject: AuditSubject) -> bool:
    """Whether NVIDIA's hook asks nvidia-smi for the GPUs of a guest."""
    return _has_switches(subject) and bool(
        subject.facts.hardware.activators)


def _activation(subject: AuditSubject) -> Iterator[Violation]:
    vendors = {device.address: device.vendor_id
               for device in subject.host.devices}
    gpus = [address for address, card in _cards(subject).items()
            if card.kind in _GPU and card.is_whole
            and vendors[address] == _NVIDIA]
    if not gpus or not _has_switches(subject):
        return
    mode = subject.facts.hardware.fabric_mode
    if mode != 1:
        yield Violation(
            'the fabric manager '
            + ('is not installed' if mode is None
               else f'has FABRIC_MODE={mode}'),
            'FABRIC_MODE=1, in which guests share the NVSwitches',
            (f"sed -i 's/^FABRIC_MODE=.*/FABRIC_MODE=1/' {_FABRIC}",
             'systemctl restart nvidia-fabricmanager'))
    if not subject.facts.hardware.activators:
        yield Violation(
            'no hook of libvirt activates the partition of '
            f'{join_first(gpus)}', 'a hook that runs fmpm for each guest',
            (('# /etc/libvirt/hooks/qemu of github.com/NVIDIA/libvirt-hooks, '
              'in a container: of its image'),))


RULES = (
    Rule('device-driver', Severity.ERROR,
         'Whole devices in ``device_spec`` have the driver ``vfio-pci`` if '
         'libvirt may not bind it (``managed``), and GPUs always (a warning).',
         'a guest gets a device only if no driver of the host holds it',
         ('Nova-Devices', 'Linux-Vfio'), _drivers),
    Rule('device-groups', Severity.ERROR,
         'Each device of a guest has an IOMMU group of its own (a warning if '
         'all in the group are for guests), and no driver of the host holds '
         'another function of the group, of whatever class; bridges may be '
         'in it.',
         'one guest gets all devices of a group, which reach each other past '
         'the IOMMU: the price of ACS that is off; VFIO gives away no group '
         'of which the host uses a part', ('Linux-Vfio',), _groups),
    Rule('device-peers', Severity.WARNING,
         'Where ACS redirects what GPU and network card below one switch '
         'send, it passes translated requests directly, and the card has ATS '
         '(a note if that is off).',
         'GPUDirect RDMA otherwise takes the way through the processor; with '
         'ACS off it does not, but guests are not isolated either',
         ('NVIDIA-Ats', 'Linux-Parameters'), _peers),
    Rule('device-ordering', Severity.WARNING,
         'Network cards of guests may relax the order of their transfers; '
         'virtual functions follow their card.',
         'a transfer otherwise waits for all before it, and drivers ask for '
         'nothing else', ('Levin-2020',), _ordering),
    Rule('device-transfers', Severity.WARNING,
         'GPUs and network cards of guests have the largest ``MaxPayload`` '
         'that they and the bridges above them can (a note from 256 bytes '
         'on), and a ``MaxReadReq`` of at least 512 bytes, network cards of '
         '4096 (a note).',
         'small transfers leave a larger part of the link to headers, and '
         'small requests do not fill it while the answers are on their way',
         ('Linux-Parameters',), _sizes),
    Rule('device-equals', Severity.WARNING,
         'Devices of guests that are of one model have BARs of the same size, '
         'and links that can be equally wide and fast.',
         'a job runs at the pace of its slowest device, and a small BAR shows '
         'others only a part of the memory of a GPU', ('Linux-Abi',), _equals),
    Rule('device-partitions', Severity.ERROR,
         'GPUs of guests are in partitions of the fabric manager, and in no '
         'active one with GPUs that guests do not get.',
         'CUDA does not start in a guest without its partition, and the GPUs '
         'of an active partition reach the memory of each other',
         ('NVIDIA-Nvswitch',), _partitions),
    Rule('device-activation', Severity.ERROR,
         'On hosts with NVSwitches that give whole GPUs to guests, the fabric '
         'manager has ``FABRIC_MODE=1``, and a hook of libvirt activates the '
         'partition of each guest.',
         'until somebody does, CUDA fails in the guest with error 802',
         ('NVIDIA-Nvswitch', 'NVIDIA-Hooks'), _activation),
)
