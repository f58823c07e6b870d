# SPDX-License-Identifier: Apache-2.0

"""What the check of a booted system refuses."""

import unittest

from tests.system.emulated_host import check
from tests.system.emulated_host import distribution

PARAMETERS = 'hugepagesz=2M hugepages=0:384,1:400 nohz_full=1,3'
NODE = '/sys/devices/system/node/node'
FILES = {
    '/sys/bus/pci/drivers/vmxnet3/0000:01:00.0/net/enp1s0/ring': '128',
    '/sys/bus/pci/drivers/nvme/0000:22:00.0/sriov_numvfs': '4',
    '/sys/bus/pci/drivers/nvme/0000:42:00.0/sriov_numvfs': '4',
    f'{NODE}0/hugepages/hugepages-2048kB/nr_hugepages': '384',
    f'{NODE}1/hugepages/hugepages-2048kB/nr_hugepages': '400',
    f'{NODE}0/hugepages/hugepages-1048576kB/nr_hugepages': '0',
    f'{NODE}1/hugepages/hugepages-1048576kB/nr_hugepages': '0'}


def judge(*codes, files=(), programs=(('systemd', '0,2'),)):
    found = [{'code': code, 'severity': 'warning', 'found': 'x'}
             for code in codes]
    check._judge_state(distribution.State(
        {**FILES, **dict(files)}, list(programs), {'findings': found}),
        PARAMETERS)


class JudgeStateTest(unittest.TestCase):
    def test_a_host_as_configured_passes(self):
        judge()
        judge('iommu')

    def test_the_memory_that_the_host_keeps_is_judged(self):
        with self.assertRaisesRegex(check.CheckFailed, 'nova-memory: x'):
            judge('iommu', 'nova-memory')

    def test_what_is_not_as_configured_fails(self):
        for more in (
                {'programs': [('a', '0,2'), ('b', '0-3')]}, {'programs': []},
                *({'files': {path: '1'}} for path in FILES)):
            with self.assertRaises(check.CheckFailed):
                judge(**more)
