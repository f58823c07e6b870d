# SPDX-License-Identifier: Apache-2.0

"""The line about a refused request, and what is read back from it."""

import json
import logging
from unittest import mock

import fixtures
from nova import objects
from oslo_context import context
from oslo_log import formatters

from hpcvirt.fit import reasons
from hpcvirt.fleet import log_reading
from hpcvirt.nova import decision
from tests.builders import cases
from tests.functional import filtering
from tests.functional import nova_objects

case = filtering.case
gpu = filtering.gpu
gpu_request = filtering.gpu_request
host = filtering.host
host_cell = filtering.host_cell


class LogTestCase(filtering.FilterTestCase):
    def refusals(self):
        found = log_reading.read(
            (line.encode() for line in self.lines('INFO')), None)
        self.assertEqual(0, found.unreadable)
        return list(found.refusals.values())

    def refuse(self, *questions, **specs):
        spec = nova_objects.request_spec(questions[0], specs)
        self.assertEqual([], self.run_filter(spec, *self.states(*questions)))
        read, = self.refusals()
        return spec, read


class RefusalLogTest(LogTestCase):
    def test_hosts_that_fail_alike_are_one_group(self):
        few_pages = case((host_cell(pages=(cases.Pages(2048, 10),)),))
        spec, read = self.refuse(*[case(host(8, 5))] * 300, *[few_pages] * 3)
        self.assertEqual(303, read[0].of)
        self.assertEqual(303, sum(group.hosts for group in read))
        self.assertEqual(
            [(reasons.Code.NO_CELL, reasons.Code.FREE_PCPUS, 300,
              'host0, host1'),
             (reasons.Code.NO_CELL, reasons.Code.FREE_PAGES, 3,
              'host300, host301')],
            [(group.code, group.root, group.hosts, group.examples)
             for group in read])
        self.assertEqual(
            'no cell has room: cell 0 has 0 of the 4 free PCPUs needed; '
            'cell 1 has 3 of the 4 free PCPUs needed', read[0].reason)
        self.assertEqual((spec.instance_uuid, 'hpc'),
                         (read[0].instance, read[0].flavor))

    def test_the_request_is_that_of_the_context(self):
        self.addCleanup(setattr, context._request_store, 'context',
                        context.get_current())
        context.RequestContext(request_id='req-1', global_request_id='req-2')
        _, read = self.refuse(case(host(8)))
        self.assertEqual(('req-1', 'req-2'),
                         (read[0].request_id,
                          read[0].global_request_id))

    def test_what_was_asked_is_in_it(self):
        question = case(host(8, 8), (4, 4, 2), pools=(gpu(0),),
                        requests=(gpu_request(2),))
        _, read = self.refuse(question)
        self.assertEqual(
            '10 vCPUs and 3072 MiB, 2 guest cells of 4 dedicated CPUs and '
            '1024 MiB in pages of 2048 KiB, 1 guest cell of 2 dedicated CPUs '
            'and 1024 MiB in pages of 2048 KiB, 2 devices for gpu (required)',
            read[0].asked)

    def test_a_malformed_extra_spec_is_a_refusal_by_every_host(self):
        _, read = self.refuse(case(host(0)), case(host(0)),
                              **{'hpcvirt:numa_scope': 'planet'})
        group, = read
        self.assertEqual((reasons.Code.EXTRA_SPEC, 2),
                         (group.code, group.hosts))

    def test_an_error_does_not_end_the_request(self):
        spec = nova_objects.request_spec(case(host(8)))
        with fixtures.MonkeyPatch('hpcvirt.fit.decision_log.write', None):
            self.assertEqual(
                [], self.run_filter(spec, *self.states(case(host(8)))))
        self.assertIn('cannot be summarized', self.log.output)

    def test_it_is_of_bounded_length(self):
        question = case(host(8))
        spec = nova_objects.request_spec(question)
        spec.flavor.name = '\N{PILE OF POO}' * 255
        hosts = self.states(*[question] * 9)
        for number, state in enumerate(hosts):
            state.host = '\N{SNOWMAN}' * 200
            if number % 2:
                state.numa_topology = None
        self.run_filter(spec, *hosts)
        for line in self.lines('INFO'):
            self.assertTrue(line.isascii())
            self.assertLess(len(line), 8192)
        self.assertEqual([5, 4], [group.hosts for group
                                  in self.refusals()[0]])

    def test_nothing_is_written_if_a_host_passes(self):
        for taken in ((8, 0), (0, 8), (8, 0, 8)):
            questions = [case(host(each)) for each in taken]
            self.run_filter(nova_objects.request_spec(questions[0]),
                            *self.states(*questions))
        self.assertEqual([], self.lines('INFO'))

    def test_nothing_is_written_if_nobody_asks_for_the_rest(self):
        questions = [case(host(0)), case(host(8))]
        found = self.filter.filter_all(
            self.states(*questions), nova_objects.request_spec(questions[0]))
        next(found)
        found.close()
        self.assertEqual([], self.lines('INFO'))

    def test_the_hosts_may_come_from_a_generator(self):
        question = case(host(8))
        list(self.filter.filter_all(iter(self.states(question, question)),
                                    nova_objects.request_spec(question)))
        self.assertEqual(2, self.refusals()[0][0].of)

    def test_nothing_is_formatted_if_info_is_off(self):
        logging.getLogger('hpcvirt').setLevel(logging.WARNING)
        self.run_filter(nova_objects.request_spec(case(host(8))),
                        *self.states(case(host(8))))
        self.assertEqual('', self.log.output)


