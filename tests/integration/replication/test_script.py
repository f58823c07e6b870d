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

"""Run the scripts of cases with programs that record their arguments."""

import dataclasses
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.flavors import profile
from hpcvirt.replication import case_plan
from hpcvirt.replication import script
from hpcvirt.specs import codec
from tests import hosts

#: Replaces openstack, ssh and hpcvirt: records its arguments, prints an id
#: for everything that it creates, and fails where the test says so.
PROGRAM = """\
#!/bin/sh
number=$(grep -c '^==$' '{log}')
name=${{0##*/}}
printf '%s\\n' "$name" "$@" == >> '{log}'
case "$name $*" in {failing}) exit 7;; esac
case "$name $*" in
  *'user-data'*)
    file=$(echo "$*" | sed 's/.*--user-data \\([^ ]*\\).*/\\1/')
    cp "$file" '{log}.user-data'; echo "id-$number";;
  *' create '*) echo "id-$number";;
  *'-c status '*) echo {state};;
  *'-c fault '*) echo 'no valid host'; exit 1;;
  *'-c addresses '*) echo "{{'net': ['10.0.0.$number', '172.1.1.1']}}";;
  *'server list '*) {others};;
  *'image show '*) echo '{{"properties": {{"hw_vif_model": "{device}"}}}}';;
  'hpcvirt '*) {measuring};;
  *' .ssh/'*) cat > /dev/null;;
esac
"""

NETWORKS = {f'NETWORK_{number}': f'net{number}' for number in range(1, 5)}


def written(study_id, case, *names):
    study_ = study_catalogue.get(study_id)
    machines = [dataclasses.replace(hosts.named(name), name=f'n{number}')
                for number, name in enumerate(names, 1)]
    planned = case_plan.CasePlanner(machines, profile.Profile()).plan(
        study_, study_.case(case))
    return '\n'.join(script.script(study_, planned)) + '\n', planned


class ScriptCase(unittest.TestCase):

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.scratch = pathlib.Path(folder)
        self.log = self.scratch / 'log'
        self.log.touch()
        self.work = self.scratch / 'work'
        self.work.mkdir()

    def execute(self, text, *words, failing="''", others=':', measuring=':',
                device='e1000', state='ACTIVE', **variables):
        """Run a script; return its status and every call that it made."""
        programs = self.scratch / 'programs'
        programs.mkdir(exist_ok=True)
        for name in ('openstack', 'ssh', 'hpcvirt'):
            program = programs / name
            program.write_text(PROGRAM.format(
                log=self.log, failing=failing, others=others,
                measuring=measuring, device=device, state=state))
            program.chmod(0o755)
        path = self.scratch / 'script'
        path.write_text(text)
        # A shell cannot trap a signal that it inherits as ignored.
        done = subprocess.run(
            ['env', '--default-signal=HUP,INT,TERM', 'sh', str(path), *words],
            capture_output=True, check=False,
            timeout=60, env={
                'PATH': f'{programs}:{os.environ["PATH"]}',
                'TMPDIR': str(self.work), 'IMAGE': 'an image', 'KEY': 'mine',
                **NETWORKS, **variables})
        self.stderr = done.stderr.decode()
        calls = self.log.read_text().split('==\n')[:-1]
        return done.returncode, [call.splitlines() for call in calls]

    def created_and_deleted(self, calls):
        created = [f'id-{number}' for number, words in enumerate(calls)
                   if 'create' in words]
        deleted = [words[-1] for words in calls if 'delete' in words]
        return created, deleted


