# SPDX-License-Identifier: Apache-2.0

"""An audit by a user who may not read everything."""

import itertools
import multiprocessing
import os
import pathlib
import tempfile
import unittest

from hpcvirt.audit import audit
from hpcvirt.audit import finding
from hpcvirt.audit.reading import host
from hpcvirt.audit.reading import nova
from tests.builders import audited
from tests.builders import sysfs_files

NOBODY = 65534


def findings(root, queue):
    """Audit a copy without the rights of root."""
    if not os.geteuid():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    result = audit.audit(host.read(root), audited.PROFILE)
    queue.put([(item.severity, item.found, item.change)
               for item in result.findings])


def try_to_read(path, groups, pipe):
    os.setgroups(list(groups))
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    pipe.send(os.access(path, os.R_OK))


class PermissionsTest(unittest.TestCase):
    def audit_without(self, name):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # noqa: S103
            root = pathlib.Path(folder)
            sysfs_files.lay_out(audited.tree(), root)
            (root / name).chmod(0)
            context = multiprocessing.get_context('fork')
            queue = context.SimpleQueue()
            child = context.Process(target=findings, args=(root, queue))
            child.start()
            found = queue.get()
            child.join()
            (root / name).chmod(0o755)
        return found

    def test_what_may_not_be_read_is_unknown(self):
        for name in (audited.NOVA, 'etc/kolla/nova-compute', 'proc/irq',
                     'sys/kernel/mm/ksm/run', 'proc/meminfo',
                     'etc/udev/rules.d', 'sys/module/kvm_intel/parameters'):
            found = self.audit_without(name)
            self.assertTrue(found, name)
            for severity, text, change in found:
                self.assertEqual(finding.Severity.UNKNOWN, severity, text)
                self.assertIn('Permission denied', text)
                self.assertEqual(('# run the audit as root',), change)

    @unittest.skipIf(os.geteuid(), 'only root can become another user')
    def test_what_nova_may_read_is_what_the_kernel_lets_it_read(self):
        groups = {NOBODY, 7}
        context = multiprocessing.get_context('fork')
        seen = set()
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # noqa: S103
            path = pathlib.Path(folder, 'nova', 'conf')
            path.parent.mkdir()
            path.touch()
            for user, group, mode, of_folder in itertools.product(
                    (0, NOBODY), (0, 7, NOBODY), (0, 0o004, 0o040, 0o400),
                    (0o700, 0o710, 0o701, 0o755)):
                os.chown(path, user, group)
                os.chown(path.parent, 0, group)
                path.chmod(mode)
                path.parent.chmod(of_folder)
                reader, writer = context.Pipe(duplex=False)
                child = context.Process(
                    target=try_to_read, args=(path, groups, writer))
                child.start()
                truth = reader.recv()
                child.join()
                seen.add(truth)
                self.assertEqual(truth, nova.may_read(
                    str(path), NOBODY, groups), path.stat())
        self.assertEqual({True, False}, seen)
