# SPDX-License-Identifier: Apache-2.0

"""What is found in the text of a log, whoever has written it."""

import datetime
import json
import time
import unittest

from hpcvirt.fit import decision_log
from hpcvirt.fit import reasons
from hpcvirt.fleet import log_reading
from tests.builders import log_records

LOGGER = log_records.LOGGER
a_refusal = log_records.a_refusal
a_comparison = log_records.a_comparison
a_difference = log_records.a_difference
line = log_records.line
INSTANCE = log_records.INSTANCE
BUILD = log_records.BUILD
nova_line = log_records.nova_line
LINE = log_records.LINE


#: As the services of Nova 34 write them.
PLACEMENT = (
    'Got no allocation candidates from the Placement API. This could be due '
    'to insufficient resources or a temporary occurrence as compute nodes '
    'start up.')
FILTERS = (
    'Filtering removed all hosts for the request with instance ID '
    f"'{INSTANCE}'. Filter results: ['ComputeFilter: (start: 9, end: 7)', "
    "'ImagePropertiesFilter: (start: 7, end: 0)']")
RESIZE = (
    f'[instance: {INSTANCE}] Error from last host: node1 (node node1): '
    '["nova.exception.ResizeError: It can\'t be resized\\n"]')


class FindTest(unittest.TestCase):
    def found(self, *lines, request=None):
        return log_reading.read(lines, request)

    def assert_read(self, *lines, refused=1, unreadable=0):
        found = self.found(*lines)
        self.assertEqual((refused, unreadable),
                         (found.refused, found.unreadable))
        for item in found.refusals.values():
            self.assertEqual([a_refusal()], item)

    def test_what_a_logger_writes_may_stand_before_it(self):
        for prefix in (
                b'', b'Nov 22 10:00:00 ctl nova-scheduler[7]: ',
                b'Nov  2 10:00:00.123456 ctl devstack@n-sch.service[7]: ',
                b'2026-11-22T10:00:00.123456+00:00 ctl nova-scheduler: ',
                b'2026-11-22T10:00:00+0000 ctl nova-scheduler[7]: ',
                b'Sun 2026-11-22 10:00:00 UTC ctl nova_scheduler[7]: ',
                b'[  123.456789] ctl nova-scheduler[7]: ',
                b'1795341600.123456 ctl nova-scheduler[7]: ',
                b'2026-11-22T10:00:00.123456789+00:00 stderr F ',
                b'2026-11-22T10:00:00.123456789Z ',
                b'nova_scheduler-1  | ', b'[pod/nova-scheduler-0/main] ',
                b'/var/log/kolla/nova/nova-scheduler.log.1:', b'a.log:12:'):
            with self.subTest(prefix=prefix):
                self.assert_read(b'something else\n', prefix + LINE, b'\n')

    def test_a_shorter_beginning_of_oslo_log_is_read(self):
        text = decision_log.write(a_refusal()).encode()
        for head in (b'INFO %s ', b'INFO %s [-] ', b'7 INFO %s ',
                     b'2026-11-22 10:00:00 INFO %s [req-1 - -] ',
                     b'2026-11-22 10:00:00,123 INFO %s '):
            self.assert_read(head % LOGGER.encode() + text)

    def test_nothing_else_may_stand_before_it(self):
        text = LINE.decode().strip()
        _, _, short = text.partition(' 7 ')
        forged = json.dumps({'name': LOGGER, 'message': decision_log.write(
            a_refusal())})
        nova = '2026-11-22 10:00:00.123 7 '
        for before in (
                'Nov 22 10:00:00 ctl sshd[7]: Invalid user ',
                'Nov 22 10:00:00 ctl sshd[7]: x ', 'x ', ': ', '\t', ' ', '\r',
                '                        ', '  File "a.py", ', 'x: y: ',
                # Continuations of a message, as journalctl indents them.
                '                                    2026-11-22 ',
                f'{nova}TRACE nova-x [-] ', f'{nova}x [-] ',
                f'{nova}DEBUG nova/x [-] ', f'{nova}DEBUG nova.x [-] ',
                f'{nova}DEBUG nova.x [-] properties \x1b[0m',
                f'{nova}DEBUG nova.x [-] hpcvirt.refusal='):
            for quoted in (text, short, forged):
                with self.subTest(before=before, quoted=quoted[:9]):
                    self.assert_read((before + quoted).encode(), refused=0)

    def test_the_colors_and_the_short_beginning_of_devstack_are_read(self):
        self.assert_read(
            b'Nov 22 10:00:00 ctl nova-scheduler[7]: INFO '
            + LOGGER.encode() + b' [\x1b[01;36mNone req-1\x1b[00m] \x1b[00m'
            + decision_log.write(a_refusal()).encode() + b'\x1b[00m\n')

    def test_json_objects_of_oslo_log_journald_and_containers_are_read(self):
        text = LINE.decode()
        oslo = json.dumps({'message': decision_log.write(a_refusal()),
                           'asctime': '2026', 'name': LOGGER})
        for plain in (oslo, json.dumps({'MESSAGE': text}),
                      json.dumps({'log': text, 'stream': 'stderr'}),
                      json.dumps({'log': oslo + '\n'})):
            with self.subTest(plain=plain):
                self.assert_read(plain.encode())
                self.assert_read(b'Nov 22 10:00:00 ctl nova[7]: '
                                 + plain.encode())

    def test_only_lines_of_the_logger_of_the_filter_count(self):
        text = LINE.decode().strip()
        forged = json.dumps({'name': LOGGER, 'message': decision_log.write(
            a_refusal())})
        for quoted in (text, forged):
            self.assert_read(line(f'image property os_x={quoted}', 'nova.x'),
                             line(quoted, 'nova.x'), refused=0)
        for field in ('message', 'text'):
            self.assert_read(json.dumps({'name': 'nova.x', field: text})
                             .encode(), refused=0)
        self.assert_read(b'10.0.0.1 - "GET /?' + LINE.rstrip() + b'"',
                         refused=0)

    def test_no_name_ends_a_line_or_a_value(self):
        hostile = 'x" hosts=9\n2026-11-22 10:00:00.123 7 INFO '
        record = a_refusal(flavor=hostile + LOGGER[:10], reason='\u2028"; =\\')
        self.assertEqual(1, line(record).count(b'\n'))
        found = self.found(*line(record).splitlines())
        self.assertEqual([[record]], [*found.refusals.values()])

    def test_lines_that_ran_into_each_other_are_counted(self):
        self.assert_read(LINE[:-60] + LINE, refused=0, unreadable=1)

    def test_what_is_cut_is_counted(self):
        end = LINE.index(b' hosts=')
        for length in (end, end + 7, end + 30, len(LINE) - 3):
            self.assert_read(LINE[:length], refused=0, unreadable=1)

    def test_nothing_but_the_fields_of_the_line_is_accepted(self):
        text = decision_log.write(a_refusal())
        for old, new in (
                (' hosts=3', ' hosts="3"'), (' hosts=3', ' hosts=-'),
                (' hosts=3', ' hosts=3 more=1'), (' hosts=3', ''),
                ('code="no-cell"', 'code="x"'),
                (' hosts=3', ' hosts=99999999999'),
                ('"hpc"', json.dumps('x' * 3001))):
            with self.subTest(new=new):
                self.assertIn(old, text)
                self.assert_read(line(text.replace(old, new)), refused=0,
                                 unreadable=1)

    def test_other_lines_of_the_logger_are_left_out(self):
        self.assert_read(line('The refusal of x cannot be summarized'),
                         refused=0)

    def test_hostile_lines_take_no_time(self):
        start = time.process_time()
        for hostile in (
                LOGGER.encode() * 30000,
                LINE.rstrip() + b' hosts=3' * 100000,
                LINE.rstrip() + b' flavor="' + b'\\"' * 100000,
                b'INFO ' * 100000 + LOGGER.encode(),
                LOGGER.encode() + b'[' * 900000,
                b'{"a":' * 100000 + LOGGER.encode()):
            self.assertEqual(0, self.found(hostile).refused)
        self.assertLess(time.process_time() - start, 2)

    def test_the_lines_of_a_request_are_one_refusal(self):
        first, second = (a_refusal(of=9, hosts=hosts) for hosts in (5, 3))
        others = (a_refusal('req-2'), a_refusal(instance='uuid-2'),
                  a_refusal(time='2026-11-22T10:00:00.001+00:00'))
        found = self.found(*map(line, (first, *others, second)))
        self.assertEqual(4, found.refused)
        self.assertEqual([[first, second], *([other] for other in others)],
                         [*found.refusals.values()])

    def test_a_request_does_not_fill_the_memory(self):
        found = self.found(*[LINE] * 100)
        kept, = found.refusals.values()
        self.assertEqual((decision_log.MAX_KINDS, 92),
                         (len(kept), found.unreadable))

    def test_a_request_is_found_by_its_ids_and_its_instance(self):
        wanted = a_refusal('req-2', global_request_id='req-g',
                           instance='uuid-2')
        for name in ('req-2', 'req-g', 'uuid-2'):
            found = self.found(LINE, line(wanted), LINE, request=name)
            self.assertEqual([[wanted]], [*found.refusals.values()])
            self.assertEqual((1, 2), (found.refused, found.others))

    def test_the_last_refusals_are_kept_and_all_are_counted(self):
        lines = [line(a_refusal(f'req-{number}'))
                 for number in range(log_reading.MAX_REFUSALS + 2)]
        found = self.found(*lines)
        self.assertEqual(len(lines), found.refused)
        kept = [groups[0].request_id for groups in found.refusals.values()]
        self.assertEqual((log_reading.MAX_REFUSALS, 'req-2', 'req-1001'),
                         (len(kept), kept[0], kept[-1]))


