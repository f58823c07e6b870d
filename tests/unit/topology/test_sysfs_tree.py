# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import os
import socket

from hpcvirt import exception
from hpcvirt import topology
from tests.unit.topology import sysfs_case
from tests.unit.topology import sysfs_files

CPU = sysfs_case.CPU
NODE = sysfs_case.NODE


class TreeTest(sysfs_case.Case):
    def test_the_sys_directory_itself_may_be_named(self) -> None:
        self.read()
        self.assertEqual(self.host.cells,
                         topology.read(str(self.root / 'sys')).cells)

    def test_proc_is_found_next_to_the_sys_directory(self) -> None:
        self.drop(NODE, 'pci')
        self.files['proc/meminfo'] = 'MemTotal:        4194304 kB'
        self.read()
        self.assertEqual(
            4096, topology.read(str(self.root / 'sys')).cells[0].memory_mib)

    def test_a_copy_is_named_after_its_host_or_its_directory(self) -> None:
        self.assertEqual('box', self.read().name)
        (self.root / 'etc').mkdir()
        (self.root / 'etc' / 'hostname').write_text('node7\n')
        self.assertEqual('node7', topology.read(str(self.root)).name)

    def test_a_link_out_of_the_copy_is_refused(self) -> None:
        self.files[f'{CPU}/online'] = sysfs_files.Link('/etc/passwd')
        self.refused('cpu/online: is a link that leads out of the copy')

    def test_a_circular_link_is_refused(self) -> None:
        self.files[f'{CPU}/online'] = sysfs_files.Link('online')
        self.refused('cpu/online: ')

    def test_a_fifo_is_refused_without_blocking(self) -> None:
        sysfs_files.lay_out(self.files, self.root)
        (self.root / CPU / 'online').unlink()
        os.mkfifo(self.root / CPU / 'online')
        with self.assertRaisesRegex(exception.InvalidInput, 'is a FIFO'):
            topology.read(str(self.root))

    def test_a_file_that_is_not_text_is_refused(self) -> None:
        sysfs_files.lay_out(self.files, self.root)
        (self.root / CPU / 'online').write_bytes(b'\xff\xfe')
        with self.assertRaisesRegex(exception.InvalidInput, 'is not text'):
            topology.read(str(self.root))

    def test_the_running_machine_is_read_if_it_has_a_sysfs(self) -> None:
        # Some containers hide parts of it: the error then names a part.
        try:
            read = topology.read()
        except exception.InvalidInput as exc:
            self.assertIn('/', str(exc))
        else:
            self.assertEqual(socket.gethostname(), read.name)
            # Memory is not compared: a virtual machine may get more meanwhile.
            self.assertEqual(read.cpus, topology.read('/sys').cpus)