class RunTest(ScriptCase):

    def test_guests_are_started_measured_and_deleted(self):
        text, _ = written('S4', '4x8-tuned', 'hs06-2s-16c')
        status, calls = self.execute(text, '--pairs', '5', '--set', 'a=b c')
        self.assertEqual(0, status, self.stderr)
        started = [words for words in calls
                   if words[3:5] == ['server', 'create']]
        self.assertEqual(4, len(started))
        flavor = next(f'id-{number}' for number, words in enumerate(calls)
                      if words[1:3] == ['flavor', 'create'])
        for number, words in enumerate(started, 1):
            options = dict(zip(words[9:-1:2], words[10:-1:2], strict=True))
            self.assertEqual(
                {'--image': 'an image', '--key-name': 'mine',
                 '--flavor': flavor, '--host': 'n1', '--network': 'net1'},
                options)
            self.assertEqual(f'hpcvirt-s4-4x8-tuned-{number}', words[-1])
        run = next(words for words in calls if words[0] == 'hpcvirt')
        servers = [f'id-{number}' for number, words in enumerate(calls)
                   if words[3:5] == ['server', 'create']]
        where = [word for server in servers
                 for word in ('--where', f'server:root@{server}')]
        self.assertEqual(
            ['hpcvirt', 'bench', 'run', '--study', 'S4/4x8-tuned', *where,
             '--native', 'ssh://n1', '--pairs', '5', '--set', 'a=b c'], run)
        created, deleted = self.created_and_deleted(calls)
        self.assertEqual([*servers, flavor], deleted)
        self.assertEqual(set(created), set(deleted))
        self.assertFalse(list(self.work.iterdir()))

    def test_the_flavor_is_the_scaled_guest(self):
        text, planned = written('S4', '1x24-tuned', 'intel-2s-16c-smt')
        _, calls = self.execute(text)
        create = next(words for words in calls
                      if words[1:3] == ['flavor', 'create'])
        change = next(words for words in calls
                    if words[1:3] == ['flavor', 'set'])
        specs = dict(change[at + 1].split('=', 1)
                     for at, word in enumerate(change) if word == '--property')
        self.assertEqual('id-1', change[-1])
        self.assertEqual(planned.scaled.guest, codec.decode(
            int(create[create.index('--vcpus') + 1]),
            int(create[create.index('--ram') + 1]), specs))
        self.assertEqual(48, planned.scaled.vcpus)

    def test_an_untuned_flavor_has_no_properties(self):
        text, _ = written('S4', '1x24-untuned', 'hs06-2s-16c')
        _, calls = self.execute(text)
        self.assertFalse([words for words in calls if '--property' in words])
        self.assertIn('cpu_shared_set = 0-31', text)

    def test_each_host_has_its_guests_and_is_their_native_arm(self):
        text, _ = written('S2', 'nodes-socket', *('opteron-4s-12c',) * 2)
        status, calls = self.execute(text, HOST_2='elsewhere')
        self.assertEqual(0, status, self.stderr)
        started = [words[words.index('--host') + 1] for words in calls
                   if words[3:5] == ['server', 'create']]
        self.assertEqual(['n1'] * 4 + ['elsewhere'] * 4, started)
        run = next(words for words in calls if words[0] == 'hpcvirt')
        self.assertEqual(8, run.count('--where'))
        self.assertEqual(
            ['ssh://n1'] * 4 + ['ssh://elsewhere'] * 4,
            [run[at + 1] for at, word in enumerate(run)
             if word == '--native'])

    def test_guests_take_the_networks_in_turn(self):
        for case, nets in (('on-4vm-4net-8', ['net1', 'net2', 'net3',
                                              'net4']),
                           ('on-4vm-1net-8', ['net1'] * 4)):
            self.log.write_text('')
            text, _ = written('S3', case, 'intel-2s-16c-smt')
            _, calls = self.execute(text)
            self.assertEqual(nets, [
                words[words.index('--network') + 1] for words in calls
                if words[3:5] == ['server', 'create']])

    def test_ports_of_devices_are_created_and_deleted(self):
        for case, kind in (('sriov', 'direct'),
                           ('passthrough', 'direct-physical')):
            self.log.write_text('')
            text, _ = written('S5', case, 'hs06-2s-16c', 'hs06-2s-16c')
            status, calls = self.execute(text)
            self.assertEqual(0, status, self.stderr)
            ports = {f'id-{number}': words
                     for number, words in enumerate(calls)
                     if words[1:3] == ['port', 'create']}
            self.assertEqual(2, len(ports))
            for words in ports.values():
                self.assertEqual(kind,
                                 words[words.index('--vnic-type') + 1])
            self.assertEqual(list(ports), [
                words[words.index('--port') + 1] for words in calls
                if words[3:5] == ['server', 'create']])
            created, deleted = self.created_and_deleted(calls)
            self.assertEqual(set(created), set(deleted))

    def test_guests_can_log_in_to_each_other(self):
        text, _ = written('S5', 'virtio', 'hs06-2s-16c', 'hs06-2s-16c')
        _, calls = self.execute(text, KEY_FILE='/my keys/id')
        joined = [words for words in calls
                  if words[0] == 'ssh' and 'authorized_keys' in words[-1]]
        self.assertEqual(2, len(joined))
        for words in joined:
            self.assertEqual(['-i', '/my keys/id'], words[1:3])
            self.assertRegex(words[-2], r'root@10\.0\.0\.[0-9]+$')
        run = next(words for words in calls if words[0] == 'hpcvirt')
        self.assertTrue(run[run.index('--where') + 1].endswith(
            '?key=/my keys/id'))

    def test_transparent_huge_pages_are_set_where_the_case_varies_them(self):
        for case, word in (('small-on', 'never'), ('large-on', 'always')):
            self.log.write_text('')
            text, _ = written('S1', case, 'hs06-2s-16c')
            _, calls = self.execute(text)
            self.assertTrue([words for words in calls
                             if '--user-data' in words])
            data = pathlib.Path(f'{self.log}.user-data').read_text()
            self.assertTrue(data.startswith('#cloud-config\n'))
            self.assertIn(f'echo {word} > /sys/kernel/mm/transparent', data)