class ShadowTest(unittest.TestCase):
    def found(self, *records):
        return log_reading.read(
            [line(record, 'hpcvirt.nova.shadow') for record in records], None)

    def test_decisions_are_counted_by_reason_and_by_flavor(self):
        novas = decision_log.Disagreement.NOVA_REFUSES
        found = self.found(
            a_comparison('req-1', passed=3),
            a_comparison('req-2', differing=1), a_difference('req-2'),
            a_comparison('req-3', 'big', passed=0, differing=3),
            a_difference('req-3', 2, flavor='big'), a_difference(
                'req-3', code=None, direction=novas, flavor='big'),
            a_comparison('req-4', 'big', passed=1, novas=0, compared=2),
            a_comparison('req-5', differing=3), a_difference('req-5', 3))
        self.assertEqual({
            'requests': 5, 'differing': 3, 'hosts': 15, 'compared': 14,
            'only_nova_has_a_host': 1, 'only_hpcvirt_has_a_host': 1,
            'errors': 0}, found.shadow)
        both = (decision_log.Disagreement.HPCVIRT_REFUSES,
                reasons.Code.CLAIM_REFUSES)
        self.assertEqual({
            (*both, 'hpc'): ({'requests': 2, 'hosts': 4},
                             a_difference('req-2')),
            (*both, 'big'): ({'requests': 1, 'hosts': 2},
                             a_difference('req-3', 2, flavor='big')),
            (novas, None, 'big'): ({'requests': 1, 'hosts': 1}, a_difference(
                'req-3', direction=novas, code=None, flavor='big'))},
            found.differences)

    def test_a_comparison_that_failed_is_counted(self):
        found = self.found(a_comparison(error='KeyError: 3'), a_comparison())
        self.assertEqual((2, 1, 'KeyError: 3'), (
            found.shadow['requests'], found.shadow['errors'], found.error))

    def test_the_sums_of_one_comparison_are_numbers(self):
        sums = self.found(a_comparison(passed=0, differing=3)).shadow
        self.assertEqual({int}, set(map(type, sums.values())))

    def test_names_of_flavors_do_not_fill_the_memory(self):
        found = self.found(*(a_difference(flavor=f'f{number}')
                             for number in range(1200)), a_difference(
                                 flavor='f0'))
        self.assertEqual(log_reading.MAX_DIFFERENCES, len(found.differences))
        sums, _ = next(iter(found.differences.values()))
        self.assertEqual(2, sums['requests'])


