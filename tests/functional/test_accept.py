# SPDX-License-Identifier: Apache-2.0

"""Accept hosts of a Nova: instances, traits, quarantine, interruptions.

This machine stands in for the guests: what is started in one runs here.
"""

import contextlib
import json
import os

import fixtures

from hpcvirt.acceptance import acceptance
from hpcvirt.bench.results import store
from hpcvirt.cloud import accepted_host
from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import compute_hosts
from hpcvirt.cloud import placement
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.cloud import session
from hpcvirt.cmd.bench import progress
from hpcvirt.model import quarantine
from testing import machines
from tests.builders import commands
from tests.builders import folders
from tests.functional import measured_guests
from tests.integration.bench import run_case

HOST, OTHER = 'node1', 'node2'
GUESTS = 2

#: Native runs are confined to one CPU.
PROGRAM = """\
#!/bin/sh
""" + run_case.VARY + """\
output='{native}'
if grep -q 'Cpus_allowed_list:.*[-,]' /proc/self/status; then
  echo run >> '{trace}'
  [ ! -e '{slow}' ] || output='{guest}'
fi
vary "$output"
"""


class AcceptCase(measured_guests.MeasuringTestCase):
    def setUp(self):
        super().setUp()
        if len(os.sched_getaffinity(0)) < 2:
            self.fail('needs two CPUs')
        self.add_machines(*(machines.build(
            name, cells=1, cores=GUESTS, pages={2048: 1024})
            for name in (HOST, OTHER)))
        self.use_as_cloud()
        self.scratch = folders.make(self)
        self.slow, self.trace = self.scratch / 'slow', self.scratch / 'trace'
        self.data = self.scratch / 'data'
        self.stand_in()
        self.words = self.arguments(self.create_hpc_flavor(pcpus=1))
        self.placement_api = placement.PlacementClient(session.placement())
        self.quarantine = cloud_quarantine.Quarantine(
            session.compute(), self.placement_api)

    def arguments(self, flavor):
        name = self.api.get_flavor(flavor)['name']
        source = self.scratch / 'NPB'
        source.mkdir(exist_ok=True)
        (source / 'Makefile').write_text(run_case.MAKEFILE)
        (source / 'program.sh').write_text(PROGRAM.format(
            trace=self.trace, slow=self.slow,
            native=run_case.DATA / 'native_np1' / 'npb_ep.S.out',
            guest=run_case.DATA / 'guest_tcg_np1' / 'npb_ep.S.out'))
        plan = self.scratch / 'plan.json'
        plan.write_text(json.dumps({'schema_version': 1, 'flavors': [
            {'name': name, 'vcpus': 1, 'ram_mib': 512, 'disk_gib': 0,
             'extra_specs': {}, 'per_host': {HOST: GUESTS, OTHER: 0}}]}))
        audit = self.scratch / 'audit.json'
        audit.write_text(json.dumps({
            'schema_version': 1, 'host': HOST, 'findings': [],
            'checked': ['ksm']}))
        self.document = {
            'kind': 'acceptance', 'schema_version': 1, 'flavors': [name],
            'plan': 'plan.json', 'image': 'bench', 'network': 'net',
            'benchmarks': ['npb-ep/serial'],
            'settings': {'npb_ser': str(source), 'class': 'S'}, 'pairs': 5,
            'audit': 'audit.json', 'gate_benchmarks': []}
        return ['bench', 'run', str(self.scratch / 'accept.yaml'), HOST,
                '--data', str(self.data), '--format', 'json']

    def stand_in(self):
        """Let this machine be the guests, and Glance and Neutron answer."""
        self.answer_for_others()
        self.reach_guests(boots_between=100)
        # Guests may run here.
        self.useFixture(fixtures.MonkeyPatch(
            'hpcvirt.acceptance.hardware.count_guests', lambda _: 0))

    def accept(self, *words, **keys):
        """Run the command with more keys; return its status and output."""
        (self.scratch / 'accept.yaml').write_text(
            json.dumps({**self.document, **keys}))
        self.restore_ports()
        return commands.run(*self.words, *words)

    def decided(self, word, *words, **keys):
        status, out, err = self.accept('--apply', *words, **keys)
        self.assertEqual(int(word != 'PASS'), status, err)
        found = json.loads(out)
        self.assertEqual(word, found['result'], found['reason'])
        self.assertEqual((), self.left())
        self.assertEqual([], self.api.get_servers())
        return found

    def left(self):
        return benchmark_instances.BenchmarkInstances(
            session.compute(), accepted_host.MARK, HOST).left()

    def provider(self, host=HOST):
        (found,) = compute_hosts.find_providers(session.compute(), host)
        return found

    def traits(self, host=HOST):
        return {name for name in self.placement_api.traits(
            self.provider(host)).names if name.startswith(placement.OWN)}

    def holders(self):
        return [hold.holder for hold in self.quarantine.holds(HOST)]

    def runs(self):
        return len(self.trace.read_text().split())

    def open_store(self):
        opened = store.Store(None, str(self.data))
        self.addCleanup(opened.close)
        return opened


