# SPDX-License-Identifier: Apache-2.0

"""Install in a guest what its cloud says about the places of its devices.

This is the program ``hpcvirt-guest-topology``, which
``contrib/guest_image/pack_topology.py`` packs into one file. It reads the
entry ``hpcvirt`` of ``vendor_data2.json`` from the config drive or the
metadata service, finds the devices in the sysfs of the guest, and writes files
for NCCL, hwloc, UCX and Slurm.

Exit status: 0 if the files are as they should be; 1 if a file of others was
kept; 2 if there is no answer.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from collections.abc import Mapping
from xml.etree import ElementTree

from hpcvirt.instance_topology import functions
from hpcvirt.instance_topology import places
from hpcvirt.instance_topology import writers

PROGRAM = 'hpcvirt-guest-topology'

#: Each file says who writes it.
MARK = f'Written by {PROGRAM}, which replaces this file.'

_METADATA = '169.254.169.254'
_PATH = 'openstack/latest/vendor_data2.json'
_CONFIG_DRIVES = ('/dev/disk/by-label/config-2', '/dev/disk/by-label/CONFIG-2')
_TIMEOUT_S = 30
_MAX_BYTES = 4 * 1024 * 1024


def make_files(found: places.Arrangement,
               guest: ElementTree.Element | None) -> dict[str, str]:
    """Return the files of a guest by name; one that is empty must not be.

    :param guest: what its lstopo prints as XML; None without lstopo
    """
    if guest is not None:
        guest.find('object').insert(0, ElementTree.Element(
            'info', name='Comment', value=MARK))
    nccl, hwloc = 'etc/hpcvirt/nccl-topology.xml', 'etc/hpcvirt/hwloc.xml'
    profile = ('' if guest is None else
               f'# {MARK}\nexport HWLOC_XMLFILE=/{hwloc} HWLOC_THISSYSTEM=1\n')
    files = {
        nccl: f'<!-- {MARK} -->\n{writers.write_nccl(found)}',
        'etc/nccl.conf': f'# {MARK}\nNCCL_TOPO_FILE=/{nccl}\n',
        'etc/hpcvirt/ucx-net-devices': f'# {MARK}\n{writers.write_ucx(found)}',
        'etc/hpcvirt/gres.conf': f'# {MARK}\n{writers.write_gres(found)}',
        hwloc: '' if guest is None else write_hwloc(found, guest),
        'etc/profile.d/hpcvirt-topology.sh': profile}
    return {name: text if found.functions else ''
            for name, text in files.items()}


def write_hwloc(found: places.Arrangement,
                guest: ElementTree.Element) -> str:
    """Move the devices in the XML of the guest's lstopo below their cells.

    It is for HWLOC_XMLFILE. HWLOC_PCI_LOCALITY is of no use: it gives all
    devices below a host bridge one place, and all may be below the same
    [open-mpi/hwloc, hwloc/pci-common.c: hwloc_pcicommon_tree_attach].

    :param guest: the root element, which is changed
    """
    objects = [*guest.iter('object')]
    above = {}
    for parent in objects:
        for child in parent.findall('object'):
            above[child] = parent
    homes = {each.get('os_index'): above[each] for each in objects
             if each.get('type') == 'NUMANode'}
    cells = {each.address: each.cell for each in found.functions}
    branches: dict[ElementTree.Element, set[int | None]] = {}
    for each in objects:
        if each.get('pci_busid') in cells and each.get('type') == 'PCIDev':
            branch = each
            while above[branch].get('bridge_type') == '1-1':
                branch = above[branch]
            branches.setdefault(branch, set()).add(cells[each.attrib[
                'pci_busid']])
    number = max(int(each.get('gp_index', '0')) for each in objects)
    for branch, own in branches.items():
        home = homes.get(str(min(own, key=str)))
        bridge = above[branch]
        if len(own) == 1 and home is not None and bridge in above:
            number += 1
            bridge.remove(branch)
            ElementTree.SubElement(home, 'object', {
                **bridge.attrib, 'gp_index': str(number)}).append(branch)
            if bridge.find('object') is None:
                above[bridge].remove(bridge)
    ElementTree.indent(guest)
    text = ElementTree.tostring(guest, 'unicode').replace(' />', '/>')
    return f'<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n{text}\n'


def install(files: Mapping[str, str], root: str = '/') -> list[str]:
    """Write, replace or remove files; return those of others, which stay.

    :raises OSError: if a file cannot be read or written
    """
    kept = []
    for name, content in files.items():
        path = os.path.join(root, name)
        before = None
        if os.path.lexists(path):
            with open(path, 'rb') as file:
                before = file.read(_MAX_BYTES)
        if before is not None and MARK.encode() not in before:
            if content and content.encode().partition(b'\n')[2] not in before:
                kept.append(path)
        elif content and content.encode() != before:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(f'{path}.new', 'wb') as file:
                file.write(content.encode())
            os.replace(f'{path}.new', path)
        elif before is not None and not content:
            os.remove(path)
    return kept


def read_hwloc(root: str) -> ElementTree.Element | None:
    """Read the topology that hwloc finds; None without lstopo."""
    program = shutil.which('lstopo-no-graphics') or shutil.which('lstopo')
    if program is None:
        return None
    done = subprocess.run(
        (program, *(() if root == '/' else (
            '-i', root, '--if', 'fsroot')), '--whole-io',
         '--of', 'xml'), check=True, timeout=_TIMEOUT_S,
        stdout=subprocess.PIPE, env={
            name: value for name, value in os.environ.items()
            if not name.startswith('HWLOC_')})
    return ElementTree.fromstring(done.stdout)  # noqa: S314


def _read_vendordata(path: str | None) -> bytes:
    if path is not None:
        with open(path, 'rb') as file:
            return file.read(_MAX_BYTES)
    for device in filter(os.path.exists, _CONFIG_DRIVES):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(('mount', '-o', 'ro', device, folder), check=True,
                           timeout=_TIMEOUT_S)
            try:
                with open(f'{folder}/{_PATH}', 'rb') as file:
                    return file.read(_MAX_BYTES)
            finally:
                subprocess.run(('umount', folder), check=True,
                               timeout=_TIMEOUT_S)
    with contextlib.closing(http.client.HTTPConnection(
            _METADATA, timeout=_TIMEOUT_S)) as service:
        service.request('GET', f'/{_PATH}')
        answer = service.getresponse()
        if answer.status != http.client.OK:
            raise OSError(f'http://{_METADATA}/{_PATH} answers with '
                          f'{answer.status}')
        return answer.read(_MAX_BYTES)


def main() -> int:
    """Run the program; return the exit status."""
    parser = argparse.ArgumentParser(PROGRAM, description='Install the files '
                                     'of the devices of this guest.')
    parser.add_argument('--vendordata', metavar='FILE', help='a copy of '
                        'vendor_data2.json (default: the config drive, or the '
                        'metadata service)')
    parser.add_argument('--root', default='/', help='the root of the guest')
    args = parser.parse_args()
    try:
        plain = json.loads(_read_vendordata(args.vendordata))
        if not plain.get(places.ENTRY):
            raise OSError(f'the vendordata has no entry {places.ENTRY!r}')
        found = places.arrange(plain[places.ENTRY], functions.read(args.root))
        kept = install(make_files(found, read_hwloc(args.root)), args.root)
    except (OSError, http.client.HTTPException,
            subprocess.SubprocessError) as exc:
        return _complain(2, [str(exc)])
    except (LookupError, TypeError, ValueError, AttributeError,
            RecursionError, ElementTree.ParseError) as exc:
        return _complain(2, [f'the vendordata cannot be understood ({exc!r})'])
    return _complain(1 if kept else 0, [*found.notes, *(
        f'{path} is not of this program and was kept' for path in kept)])


def _complain(status: int, lines: Iterable[str]) -> int:
    for line in lines:
        print(f'{PROGRAM}: {" ".join(line.split())}', file=sys.stderr)
    return status


if __name__ == '__main__':
    sys.exit(main())
