# SPDX-License-Identifier: Apache-2.0

"""Check that the wiring of hwloc's machines is as lstopo finds it.

Run it from the root of the repository, with lstopo installed and the folder
tests/hwloc of hwloc's sources::

    HPCVIRT_HWLOC_TESTS=FOLDER python3 -m unittest tests.system.hwloc
"""

import os
import pathlib
import re
import subprocess
import unittest

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.audit import collector
from hpcvirt.topology import document
from hpcvirt.topology.draw import diagram
from tests.builders import folders
from tests.system.emulated_host import wiring

COLLECTION = os.environ['HPCVIRT_HWLOC_TESTS']

#: Its only device has a class that a topology does not list.
WITHOUT_DEVICES = '40intel64-4n10c+pci-conflicts'

#: hwloc's developers added a device to these files, below a wrong bridge.
ADDED = {('32em64t-2n8c2t-pci-normalio', '0000:04:00.0'),
         ('32em64t-2n8c2t-pci-wholeio', '0000:04:00.0')}


class HwlocCollectionTest(unittest.TestCase):
    """Compares two readers of the same machines."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = folders.make(self)

    def test_sysfs_and_captures_agree_with_lstopo(self) -> None:
        with_bridges = []
        for archive in sorted(pathlib.Path(COLLECTION).glob(
                'linux/*.tar.bz2')):
            name = archive.name.removesuffix('.tar.bz2')
            root = self.folder / name
            root.mkdir()
            # Some have files of the kernel that only root may write.
            subprocess.run(['tar', '-xjf', archive, '-C', root,
                            '--strip-components=1'], check=False,
                           stderr=subprocess.DEVNULL)
            listed = root / 'sys/bus/pci/devices'
            classes = {path.parent.name: path.read_text()
                       for path in listed.glob('*/class')}
            if any(text.startswith('0x0604') for text in classes.values()):
                with_bridges.append(name)
                if name not in WITHOUT_DEVICES:
                    with self.subTest(name):
                        self.compare(root, {*classes})
        self.assertGreaterEqual(len(with_bridges), 4)

    def compare(self, root: pathlib.Path, listed: set[str]) -> None:
        xml = root.with_suffix('.xml')
        xml.write_bytes(subprocess.run(
            ['lstopo', '--of', 'xml', '--whole-io'], check=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, 'HWLOC_FSROOT': str(root),
                 'HWLOC_THISSYSTEM': '0',
                 'HWLOC_COMPONENTS': 'linux,stop'}).stdout)
        by_sysfs, by_hwloc = topology.read(str(root)), topology.read(str(xml))
        # A copy may lack the link to a bridge, which hwloc then leaves out,
        # although the bridge is in the path of the device.
        expected = {device: [bridge for bridge in path if bridge in listed]
                    for device, path in wiring.paths(by_sysfs).items()}
        self.assertEqual(expected, wiring.paths(by_hwloc))
        self.assertTrue(any(expected.values()))
        for address, speed in wiring.speeds(by_sysfs).items():
            self.assertAlmostEqual(speed, wiring.speeds(by_hwloc)[address], 2)
        capture = root.with_suffix('.tar')
        with open(capture, 'wb') as out:
            subprocess.run(['sh', '-s', root], stdout=out, check=True,
                           input=collector.make_script().encode())
        captured = topology.read(str(capture))
        self.assertEqual(wiring.paths(by_sysfs), wiring.paths(captured))
        self.assertEqual(wiring.speeds(by_sysfs), wiring.speeds(captured))
        self.assertTrue(diagram.draw(by_sysfs))

    def test_bridges_of_xml_have_the_bus_of_each_device_below(self) -> None:
        devices = 0
        for path in sorted(pathlib.Path(COLLECTION).glob('xml/*.xml')):
            root = document.xml_root(path.read_bytes(), path.name)
            buses = {element.get('pci_busid'): re.findall(
                '[0-9a-f]{2}(?=[-\\]])', element.get('bridge_pci', ''))
                for element in root.iterfind('.//object[@type="Bridge"]')}
            try:
                host = topology.read(str(path))
            except exception.InvalidInput:
                continue  # hwloc's tests have machines that cannot exist
            wired = wiring.paths(host) if host.wiring else {}
            for device, above in wired.items():
                if (path.stem, device) in ADDED:
                    continue
                for bridge in above:
                    first, last = buses[bridge]
                    self.assertTrue(first <= device.split(':')[1] <= last,
                                    f'{path.name}: {device} below {bridge}')
                    devices += 1
        self.assertGreater(devices, 20)