class TroubleTest(ScriptCase):

    def assert_clean(self, calls, status, wanted):
        self.assertEqual(wanted, status, self.stderr)
        # What failed printed no id.
        created, deleted = self.created_and_deleted(calls)
        self.assertLessEqual(set(deleted), set(created))
        self.assertFalse(list(self.work.iterdir()))
        return set(created) - set(deleted)

    def test_the_status_is_the_verdict_and_everything_is_deleted(self):
        text, _ = written('S4', '2x16-tuned', 'hs06-2s-16c')
        status, calls = self.execute(text, failing="'hpcvirt '*")
        self.assertEqual(set(), self.assert_clean(calls, status, 7))

    def test_a_failed_start_deletes_what_was_created(self):
        text, _ = written('S4', '4x8-tuned', 'hs06-2s-16c')
        status, calls = self.execute(text, failing="*'tuned-3'")
        left = self.assert_clean(calls, status, 7)
        self.assertEqual(1, len(left))
        failed = calls[int(left.pop().removeprefix('id-'))]
        self.assertEqual('hpcvirt-s4-4x8-tuned-3', failed[-1])
        self.assertFalse([words for words in calls if words[0] == 'hpcvirt'])

    def test_a_guest_in_error_is_not_waited_for(self):
        text, _ = written('S4', '4x8-tuned', 'hs06-2s-16c')
        status, calls = self.execute(text, state='ERROR')
        self.assertEqual(set(), self.assert_clean(calls, status, 2))
        self.assertIn('is not ACTIVE', self.stderr)
        self.assertFalse([words for words in calls if words[0] == 'hpcvirt'])

    def test_a_flavor_whose_properties_cannot_be_set_is_deleted(self):
        text, _ = written('S4', '4x8-tuned', 'hs06-2s-16c')
        status, calls = self.execute(text, failing="*' flavor set '*")
        self.assertEqual(set(), self.assert_clean(calls, status, 7))

    def test_nothing_is_deleted_if_the_flavor_name_is_taken(self):
        text, _ = written('S4', '4x8-tuned', 'hs06-2s-16c')
        status, calls = self.execute(text, failing="*'flavor create '*")
        self.assertEqual(7, status)
        self.assertFalse([words for words in calls if 'delete' in words])

    def test_a_host_with_guests_is_left_alone(self):
        text, _ = written('S4', '4x8-tuned', 'hs06-2s-16c')
        status, calls = self.execute(text, others='echo theirs')
        self.assertEqual(2, status)
        self.assertIn('n1 has guests', self.stderr)
        self.assertEqual(1, len(calls))

    def test_an_interrupted_script_deletes_what_it_created(self):
        text, _ = written('S5', 'sriov', 'hs06-2s-16c', 'hs06-2s-16c')
        for signal, status in (('TERM', 130), ('INT', 130), ('HUP', 130)):
            self.log.write_text('')
            got, calls = self.execute(text,
                                      measuring=f'kill -{signal} $PPID')
            self.assertEqual(set(), self.assert_clean(calls, got, status))

    def test_an_image_with_another_device_is_refused(self):
        text, _ = written('S3', 'on-2vm-1net-8', 'intel-2s-16c-smt')
        status, calls = self.execute(text, device='virtio')
        self.assertEqual(2, status)
        self.assertIn('hw_vif_model', self.stderr)
        self.assertFalse([words for words in calls if 'create' in words])

    def test_a_missing_variable_is_named(self):
        text, _ = written('S3', 'on-2vm-2net-8', 'intel-2s-16c-smt')
        for name in ('IMAGE', 'KEY', 'NETWORK_1', 'NETWORK_2'):
            status, calls = self.execute(text, **{name: ''})
            self.assertNotEqual(0, status)
            self.assertIn(name, self.stderr)
            self.assertEqual([], calls)


class TextTest(unittest.TestCase):

    def test_every_script_is_valid_shell(self):
        host = hosts.named('intel-2s-16c-smt')
        planners = {count: case_plan.CasePlanner(
            [dataclasses.replace(host, name=f'n{number}')
             for number in range(count)], profile.Profile())
            for count in (1, 2, 3, 6)}
        for study_ in study_catalogue.studies():
            for case in study_.cases:
                text = '\n'.join(script.script(
                    study_, planners[case.hosts].plan(study_, case)))
                for shell in ('sh', 'bash'):
                    done = subprocess.run([shell, '-n'], input=text.encode(),
                                          capture_output=True, check=False)
                    self.assertEqual((0, b''), (done.returncode, done.stderr))

    def test_the_script_lists_what_to_set_by_hand(self):
        text, _ = written('S1', 'large-off', 'intel-2s-16c-smt')
        for words in ('ept=0', 'SMT off', 'cpu_dedicated_set = 0-31',
                      'hugepagesz=2M', 'transparent_hugepage'):
            self.assertIn(words, text)
        text, _ = written('S3', 'on-2vm-1net-8', 'intel-2s-16c-smt')
        for words in ('SMT on', 'hw_vif_model=e1000',
                      'cpu_shared_set = 0-63'):
            self.assertIn(words, text)
        self.assertNotIn('cpu_dedicated_set', text)

    def test_a_host_name_is_quoted(self):
        study_ = study_catalogue.get('S4')
        host = dataclasses.replace(hosts.named('hs06-2s-16c'),
                                   name='a`touch x`"b')
        planned = case_plan.CasePlanner([host], profile.Profile()).plan(
            study_, study_.case('1x32-tuned'))
        for line in script.script(study_, planned):
            if 'touch' in line and not line.startswith('#'):
                self.assertIn(f'HOST_1={shlex.quote(host.name)}', line)