class NovaTest(unittest.TestCase):

    def read(self, *lines):
        found = log_reading.read(lines, None)
        self.assertEqual(0, found.unreadable)
        return [record for records in found.refusals.values()
                for record in records]

    def test_the_failures_of_each_step_are_read(self):
        for logger, message, expected in (
                ('nova.scheduler.manager', PLACEMENT, (
                    None, 'placement', 'placement', 0, '',
                    'Placement has no allocation candidates')),
                ('nova.filters', FILTERS, (
                    INSTANCE, 'filter', 'ImagePropertiesFilter', 7, '',
                    'ImagePropertiesFilter leaves none of the hosts')),
                ('nova.scheduler.utils', BUILD, (
                    INSTANCE, 'build', 'build', 1, 'node1',
                    'Insufficient compute resources: Claim pci failed.')),
                ('nova.scheduler.utils', RESIZE, (
                    INSTANCE, 'build', 'build', 1, 'node1',
                    "nova.exception.ResizeError: It can't be resized"))):
            record, = self.read(nova_line(logger, message))
            self.assertEqual(expected, (
                record.instance, record.step, record.kind, record.hosts,
                record.examples, record.reason))
            self.assertEqual('req-1', record.request_id)

    def test_what_is_no_failure_is_left_out(self):
        self.assertEqual([], self.read(
            nova_line('nova.filters', FILTERS.replace('ImageProperties',
                                                      'HPCTopology')),
            nova_line('nova.filters',
                      'Filter HPCTopologyFilter returned 0 hosts'),
            nova_line('nova.filters', 'Filter ComputeFilter returned 2 '
                      'host(s)', 'DEBUG'),
            nova_line('nova.scheduler.utils', 'Attempting to claim resources'),
            nova_line('nova.x', PLACEMENT), nova_line('nova.x', BUILD)))

    def test_the_id_is_that_of_the_request_and_not_the_global_one(self):
        for context, expected in (
                ('None req-1 u p - - -', 'req-1'),
                ('req-g req-1 u p', 'req-1'), ('req-1 u p', 'req-1'),
                ('None req-1 req-user p', 'req-1'), ('None None - -', None),
                ('-', None)):
            record, = self.read(nova_line('nova.scheduler.manager', PLACEMENT,
                                          context=context))
            self.assertEqual(expected, record.request_id, context)

    def test_a_line_without_a_time_is_read(self):
        record, = self.read(b'INFO nova.scheduler.manager [None req-1 u] '
                            + PLACEMENT.encode())
        self.assertEqual(('', 'req-1'), (record.time, record.request_id))

    def test_hostile_lines_take_no_time(self):
        begin = time.process_time()
        for message in (
                FILTERS[:-20] + "'x: (start: 9, end: 0)'" * 2000,
                FILTERS.replace("['", "['" + "x'" * 30000),
                BUILD[:-2] + "\\n', '" * 20000 + "']",
                '[instance: ' * 5000 + BUILD):
            for logger in log_reading._FAILURES:
                log_reading.read([nova_line(logger, message)], None)
        self.assertLess(time.process_time() - begin, 3)

    def test_the_reason_is_of_bounded_length(self):
        record, = self.read(nova_line('nova.scheduler.utils', BUILD.replace(
            'Claim pci', 'Claim ' + 'x' * 9999)))
        self.assertEqual(300, len(record.reason))

    def test_only_a_part_of_the_time_is_read(self):
        when = datetime.datetime.fromisoformat(
            '2026-11-22 10:00:00.123').astimezone(datetime.UTC)
        second = datetime.timedelta(seconds=1)
        for since, until, expected in (
                (when - second, when + second, 1),
                (when - second, when - second / 2, 0),
                (when + second / 2, when + second, 0)):
            found = log_reading.read(
                [nova_line('nova.scheduler.manager', PLACEMENT)], None,
                since.isoformat(timespec='milliseconds'),
                until.isoformat(timespec='milliseconds'))
            self.assertEqual(expected, found.refused)


