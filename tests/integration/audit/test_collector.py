# SPDX-License-Identifier: Apache-2.0

"""The script that captures a host, in the shells and with the tools there."""

import contextlib
import dataclasses
import os
import pathlib
import random
import re
import shutil
import subprocess
import unittest

from hpcvirt import config_file
from hpcvirt import topology
from hpcvirt.audit import audit
from hpcvirt.audit import collector
from hpcvirt.audit import fact
from hpcvirt.audit.reading import host
from hpcvirt.audit.reading import nova
from hpcvirt.flavors import kernel_settings
from hpcvirt.topology import capture
from hpcvirt.topology import tool_output
from tests.builders import audited
from tests.builders import folders
from tests.builders import machines
from tests.builders import strangers
from tests.builders import sysfs_files
from tests.builders import tool_outputs
from tests.builders import writers

#: Programs describe this host, and not a copy of another one.
UNPRINTED = {f'{tool_output.FOLDER}/lspci': ''}

SECRET = 'what no capture may have'.replace(' ', '')


def shells():
    """List the shells and tools that are installed here, each once."""
    found = [['sh']]
    dash = shutil.which('dash')
    if dash and not os.path.samefile(dash, shutil.which('sh')):
        found.append(['dash'])
    if shutil.which('busybox'):
        found.append(['busybox', 'sh'])
    return found


class CollectorTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.folder.chmod(0o755)
        self.script = collector.make_script().encode()
        self.captured = self.folder / 'captured.tar'
        self.scratch = self.folder / 'scratch'
        self.scratch.mkdir()
        self.scratch.chmod(0o777)

    def lay_out(self, *more):
        root = self.folder / 'root'
        files = {name: text for part in more for name, text in part.items()}
        files |= UNPRINTED
        sysfs_files.lay_out(add_uevents(files), root)
        return root

    def run_script(self, root, shell=('sh',), env=os.environ, **more):
        """Capture a host; nothing may be left behind."""
        with open(self.captured, 'wb') as out:
            done = subprocess.run(
                [*shell, '-s', str(root)], input=self.script, stdout=out,
                stderr=subprocess.PIPE, timeout=300, check=False,
                env={**env, 'TMPDIR': str(self.scratch)}, **more)
        self.assertEqual([], list(self.scratch.iterdir()))
        return done

    def read(self, root, *words, **more):
        """Capture a host, and read the facts."""
        done = self.run_script(root, *words, **more)
        self.assertEqual(0, done.returncode, done.stderr)
        with capture.open_root(str(self.captured)) as unpacked:
            found = host.read(unpacked)
            audited.values(found)
            return found, done.stderr.decode()

    def busybox(self):
        """Make a folder with the tools of busybox and no others."""
        path = shutil.which('busybox')
        if path is None:
            self.skipTest('busybox is not installed')
        tools = self.folder / 'tools'
        tools.mkdir()
        subprocess.run([path, '--install', '-s', tools], check=True)
        return {'PATH': str(tools)}

    def test_a_capture_has_the_words_of_rules_and_hooks(self):
        card = '0000:41:00.0'
        root = self.lay_out(audited.tree(), sysfs_files.WHOLE, {
            'etc/udev/rules.d/70-hpcvirt-vfs.rules':
                kernel_settings.format_guid_rule(card, 2) + '\n',
            'etc/rc.local':
                'echo Follow >/sys/class/infiniband/x/device/sriov/0/policy',
            'etc/libvirt/hooks/qemu': f'fmpm -l # {SECRET}\n',
            'usr/share/nvidia/nvswitch/fabricmanager.cfg':
                'FABRIC_MODE=1\n# FABRIC_MODE=0\n'})
        for shell in shells():
            found = self.read(root, shell)[0].hardware
            self.assertEqual({card, '*'}, {*found.guids})
            self.assertEqual({card, '*'}, {*found.creators})
            self.assertEqual((('/etc/libvirt/hooks/qemu',), 1),
                             (found.activators, found.fabric_mode))
            self.assertNotIn(SECRET.encode(), self.captured.read_bytes())

    def test_a_capture_has_all_facts(self):
        for number, tree in enumerate((
                audited.tree(), *map(sysfs_files.emulated, (
                    'intel-2s-tuned', 'amd-2s')))):
            root = self.folder / str(number)
            named = {name.split('/')[1] for name in tree
                     if name.endswith('/comm')}
            sysfs_files.lay_out(add_uevents({
                **audited.process(9, 'nova-compute', '0'),
                **{file: text for number in named for file, text in
                   audited.process(number, 'x', '0').items()},
                **tree, **sysfs_files.WHOLE, **UNPRINTED,
                'proc/9/task/9/status': 'Cpus_allowed_list:\t0'}), root)
            expected = audited.values(host.read(root))
            for shell in shells():
                found, said = self.read(root, shell)
                self.assertEqual(expected, audited.values(found), shell)
                self.assertEqual('', said)

    def test_the_tools_of_busybox_do(self):
        root = self.lay_out(audited.tree())
        found, said = self.read(root, env=self.busybox())
        self.assertEqual((audited.values(host.read(root)), ''),
                         (audited.values(found), said))

    def test_periodic_this_machine(self):
        found, said = self.read('/')
        self.assertIsInstance(found.memory.total_mib, int)
        result = audit.audit(found)
        self.assertEqual([], [item.found for item in result.findings
                              if 'was not captured' in item.found])
        if not os.geteuid():
            self.assertEqual(('', host.read().cpu.wake_limit_us),
                             (said, found.cpu.wake_limit_us))

    def test_what_is_secret_stays_on_the_host(self):
        root = self.lay_out(audited.tree(), {
            audited.NOVA: (
                f'[DEFAULT]\ntransport_url = rabbit://nova:{SECRET}@mq\n'
                f'# my {SECRET}\n[database]\nconnection: {SECRET}\n'
                f'  {SECRET}\n[compute]\ncpu_dedicated_set = 2-7,\n   9\n'
                f'[{SECRET} ]\na = {SECRET}\n'),
            'etc/nova/nova.conf': f'[keystone]\npassword={SECRET}',
            'etc/netplan/01.yaml': f'password: {SECRET}\nsriov: 1',
            'etc/NetworkManager/system-connections/my wifi "1\'s".nm':
                f'[sriov]\ntotal-vfs=2\n[wifi]\npsk={SECRET}',
            'etc/systemd/system/a.service': f'Environment=KEY={SECRET}',
            'etc/shadow': SECRET, 'proc/9/environ': SECRET,
            'proc/9/cmdline': f'x\0--password={SECRET}',
            'proc/1/environ': SECRET, 'sys/class/dmi/id/product_uuid': SECRET,
            'proc/cmdline': (
                f'quiet rd.iscsi.password={SECRET} a.secret="{SECRET} '
                f'{SECRET}" netroot=iscsi:me:{SECRET}@1.2.3.4 isolcpus=3')})
        found, _ = self.read(root)
        with capture.open_root(str(self.captured)) as unpacked:
            for path in unpacked.rglob('*'):
                if path.is_file():
                    self.assertNotIn(SECRET, path.read_text(), path)
        self.assertEqual('2-7,\n9', found.nova.get(
            'compute', 'cpu_dedicated_set'))

    def test_kernel_parameters_stay_without_the_secrets_in_them(self):
        words = ('a.password="x y"', 'n=i:m:p@1',
                 'rootpwd="$1$x$y"', 'inst.ks=https://h/ks?token=SECRET',
                 'rootflags=username=x,password=SECRET',
                 'cifsroot=//h/s,user=u,pass=SECRET',
                 '"a.b=my secret SECRET"', 'url=HTTPS://h/SECRET',
                 'wifi.PSK=SECRET', 'systemd.set_credential=a:SECRET',
                 'rd.luks.key=/SECRET')
        root = self.lay_out(audited.tree(), {'proc/cmdline': (
            f'ro {" ".join(words)} isolcpus=3 iommu.passthrough=1 a="x y" '
            'b.secret="to the end SECRET')})
        hidden = (f'{word.strip(chr(34)).partition("=")[0]}=hidden'
                  for word in words)
        expected = ('ro', *hidden, 'isolcpus=3', 'iommu.passthrough=1',
                    'a=x y', 'b.secret=hidden')
        for more in ({}, {'env': self.busybox()}):
            self.assertEqual(expected, self.read(
                root, **more)[0].kernel.command_line)

    def test_files_that_nova_compute_names_stay_in_the_copy(self):
        """The user nova must not make root write into other files."""
        victim = self.folder / 'victim'
        victim.write_text('[compute]\nx = 1\n')
        victim.chmod(0o600)
        root = self.lay_out(audited.tree(), {
            **audited.process(7, 'nova-compute', '0')})
        outside = f'etc/{"../" * 20}{str(victim)[1:]}'
        (root / 'proc/7/cmdline').write_text('\0'.join((
            'python3', 'nova-compute', '--config-file', outside,
            f'--config-file=../../../{outside}', '--config-dir=..')))
        self.read(root)
        self.assertEqual('[compute]\nx = 1\n', victim.read_text())

    def test_links_to_files_of_the_kernel_are_not_read(self):
        """Some have no end: /proc/kmsg, trace_pipe."""
        folder = 'etc/nova/nova.conf.d'
        root = self.lay_out({name: text for name, text in audited.tree(
            ).items() if name != audited.NOVA}, {f'{folder}/b.conf': '[x]'})
        (root / folder / 'a.conf').symlink_to('/proc/version')
        found, said = self.read(root)
        self.assertIn('could not be read', said)
        self.assertEqual(fact.UnknownFact(
            f'/{folder}', 'could not be read when it was captured'),
            audited.values(found)['nova'])

    def test_what_nova_refuses_is_refused_in_the_capture(self):
        self.assert_refused_likewise(60)

    def test_periodic_what_nova_refuses_of_many_files(self):
        self.assert_refused_likewise(1000)

    def assert_refused_likewise(self, files):
        dice = random.Random(7)
        names = sorted(name for _, name in nova.OPTIONS)
        parts = ('[DEFAULT]', '[compute]', '[Libvirt]', '[', '[]', 'word', '',
                 ' ', '\t', '# x', ';y', ' x', '\tx = 1', 'secret = x',
                 'secret: y', '= x', ': x', ' [compute]', 'cpu = 1',
                 '[a b]', '[]]', '[x]y', '[x] ',
                 *(f'{name} = {name}' for name in names),
                 *(f'{name}\t:"1"' for name in names))
        texts = [''.join(f'{dice.choice(parts)}{dice.choice(ends)}'
                         for _ in range(dice.randrange(1, 9)))
                 for ends in (('\n',), ('\n', ' \n', '\r\n'))
                 for _ in range(files // 2)]
        folder = self.lay_out(audited.tree()) / 'etc/nova/nova.conf.d'
        folder.mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / f'{number}.conf').write_text(text, newline='')
        refused = 0
        for more in ({}, {'env': self.busybox()}):
            self.run_script(self.folder / 'root', **more)
            with capture.open_root(str(self.captured)) as root:
                for number, text in enumerate(texts):
                    found = parse((root / f'etc/nova/nova.conf.d/{number}.conf'
                                   ).read_text())
                    expected = parse(text.replace('\r', ''))
                    refused += expected is None
                    self.assertEqual(expected, found, text)
        self.assertGreater(refused, files // 6)

    def test_files_that_nova_compute_names(self):
        root = self.lay_out({name: text for name, text in
                             audited.tree().items() if name != audited.NOVA}, {
            **audited.process(7, 'nova-compute', '0'),
            'proc/7/cmdline': ('/usr/bin/python3\0/usr/bin/nova-compute\0'
                               f'--x={SECRET}\0--config-file\0/etc/own.conf\0'
                               '--config-dir=/etc/own.d'),
            'etc/own.conf': f'[compute]\ncpu_dedicated_set = 1\nx={SECRET}',
            'etc/own.d/2.conf': '[compute]\ncpu_shared_set = 2'})
        status = root / 'proc/7/status'
        text = status.read_text()
        for user, expected in ((0, '1'), (strangers.SOMEBODY, None)):
            ids = '\t'.join([str(user)] * 4)
            status.write_text(f'{text}\nUid:\t{ids}\n')
            found, _ = self.read(root)
            self.assertEqual(expected, found.nova and found.nova.get(
                'compute', 'cpu_dedicated_set'))
            if expected:
                self.assertEqual('2', found.nova.get(
                    'compute', 'cpu_shared_set'))
                self.assertEqual(host.read(root).nova, found.nova)
            self.assertNotIn(SECRET.encode(), self.captured.read_bytes())

    @unittest.skipIf(os.geteuid(), 'only root can become another user')
    def test_what_an_ordinary_user_cannot_read_is_unknown(self):
        root = self.lay_out(audited.tree())
        user = {'user': strangers.SOMEBODY, 'group': strangers.SOMEBODY,
                'extra_groups': []}
        found, said = self.read(root, **user)
        self.assertEqual((audited.values(host.read(root)), ''),
                         (audited.values(found), said))
        for name in (audited.NOVA, 'proc/irq'):
            self.assert_unknown_if_unreadable(root, name, user)

    @unittest.skipIf(os.geteuid(), 'only root can become another user')
    def test_periodic_more_that_an_ordinary_user_cannot_read(self):
        root = self.lay_out(audited.tree())
        # A file or a folder of each kind that the script takes.
        for name in ('sys/kernel/mm/ksm/run', 'proc/meminfo',
                     'sys/module/kvm_intel/parameters',
                     'etc/kolla/nova-compute', 'proc/cmdline',
                     'etc/udev/rules.d'):
            self.assert_unknown_if_unreadable(root, name, {
                'user': strangers.SOMEBODY, 'group': strangers.SOMEBODY,
                'extra_groups': []})

    def assert_unknown_if_unreadable(self, root, name, user):
        with unreadable(root / name):
            found, said = self.read(root, **user)
        self.assertIn('could not be read; capture as root', said, name)
        result = audit.audit(found, audited.PROFILE)
        self.assertEqual({'# capture the host as root'}, {
            line for item in result.findings for line in item.change
            if item.severity == 'unknown'
            and '(lspci)' not in item.found}, name)

    def test_a_process_that_ended_is_no_process(self):
        root = self.lay_out(audited.tree(), {'proc/9/comm': 'gone'})
        found, _ = self.read(root)
        self.assertRaises(fact.NotKnown, getattr, host.read(root).kernel,
                          'running')
        self.assertIsInstance(found.kernel.running, frozenset)

    def test_what_is_no_file_is_not_read(self):
        root = self.lay_out(audited.tree())
        os.mkfifo(root / 'etc/udev/rules.d/1.rules')
        os.mkfifo(root / 'etc/default/irqbalance2')
        (root / 'etc/netplan').mkdir()
        (root / 'etc/netplan/x.yaml').symlink_to('/dev/zero')
        self.read(root)

    def test_a_file_that_is_exchanged_for_a_pipe_is_given_up(self):
        root = self.lay_out(audited.tree())
        # Another user does this after the script has looked at the file.
        tool = self.folder / 'tools/readlink'
        tool.parent.mkdir()
        tool.write_text(
            f'#!/bin/sh\n{shutil.which("readlink")} "$@"\n'
            'case $2 in etc/kolla/*) rm "$2" && mkfifo "$2"; esac\n')
        tool.chmod(0o755)
        facts, said = self.read(root, env={
            'PATH': f'{tool.parent}:{os.environ["PATH"]}'})
        self.assertIn('1 files could not be read', said)
        self.assertEqual(fact.UnknownFact(
            '/etc/kolla/nova-compute/nova.conf',
            'could not be read when it was captured'),
            audited.values(facts)['nova'])

    def test_what_programs_print_is_kept_of_this_host_only(self):
        tools = self.folder / 'tools'
        tools.mkdir()
        topo = tool_outputs.TOOLS / 'dgx-1-topo.txt'
        for name, text in {
                'nvidia-smi': f'test "$*" = "topo -m" && cat {topo}',
                'lspci': f'test "$*" = -Dvvv && echo "serial {SECRET}" && '
                'echo "0000:00:01.0 PCI bridge"',
                'ethtool': 'exit 1', 'rocm-smi': 'echo GPU0; exit 1'}.items():
            (tools / name).write_text(f'#!/bin/sh\n{text}\n')
            (tools / name).chmod(0o755)
        env = {**os.environ, 'PATH': f'{tools}:{os.environ["PATH"]}'}
        expected = {'lspci': '0000:00:01.0 PCI bridge\n',
                    'nvidia-smi-topo': ''.join(
                        line for line in topo.read_text().splitlines(True)
                        if 'GPU' in line)}
        for root, outputs in (('/', expected),
                              (self.lay_out(audited.tree()), {})):
            self.read(root, env=env)
            with capture.open_root(str(self.captured)) as unpacked:
                folder = unpacked / tool_output.FOLDER
                self.assertEqual(outputs, {
                    path.name: path.read_text() for path in folder.glob('*')
                    if path.name != 'pci'})
                looked_for = capture.CaptureList(
                    (unpacked / capture.LIST).read_text())
                self.assertIsNone(looked_for.find_gap(f'{folder.name}/lspci'))
                self.assertEqual(
                    {path.name for path in pathlib.Path(
                        root, 'sys/bus/pci/devices').glob('*')
                     if path.is_symlink()},
                    {line.rpartition('/')[2] for line in
                     (folder / 'pci').read_text().splitlines()})

    def test_a_capture_has_the_wiring(self):
        self.assert_has_the_wiring(range(2))

    def test_periodic_a_capture_has_the_wiring_of_many_machines(self):
        self.assert_has_the_wiring(range(2, 40))

    def assert_has_the_wiring(self, seeds):
        for seed in seeds:
            invented, _ = machines.invent(seed)
            root = self.folder / f'{seed}'
            sysfs_files.lay_out({
                **writers.sysfs(invented), capture.LIST: 'sys/**'}, root)
            self.run_script(root)
            expected = topology.read(str(root)).wiring
            found = topology.read(str(self.captured)).wiring
            # A copy has no programs, of which lspci is one.
            self.assertEqual(expected and dataclasses.replace(
                expected, bridges=tuple(
                    dataclasses.replace(each, kind=None, acs=None)
                    for each in expected.bridges)), found)

    def test_errors_are_one_line(self):
        for words in (['/nowhere'], [str(self.folder)]):
            done = self.run_script(words[0])
            self.assertEqual(2, done.returncode)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
            self.assertEqual(b'', self.captured.read_bytes())


def add_uevents(files):
    """Add what the kernel always has beside and behind links."""
    return files | {
        f'sys/devices/virtual/iommu/{name.rpartition("/")[2]}/uevent': ''
        for name in files if re.fullmatch('sys/class/iommu/[^/]*', name)} | {
        f'{name.removesuffix("driver")}uevent':
            f'DRIVER={text.rpartition("/")[2]}'
        for name, text in files.items()
        if isinstance(text, sysfs_files.Link) and name.endswith('/driver')}


def parse(text):
    """Read the options that an audit reads; None if Nova refuses the file."""
    try:
        found = config_file.parse(text)
    except config_file.Malformed:
        return None
    names = {name for name, before in nova.OPTIONS.items()
             for name in (name, *before)}
    return {key: values for key, values in found.items() if key in names}


@contextlib.contextmanager
def unreadable(path: pathlib.Path):
    mode = path.stat().st_mode
    path.chmod(0)
    try:
        yield
    finally:
        path.chmod(mode)
