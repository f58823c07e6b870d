# SPDX-License-Identifier: Apache-2.0

"""Rules about devices: IOMMU and virtual functions."""

from collections.abc import Iterator

from hpcvirt.audit.finding import Severity
from hpcvirt.audit.rule import AuditSubject
from hpcvirt.audit.rule import Rule
from hpcvirt.audit.rule import Violation
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import profile as profiles


def _passes_devices(subject: AuditSubject) -> bool:
    """Whether guests get devices of the host."""
    return bool(
        (subject.profile and subject.profile.devices)
        or any(item.count for item in subject.facts.devices.functions)
        or (subject.nova and subject.nova.all('pci', 'device_spec')))


def _iommu(subject: AuditSubject) -> Iterator[Violation]:
    if subject.facts.devices.iommus or not _passes_devices(subject):
        return
    intel = subject.facts.cpu.vendor == 'GenuineIntel'
    yield Violation(
        'no IOMMU is enabled, but guests get devices', 'an enabled IOMMU',
        (('# on in the firmware (VT-d, AMD-Vi, SMMU), and on the kernel '
         'command line'), ('intel_iommu=on ' if intel else '')
         + kernel_settings.HOST_DMA))


def _translation(subject: AuditSubject) -> Iterator[Violation]:
    types = subject.facts.devices.iommu_types
    if types and 'identity' not in types and _passes_devices(subject):
        yield Violation(
            'the IOMMU translates the DMA of the host itself '
            f'({", ".join(sorted(types))})',
            'only that of guests (identity for the host)',
            ('# on the kernel command line', kernel_settings.HOST_DMA))


def _present(subject: AuditSubject) -> Iterator[Violation]:
    plan, profile = subject.plan, subject.profile
    if (plan is None or profile is None or profile.device is None
            or profile.device.kind is not profiles.DeviceKind.VF):
        return
    counts = {item.address: item.count
              for item in subject.facts.devices.functions}
    for item in plan.offered:
        address, has = item.device.address, counts.get(item.device.address, 0)
        if has < item.count:
            if item.device.driver is None:
                yield Violation(
                    f'{address} has no driver, which creates virtual '
                    'functions', 'the driver of the vendor',
                    (f'# find out why: dmesg | grep {address}',))
            yield Violation(
                f'{address} has {has} virtual functions',
                f'{item.count}, as the flavors need them',
                (*((('echo 0 > /sys/bus/pci/devices/'
                    f'{address}/sriov_numvfs'),) if has else ()),
                 (f'echo {item.count} > /sys/bus/pci/devices/{address}/'
                 'sriov_numvfs')))


def _cell(subject: AuditSubject) -> Iterator[Violation]:
    if len(subject.host.cells) < 2:
        return
    lost = [item.address for item in subject.facts.devices.functions
            if None in item.cells]
    lost += [device.address for device in subject.host.devices
             if device.total_vfs and device.cell is None
             and device.address not in lost]
    for address in lost:
        yield Violation(
            f'the cell of {address} or of its virtual functions is unknown',
            'the cell that the slot belongs to',
            (('# update the firmware, which names the cells of slots '
             '(ACPI _PXM); until then Nova considers the device equally near '
             'to all cells'),))


def _persistent(subject: AuditSubject) -> Iterator[Violation]:
    created = [item for item in subject.facts.devices.functions
               if item.count]
    creators = subject.facts.devices.creators if created else {}
    for item in created:
        if item.address not in creators and '*' not in creators:
            rule = '/etc/udev/rules.d/70-hpcvirt-vfs.rules'
            yield Violation(
                f'nothing creates the {item.count} virtual functions of '
                f'{item.address} at boot', 'a rule that does',
                (f'# {rule}',
                 kernel_settings.format_vf_rule(item.address, item.count)))


RULES = (
    Rule('iommu', Severity.ERROR,
         'The IOMMU is on where guests get devices.',
         'without it no device can be passed to a guest',
         ('SDSC-SRIOV-2013', 'Linux-Parameters'), _iommu),
    Rule('iommu-passthrough', Severity.WARNING,
         'The IOMMU does not translate the DMA of the host itself.',
         "the host's own network and disks otherwise pay for each mapping",
         ('Linux-Parameters',), _translation),
    Rule('virtual-functions', Severity.ERROR,
         'With a profile: each device has the virtual functions that the '
         'flavors need.',
         'Nova refuses guests that find no virtual function',
         ('SDSC-SRIOV-2013', 'Linux-Sriov'), _present),
    Rule('device-cell', Severity.WARNING,
         'The cells of devices and of their virtual functions are known.',
         'a guest must be near its device, and Nova knows the cell only from '
         'the kernel', ('SDSC-SRIOV-2013',), _cell),
    Rule('persistent-functions', Severity.WARNING,
         'Something creates the virtual functions at every boot: udev, '
         'systemd, NetworkManager, netplan, os-net-config, modprobe.',
         'after a reboot the host otherwise offers none',
         ('Linux-Sriov',), _persistent),
)