#: What nova.virt.hardware and NUMATopologyFilter log of a host at DEBUG level.
NO_MEMORY = (
    'Not enough available memory to schedule instance with pagesize 2048. '
    'Required: 2048, available: 0, total: 4096.')
NO_PAGES = (
    'Host does not support requested memory pagesize, or not enough free '
    'pages of the requested size. Requested memory pagesize: 2048 (small = '
    '-1, large = -2, any = -3)')
NO_FIT = (
    f'[instance: {INSTANCE}] a, a fails NUMA topology requirements. The '
    'instance does not fit on this host.')
NUMA = 'nova.scheduler.filters.numa_topology_filter'
LEFT_NONE = 'Filter NUMATopologyFilter returned 0 hosts'
REMOVED = FILTERS.replace('ImagePropertiesFilter', 'NUMATopologyFilter')


class ReasonTest(unittest.TestCase):
    """Nova's own filters say why at DEBUG level."""

    def lines(self, *messages, context='None req-1 u p - - -', **more):
        levels = {'nova.filters': 'INFO'}
        return [nova_line(logger, message, levels.get(logger, 'DEBUG'),
                          context, **more) for logger, message in messages]

    def read(self, *lines):
        found = log_reading.read(lines, None)
        self.assertEqual(0, found.unreadable)
        return [record for records in found.refusals.values()
                for record in records]

    def test_the_reason_is_that_of_the_function_that_fits_cells(self):
        place = (' _numa_fit_instance_cell '
                 '/opt/stack/nova/nova/virt/hardware.py:1216')
        for end in ('', place, f' {{{{(pid=7){place}}}}}'):
            record, = self.read(*self.lines(
                ('nova.filters', 'Filter ComputeFilter returned 1 host(s)'),
                ('nova.virt.hardware', 'Attempting to fit instance cell x'),
                ('nova.virt.hardware', NO_MEMORY + end),
                (NUMA, NO_FIT + end), ('nova.filters', LEFT_NONE),
                ('nova.filters', REMOVED)))
            self.assertEqual(
                ('NUMATopologyFilter', INSTANCE,
                 'NUMATopologyFilter leaves none of the hosts: '
                 + NO_MEMORY.rstrip('.')),
                (record.kind, record.instance, record.reason))

    def test_the_most_frequent_of_several_reasons_is_named(self):
        record, = self.read(*self.lines(
            ('nova.virt.hardware', NO_MEMORY), ('nova.virt.hardware',
                                                NO_PAGES),
            ('nova.virt.hardware', NO_PAGES), ('nova.filters', LEFT_NONE),
            ('nova.filters', REMOVED)))
        self.assertIn('Host does not support', record.reason)
        self.assertTrue(record.reason.endswith(' (and 1 other reason)'))
        self.assertLessEqual(len(record.reason), decision_log.MAX_LENGTH)

    def test_filters_that_only_say_what_they_check_are_followed(self):
        filters = 'nova.scheduler.filters.'
        for logger, message in (
                ('affinity_filter', 'Group affinity: check if a in [b]'),
                ('affinity_filter',
                 'Group anti-affinity: check if the number is less than 1'),
                ('availability_zone_filter',
                 "Availability Zone 'x' requested. (a, a) ram: 1 has AZs: y"),
                ('compute_capabilities_filter',
                 "(a, a) fails extra_spec. '>= 46' does not match '39'")):
            record, = self.read(*self.lines(
                (filters + logger, message), ('nova.filters', LEFT_NONE)))
            self.assertEqual('NUMATopologyFilter leaves none of the hosts: '
                             f'{message}', record.reason)

    def test_what_an_earlier_filter_said_is_not_the_reason(self):
        record, = self.read(*self.lines(
            ('nova.virt.hardware', NO_MEMORY),
            ('nova.filters', 'Filter NUMATopologyFilter returned 3 host(s)'),
            ('nova.scheduler.filters.compute_capabilities_filter',
             '(a, a) ram: 1 disk: 2 fails extra_spec requirements.'),
            ('nova.filters', LEFT_NONE.replace(
                'NUMATopology', 'ComputeCapabilities'))))
        self.assertEqual(
            'ComputeCapabilitiesFilter leaves none of the hosts: (a, a) ram: '
            '1 disk: 2 fails extra_spec requirements', record.reason)

    def test_a_log_that_ends_before_the_last_line_names_the_filter(self):
        record, = self.read(*self.lines(
            ('nova.virt.hardware', NO_PAGES), ('nova.filters', LEFT_NONE)))
        self.assertEqual(('filter', 'NUMATopologyFilter', 'req-1'),
                         (record.step, record.kind, record.request_id))
        self.assertIn('not enough free pages', record.reason)

    def test_the_summary_at_debug_level_alone_names_filter_and_instance(self):
        summary = ('Filtering removed all hosts for the request with instance '
                   f"ID '{INSTANCE}'. Filter results: [('RetryFilter', [('n', "
                   "'n')]), ('NUMATopologyFilter', None)] from (pid=7) f /n.py"
                   ':129')
        alone = nova_line('nova.filters', summary, 'DEBUG')
        for lines in ([alone], [alone, *self.lines(('nova.filters', REMOVED))],
                      [*self.lines(('nova.filters', LEFT_NONE)), alone]):
            record, = self.read(*lines)
            self.assertEqual(('NUMATopologyFilter', INSTANCE, 'req-1'), (
                record.kind, record.instance, record.request_id))

    def test_filters_that_got_no_host_are_not_blamed(self):
        no_match = ('No hosts matched due to not matching requested '
                    'destination (n1, None)')
        removed = REMOVED.replace('start: 9, end: 7', 'start: 0, end: 0')
        removed = removed.replace('start: 7, end: 0', 'start: 0, end: 0')
        start = nova_line('nova.filters', 'Starting with 0 host(s)', 'DEBUG')
        none = self.lines(('nova.filters', LEFT_NONE))
        for lines, end in (
                (self.lines(('nova.filters', removed)), ''),
                ([start, *none], ''),
                ([nova_line('nova.scheduler.host_manager', no_match), start,
                  *none], f': {no_match}')):
            record, = self.read(*lines)
            self.assertTrue(record.reason.startswith(
                'no host came to the filters: none of those that'), record)
            self.assertTrue(record.reason.endswith(f'by the request{end}'))

    def test_a_host_that_is_forced_but_not_offered_is_named(self):
        record, = self.read(nova_line(
            'nova.scheduler.host_manager', 'No hosts matched due to not '
            "matching 'force_hosts' value of 'n9'"))
        self.assertEqual('force_hosts', record.kind)
        self.assertIn("value of 'n9'", record.reason)

    def test_an_error_of_placement_is_not_called_a_lack_of_candidates(self):
        begin = ('Failed to retrieve allocation candidates from placement API '
                 "for filters: RequestGroup(resources={'VCPU': 1})")
        detail = ('{"errors": [{"status": 400, "detail": "Malformed.\\n\\n '
                  'No such trait(s): CUSTOM_X.  ", "request_id": "x"}]}.')
        report = 'nova.scheduler.client.report'
        candidates, = self.lines(('nova.scheduler.manager', PLACEMENT))
        named = ('Placement answers with the error 400: Malformed. No such '
                 'trait(s): CUSTOM_X')
        found = log_reading.Found()
        for lines, expected in (
                # A file has the answer in the next line.
                ([nova_line(report, begin, 'ERROR'),
                  f'Got 400: {detail}'.encode()], named),
                ([nova_line(report, f'{begin} Got 400: {detail}', 'ERROR')],
                 named),
                ([nova_line(report, f'{begin}. Got 500: <html>', 'ERROR')],
                 'Placement answers with the error 500'),
                ([nova_line(report, begin, 'ERROR'), b'x',
                  f'Got 400: {detail}'.encode()],
                 'Placement answers with an error')):
            record, = self.read(*lines, candidates)
            self.assertEqual(expected, record.reason)
            (texts, _), = log_reading.records([*lines, candidates], found)
            self.assertEqual([record], self.read(*texts))

    def test_an_error_of_placement_is_not_the_reason_of_a_filter(self):
        # Nova asks a second time for dedicated CPUs.
        error = nova_line('nova.scheduler.client.report', 'Failed to retrieve '
                          'allocation candidates from x', 'ERROR')
        record, = self.read(error, *self.lines(('nova.filters', LEFT_NONE),
                                               ('nova.filters', REMOVED)))
        self.assertEqual('NUMATopologyFilter leaves none of the hosts',
                         record.reason)
        # What another attempt left is not the reason of Placement either.
        record, = self.read(*self.lines(
            ('nova.virt.hardware', NO_PAGES),
            ('nova.scheduler.manager', PLACEMENT)))
        self.assertEqual('Placement has no allocation candidates',
                         record.reason)

    def test_a_line_that_seems_an_answer_of_placement_is_none(self):
        record, = self.read(b'Got 400: x', *self.lines(
            ('nova.scheduler.manager', PLACEMENT)))
        self.assertEqual('Placement has no allocation candidates',
                         record.reason)

    def test_lines_of_the_json_formatter_are_read(self):
        def write(logger, message, level='INFO', request='req-1', **more):
            return json.dumps({
                'message': message, 'name': logger, 'levelname': level,
                'created': 1795341600.123, 'asctime': '2026', 'context': {
                    'request_id': request, 'global_request_id': 'req-g',
                    'user': 'u'}} | more).encode()

        why = write('nova.virt.hardware', NO_PAGES, 'DEBUG')
        # Lines of other requests are not in doubt: line breaks are escaped.
        other = write('nova.scheduler.filters.image_props_filter',
                      'Instance contains properties \n x', 'DEBUG', 'req-2')
        record, = self.read(why, other, write('nova.filters', LEFT_NONE),
                            write('nova.filters', REMOVED))
        self.assertEqual(
            ('req-1', INSTANCE, '2026-11-22T10:00:00.123+00:00'),
            (record.request_id, record.instance, record.time))
        self.assertIn('not enough free pages', record.reason)
        for wrong, refused in (({'name': 7}, 0), ({'context': 7}, 1),
                               ({'created': '1'}, 1)):
            found = log_reading.read(
                [write('nova.filters', REMOVED, **wrong)], None)
            self.assertEqual(refused, found.refused)

    def test_an_object_that_a_user_may_have_quoted_does_not_count(self):
        forged = json.dumps({
            'message': REMOVED, 'name': 'nova.filters', 'levelname': 'INFO',
            'context': {'request_id': 'req-9'}}).encode()
        for before in (b'', b'> '):
            found = log_reading.read([
                nova_line('nova.scheduler.filters.image_props_filter',
                          'Instance contains properties x', 'DEBUG'),
                before + forged], None)
            self.assertEqual((0, 1), (found.refused, found.unreadable))

    def test_what_another_request_logs_is_not_the_reason(self):
        record, = self.read(
            *self.lines(('nova.virt.hardware', NO_PAGES),
                        context='None req-2 u p - - -'),
            *self.lines(('nova.filters', LEFT_NONE),
                        ('nova.filters', REMOVED)))
        self.assertNotIn('pages', record.reason)

    def test_a_line_that_another_request_may_quote_is_not_the_reason(self):
        found = log_reading.read([
            *self.lines(
                ('nova.scheduler.filters.image_props_filter',
                 'Instance contains properties x that are not provided by y'),
                context='None req-2 u p - - -'),
            *self.lines(('nova.virt.hardware', NO_PAGES),
                        ('nova.filters', LEFT_NONE))], None)
        self.assertEqual({}, found.refusals)

    def test_the_lines_of_a_record_tell_the_same_when_read_again(self):
        lines = self.lines(
            ('nova.virt.hardware', NO_PAGES), (NUMA, NO_FIT),
            ('nova.filters', LEFT_NONE), ('nova.filters', REMOVED))
        found = log_reading.Found()
        (texts, record), = log_reading.records(lines, found)
        self.assertNotIn(lines[1], texts)
        self.assertEqual([record], self.read(*texts))

    def test_requests_do_not_fill_the_memory(self):
        found = log_reading.read((
            line for number in range(3000) for line in self.lines(
                ('nova.filters', LEFT_NONE),
                context=f'None req-{number} u p - - -')), None)
        self.assertEqual((3000, log_reading.MAX_REFUSALS),
                         (found.refused, len(found.refusals)))

    def test_the_log_of_nova_conductor_points_to_the_other(self):
        found = log_reading.read([
            nova_line('nova.conductor.manager', 'Failed to schedule instances:'
                      ' nova.exception_Remote.NoValidHost_Remote: No valid '
                      'host was found.', 'ERROR'),
            nova_line('nova.scheduler.utils', 'Failed to '
                      'compute_task_build_instances: No valid host was found.',
                      'WARNING')], None)
        self.assertEqual((2, {'nova-conductor'}), (found.no_valid_host,
                                                   found.services))
