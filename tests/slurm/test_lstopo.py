# SPDX-License-Identifier: Apache-2.0

"""hwloc reads what the program for guests installs."""

import pathlib
import shutil
import subprocess

from hpcvirt import topology
from tests.integration.contrib.guest_image import test_pack_topology


class LstopoTest(test_pack_topology.PackedProgram):
    def test_hwloc_finds_the_devices_on_their_cells(self):
        """Without the file, lstopo has all of them on no cell."""
        path = str(pathlib.Path(shutil.which('lstopo-no-graphics')).parent)
        self.assertEqual((0, ''), self.run_program(path))
        self.assertEqual(test_pack_topology.FILES, self.files())
        self.assertIn('HWLOC_XMLFILE=/etc/hpcvirt/hwloc.xml',
                      self.read('etc/profile.d/hpcvirt-topology.sh'))
        for source, cells in ((self.root / 'etc/hpcvirt/hwloc.xml',
                               (1, 1, 0, 1)), (self.root, (None,) * 4)):
            done = subprocess.run(
                ('lstopo-no-graphics', '-i', source, '--whole-io', '--of',
                 'xml'), check=True, capture_output=True)
            file = self.root / 'read.xml'
            file.write_bytes(done.stdout)
            self.assertEqual(cells, tuple(
                device.cell for device in topology.read(str(file)).devices))
        self.assertEqual((0, ''), self.run_program(path))