class AcceptTest(AcceptCase):
    def test_traits_stay_whatever_nova_compute_does(self):
        mine = {acceptance.AUDITED, *acceptance.OVERHEAD.values()}
        before = self.placement_api.traits(self.provider()).names
        self.placement_api.change_traits(self.provider(), mine)
        for host in (HOST, OTHER):
            self.restart_compute_service(host)
        self._run_periodics()
        self.assertEqual(before | mine, self.placement_api.traits(
            self.provider()).names)
        # nova-compute has traits of its own to add, with what it remembers
        # of the provider.
        self.placement_api.change_traits(
            self.provider(), (), [acceptance.OVERHEAD[3]])
        driver = self.computes[HOST].driver
        update = driver.update_provider_tree

        def add(tree, node, *args, **kwargs):
            update(tree, node, *args, **kwargs)
            tree.add_traits(node, 'HW_CPU_X86_AVX512F')
        self.stub_out('nova.virt.libvirt.driver.LibvirtDriver'
                      '.update_provider_tree',
                      lambda _, *args, **kwargs: add(*args, **kwargs))
        self._run_periodics()
        self.assertEqual(
            (before | mine | {'HW_CPU_X86_AVX512F'})
            - {acceptance.OVERHEAD[3]},
            self.placement_api.traits(self.provider()).names)

    def test_nothing_is_changed_without_apply(self):
        status, out, err = self.accept('--format', 'table')
        self.assertEqual((0, ''), (status, err))
        self.assertIn(f'Start {GUESTS} x ', out)
        self.assertIn('use --apply', out)
        self.assertEqual([], self.holders())
        self.assertFalse(self.data.exists())
        # Nor is anything if no guest could pass.
        commands.check_refused(
            self, '15 pairs pass no guest; set pairs to 16',
            self.accept('--apply', native='local', pairs=15))
        self.assertEqual(([], (), []), (self.holders(), self.left(),
                                        self.api.get_servers()))
        self.assertFalse(self.data.exists())
        # A host that is in use is refused.
        self.boot(self.create_hpc_flavor(pcpus=1), host=HOST)
        status, out, err = self.accept('--apply')
        self.assertEqual((2, ''), (status, out))
        self.assertIn('has 1 instance of others', err)
        self.assertEqual([], self.holders())

    def test_periodic_a_slow_host_fails_and_stays_in_quarantine(self):
        self.placement_api.change_traits(self.provider(), acceptance.TRAITS)
        self.slow.touch()
        # Ten pairs are too few for the bound of the study.
        native = {'native': 'local', 'pairs': 10,
                  'bounds': {'mops_total': 0.9}}
        found = self.decided('FAIL', **native)
        self.assertEqual({quarantine.TRAIT}, self.traits())
        self.assertEqual(['accept'], self.holders())
        (figure,) = found['verdict']['judgements']
        self.assertLess(figure['interval']['high'], 0.2)
        self.assertEqual(5, figure['launches'])
        self.slow.unlink()
        found = self.decided('INCONCLUSIVE', **native)
        (figure,) = found['verdict']['judgements']
        self.assertEqual(10, figure['launches'])
        self.assertEqual({quarantine.TRAIT}, self.traits())
        found = self.decided('PASS', '--repaired', 'the DIMM in slot 3',
                             **native)
        self.assertEqual(set(acceptance.TRAITS), self.traits())
        self.assertEqual([], self.holders())

    def test_periodic_a_killed_acceptance_is_continued(self):
        kept = []

        def die(shown, sample):
            finished(shown, sample)
            kept.append(sample)
            if len(kept) == 3:
                raise KeyboardInterrupt
        finished = progress.Terminal.sample_finished
        with contextlib.ExitStack() as stack:
            # A process that is killed cleans up nothing.
            for name, new in (
                    ('cmd.bench.progress.Terminal.sample_finished', die),
                    ('acceptance.measurement.clear', lambda *_: None),
                    ('bench.execute.job.stop_run', lambda *_: None)):
                stack.enter_context(fixtures.MonkeyPatch(
                    f'hpcvirt.{name}', new))
            self.assertEqual(130, self.accept('--apply')[0])
        begun = {server['id'] for server in self.api.get_servers()}
        self.assertEqual(GUESTS, len(begun))
        status, out, _ = self.accept('--format', 'table')
        self.assertEqual(0, status)
        for server in begun:
            self.assertIn(f'left server {server}', out)
        found = self.decided('INCONCLUSIVE')
        self.assertEqual(10 * GUESTS, self.runs())
        opened = self.open_store()
        (run,) = opened.result(found['parts'][0]['result']).runs
        self.assertEqual([sample.started_at for sample in kept],
                         [sample.started_at for sample in run.samples[:3]])
        self.assertEqual({' '.join(sorted(begun))}, {
            ' '.join(sorted(value for key, value
                            in sample.environment.items()
                            if key.startswith('server.id')))
            for sample in run.samples})

    def test_periodic_a_flavor_may_require_what_the_host_shall_get(self):
        self.words = self.arguments(self.create_hpc_flavor(
            pcpus=1, **{f'trait:{acceptance.OVERHEAD[5]}': 'required'}))
        self.decided('INCONCLUSIVE')
