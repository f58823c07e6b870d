# SPDX-License-Identifier: Apache-2.0

"""The program for guests, packed as for an image."""

import ast
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from hpcvirt.instance_topology import description
from hpcvirt.instance_topology import places
from tests.builders import folders
from tests.builders import guest_files
from tests.builders import nccl_reader
from tests.builders import wired

ROOT = pathlib.Path(__file__).parents[4]
PACK = ROOT / 'contrib/guest_image/pack_topology.py'

CELLS = [description.InstanceCell(1, (frozenset((0,)), frozenset((1,)))),
         description.InstanceCell(0, (frozenset((2,)), frozenset((3,))))]
#: The first two GPUs and the NIC of cell 0, and a GPU of cell 1.
HELD = [description.HeldDevice(address, f'0000:0{number + 1}:00.0')
        for number, address in enumerate((*wired.GPUS[:3], '0000:1a:00.0'))]
SEEN = [places.Function('0000:01:00.0', '10de', '2330', '0x030200', None, (),
                        '/dev/nvidia0'),
        places.Function('0000:02:00.0', '10de', '2330', '0x030200', None, (),
                        '/dev/nvidia1'),
        places.Function('0000:03:00.0', '10de', '2330', '0x030200', None, (),
                        '/dev/nvidia2'),
        places.Function('0000:04:00.0', '15b3', '1021', '0x020700', None,
                        ('mlx5_0:1',))]
FILES = ['etc/hpcvirt/gres.conf', 'etc/hpcvirt/hwloc.xml',
         'etc/hpcvirt/nccl-topology.xml', 'etc/hpcvirt/ucx-net-devices',
         'etc/nccl.conf', 'etc/profile.d/hpcvirt-topology.sh']


class PackedProgram(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory()), 'guest-topology')
        subprocess.run((sys.executable, PACK, cls.program), check=True)

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(folders.make(self), 'guest')
        guest_files.write(self.root, SEEN)
        guest_files.write_cpus(self.root, ((0, 1), (2, 3)))
        self.vendordata = self.root.with_name('vendor_data2.json')
        self.write(description.describe(wired.host(), CELLS, HELD))

    def write(self, made):
        self.vendordata.write_text(json.dumps({'static': {}, 'hpcvirt': made}))

    def run_program(self, path='/nowhere'):
        """Run it.

        :param path: where lstopo may be
        """
        done = subprocess.run(
            (sys.executable, '-I', self.program, '--vendordata',
             self.vendordata, '--root', self.root), capture_output=True,
            text=True, env={'PATH': path}, timeout=60, check=False)
        self.assertEqual('', done.stdout)
        self.assertNotIn('Traceback', done.stderr)
        return done.returncode, done.stderr

    def read(self, name):
        return (self.root / name).read_text()

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in
                      (self.root / 'etc').rglob('*') if path.is_file())


class GuestTopologyTest(PackedProgram):
    def test_it_installs_files_once(self):
        self.assertEqual((0, ''), self.run_program())
        self.assertEqual([name for name in FILES if 'hwloc' not in name
                          and 'profile' not in name], self.files())
        self.assertEqual('NCCL_TOPO_FILE=/etc/hpcvirt/nccl-topology.xml',
                         self.read('etc/nccl.conf').splitlines()[1])
        tree = nccl_reader.read(self.read('etc/hpcvirt/nccl-topology.xml'))
        self.assertEqual(
            [['0000:03:00.0'],
             ['0000:01:00.0', '0000:02:00.0', '0000:04:00.0']],
            [[each.attributes['busid'] for pci in cpu.all('pci')
              for each in pci.all('pci') or [pci]]
             for cpu in tree.all('cpu')])
        self.assertIn('Name=gpu File=/dev/nvidia0 Cores=2,3 Links=-1,18,6\n',
                      self.read('etc/hpcvirt/gres.conf'))
        self.assertIn('gpu 0000:01:00.0 mlx5_0:1\n',
                      self.read('etc/hpcvirt/ucx-net-devices'))
        before = {name: (self.root / name).stat().st_mtime_ns
                  for name in self.files()}
        self.assertEqual((0, ''), self.run_program())
        self.assertEqual(before, {
            name: (self.root / name).stat().st_mtime_ns
            for name in self.files()})

    def test_files_of_others_stay(self):
        for content in ('NCCL_DEBUG=INFO\n', ''):
            (self.root / 'etc').mkdir(exist_ok=True)
            (self.root / 'etc/nccl.conf').write_text(content)
            status, said = self.run_program()
            self.assertEqual(1, status)
            self.assertIn('nccl.conf is not of this program and was kept',
                          said)
            self.assertEqual(content, self.read('etc/nccl.conf'))
        # The owner of the file has followed.
        (self.root / 'etc/nccl.conf').write_text(
            'NCCL_DEBUG=INFO\nNCCL_TOPO_FILE=/etc/hpcvirt/nccl-topology.xml\n')
        self.assertEqual((0, ''), self.run_program())

    def test_own_files_are_removed_with_the_devices(self):
        self.run_program()
        (self.root / 'etc/hpcvirt/notes').write_text('mine')
        self.write(description.describe(wired.host(), CELLS, []))
        self.assertEqual((0, ''), self.run_program())
        self.assertEqual(['etc/hpcvirt/notes'], self.files())

    def test_errors_are_one_line(self):
        for said, content in (
                ("has no entry 'hpcvirt'", '{"static": {}}'),
                ('cannot be understood', '{'), ('cannot be understood', '[]'),
                ('cannot be understood', '{"hpcvirt": 1}'),
                ('cannot be understood', '[' * 100_000),
                ('schema_version 2, not 1',
                 '{"hpcvirt": {"schema_version": 2}}'),
                ("KeyError('devices')", '{"hpcvirt": {"schema_version": 1}}')):
            self.vendordata.write_text(content)
            status, told = self.run_program()
            self.assertEqual((2, 1), (status, told.count('\n')), told)
            self.assertIn(said, told)
            self.assertFalse((self.root / 'etc').exists())
        self.vendordata.unlink()
        self.assertEqual(2, self.run_program()[0])

    def test_unfit_descriptions_are_refused(self):
        good = description.describe(wired.host(), CELLS, HELD)
        for key, value in (('devices', [1]), ('cells', [[['x']]]),
                           ('switches', []), ('links', [{}]), ('links', 7),
                           ('cells', []), ('devices', None)):
            with self.subTest(f'{key}={value}'):
                self.write({**good, key: value})
                status, told = self.run_program()
                self.assertEqual((2, 1), (status, told.count('\n')), told)
        self.assertFalse((self.root / 'etc').exists())

    def test_it_needs_no_newer_python(self):
        for path in (ROOT / 'contrib/guest_image/topology/__main__.py',
                     *(ROOT / 'hpcvirt/instance_topology').glob('*.py')):
            if path.name != 'description.py':
                ast.parse(path.read_text(), feature_version=(3, 9))