class SeveralInstancesTest(LogTestCase):
    """Several instances of one request, as nova-scheduler places them."""

    def schedule(self, question, count):
        """Schedule as FilterScheduler does, alternates included."""
        spec = nova_objects.request_spec(question, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048'})
        spec.num_instances = count
        hosts = self.states(question)
        for number in range(count):
            spec.instance_uuid = f'00000000-0000-0000-0000-{number:012}'
            hosts = list(self.filter.filter_all(hosts, spec))
            if not hosts:
                return
            hosts[0].consume_from_request(spec)
        list(self.filter.filter_all(hosts, spec))

    def test_a_host_that_is_full_in_the_end_is_no_refusal(self):
        self.schedule(case(host(0), (4,)), 2)
        self.assertEqual([], self.lines('INFO'))

    def test_the_instance_that_finds_no_host_is_named(self):
        self.schedule(case(host(0), (4,)), 3)
        read, = self.refusals()
        self.assertEqual('00000000-0000-0000-0000-000000000002',
                         read[0].instance)
        self.assertIn(', one of 3 instances', read[0].asked)

    def test_a_later_move_of_one_of_them_is_one_instance(self):
        question = case(host(8))
        spec = nova_objects.request_spec(question)
        spec.num_instances = 3
        spec.requested_destination = objects.Destination(
            cell=objects.CellMapping())
        self.run_filter(spec, *self.states(question))
        self.assertNotIn('instances', self.refusals()[0][0].asked)


class LateReasonsTest(LogTestCase):
    def setUp(self):
        super().setUp()
        logging.getLogger('hpcvirt').setLevel(logging.INFO)
        self.explained = []
        explain = decision.FilterDecision._explain
        patch = mock.patch.object(
            decision.FilterDecision, '_explain', new=lambda request,
            *arguments: (
                self.explained.append(1) or explain(request, *arguments)))
        patch.start()
        self.addCleanup(patch.stop)

    def test_reasons_are_not_looked_for_if_a_host_passes(self):
        questions = [case(host(8)), case(host(8, 5)), case(host(0))]
        spec = nova_objects.request_spec(questions[0])
        self.assertEqual(1, len(self.run_filter(
            spec, *self.states(*questions))))
        self.assertEqual([], self.explained)

    def test_they_are_looked_for_if_none_passes(self):
        self.refuse(case(host(8)), case(host(8, 5)))
        self.assertEqual(2, len(self.explained))


class FormatTest(LogTestCase):
    def test_the_json_formatter_of_oslo_log_is_read(self):
        self.refuse(case(host(8)))
        _, _, message = self.lines('INFO')[0].partition('] ')
        for name, refused in (('hpcvirt.nova.no_valid_host_log', 1),
                              ('nova.compute.api', 0)):
            record = logging.LogRecord(name, logging.INFO, 'f', 1, message,
                                       (), None)
            line = formatters.JSONFormatter().format(record)
            self.assertIn('\\"', line)
            again = json.dumps({'log': line, 'stream': 'stderr'})
            for text in line, again:
                found = log_reading.read([text.encode()], None)
                self.assertEqual(refused, found.refused)
