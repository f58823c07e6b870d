# SPDX-License-Identifier: Apache-2.0

"""The output of other tools is named, and a topology is never taken for it."""

import time
import unittest

from hpcvirt import exception
from hpcvirt.topology import collection
from hpcvirt.topology import document
from hpcvirt.topology import pasted
from tests.builders import hosts

NUMACTL = """\
available: 2 nodes (0-1)
node 0 cpus: 0 1 2 3
node 0 size: 128655 MB
node 0 free: 125333 MB
node 1 cpus: 4 5 6 7
node 1 size: 129019 MB
node 1 free: 126107 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""
LSCPU = """\
Architecture:            x86_64
  CPU op-mode(s):        32-bit, 64-bit
CPU(s):                  8
  On-line CPU(s) list:   0-7
Vendor ID:               GenuineIntel
NUMA:
  NUMA node(s):          2
  NUMA node0 CPU(s):     0-3
"""
TOPO = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\t0-23\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t24-47\t1\t\tN/A

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect
"""
LSTOPO = """\
Machine (252GB total)
  Package L#0
    NUMANode L#0 (P#0 126GB)
    L3 L#0 (30MB)
      L2 L#0 (1024KB) + L1d L#0 (32KB) + L1i L#0 (32KB) + Core L#0
        PU L#0 (P#0)
"""
OUTPUTS = (
    ('numactl -H', NUMACTL),
    ('numactl -H', 'available: 1 nodes (0)\nnode 0 cpus: 0 1\n'),
    ('numactl --show',
     ('policy: default\npreferred node: current\n'
      'physcpubind: 0 1 2 3\ncpubind: 0\n')),
    ('lscpu', LSCPU),
    # German, from util-linux 2.36.
    ('lscpu',
     ('Architektur:                     x86_64\n'
      'CPU(s):                          8\n')),
    ('lscpu --parse',
     ('# The following is the parsable format, which can be '
      'fed to other\n# programs.\n0,0,0,0,,0,0,0,0\n')),
    ('lscpu --extended',
     ('CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n'
      '  0    0      0    0 0:0:0:0          yes\n')),
    ('lscpu --json', '{\n   "lscpu": [\n      {\n'),
    ('nvidia-smi topo -m', TOPO),
    ('nvidia-smi topo -m',
     ('\tGPU0\tCPU Affinity\tNUMA Affinity\n'
      'GPU0\t X \t0-23\tN/A\n')),
    ('nvidia-smi',
     ('Sun Nov 22 10:00:00 2026       \n+-----+\n'
      '| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15 |\n')),
    ('lstopo', LSTOPO),
    ('lstopo', 'Machine (P#0 total=263900KB DMIProductName=X)\n'),
    ('lstopo', '┌──────────────────┐\n│ Machine (252GB total) │\n'),
    ('lstopo --of synthetic',
     ('Package:2 NUMANode:1(memory=135087689728) '
      'L3Cache:1(size=31457280) L2Cache:12\n')),
    ('lspci', '00:00.0 Host bridge: Intel Corporation Device 09a2\n'),
    ('cat /proc/cpuinfo', 'processor\t: 0\nvendor_id\t: GenuineIntel\n'),
    ('virsh nodeinfo',
     ('CPU model:           x86_64\n'
      'CPU(s):              8\nNUMA cell(s):        2\n')),
)


class PastedTest(unittest.TestCase):
    def refuse(self, data):
        with self.assertRaises(exception.InvalidInput) as caught:
            collection.read_document(document.TopologyDocument('pasted', data))
        return str(caught.exception)

    def test_the_output_is_named_with_what_to_give_instead(self):
        for tool, text in OUTPUTS:
            with self.subTest(tool=tool, text=text[:20]):
                message = self.refuse(text.encode())
                self.assertTrue(message.startswith(
                    f'pasted: is the output of {tool}, '), message)
                self.assertIn('lstopo --of xml', message)
                self.assertIn('user/read-topology', message)
                self.assertEqual(1, len(message.splitlines()))

    def test_a_prompt_may_precede_it(self):
        for prompt in ('$ numactl -H', '[root@node7 ~]# numactl -H',
                       'root@node7:~# numactl -H'):
            self.assertIn('numactl -H, ', self.refuse(
                f'{prompt}\n{NUMACTL}'.encode()))

    def test_other_line_ends_and_encodings_are_read(self):
        for data in (NUMACTL.replace('\n', '\r\n').encode(),
                     NUMACTL.encode('utf-16'), NUMACTL.encode('utf-8-sig')):
            self.assertEqual('numactl -H', pasted.find_tool(data))

    def test_topologies_and_other_text_are_no_output(self):
        for path in hosts.TOPOLOGIES.glob('*.json'):
            self.assertIsNone(pasted.find_tool(path.read_bytes()), path)
        for data in (b'hello', b'', b'\xff' * 99, b'<topology version="2.0">',
                     b'{"schema_version": 1}', b'a: 1\n'):
            self.assertIsNone(pasted.find_tool(data), data)

    def test_hostile_text_takes_no_time(self):
        begin = time.process_time()
        for text in (' ' * 10 ** 6, 'GPU0 ' * 10 ** 5, '\t' * 10 ** 6 + 'x',
                     '=' * 10 ** 6, '|' * 10 ** 6):
            pasted.find_tool(text.encode())
        self.assertLess(time.process_time() - begin, 2)
