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

"""What is found in the text of a log, whoever has written it."""

import json
import time
import unittest

from hpcvirt.fit import reasons
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import refusal
from hpcvirt.fleet import shadow


def a_refusal(request='req-1', hosts=3, **more):
    return refusal.Refusal(**{
        'time': '2026-11-22T10:00:00+00:00', 'request_id': request,
        'instance': 'uuid-1', 'flavor': 'hpc', 'hosts': hosts,
        'asked': refusal.Asked(vcpus=4, ram_mib=1024),
        'groups': (refusal.Group(
            code=reasons.Code.NO_CELL, root=reasons.Code.FREE_PCPUS,
            hosts=hosts, names=('a', 'b'), reason='no cell has room'),),
        **more})


def a_comparison(request='req-1', flavor='hpc', passed=2, novas=3,
                 differences=(), **more):
    return shadow.Comparison(**{
        'time': '2026-11-22T10:00:00+00:00', 'request_id': request,
        'instance': 'uuid-1', 'flavor': flavor, 'hosts': 3, 'compared': 3,
        'passed': passed, 'passed_by_nova': novas,
        'differences': differences, **more})


def a_difference(hosts=1, direction=shadow.Direction.HPCVIRT_REFUSES,
                 code=reasons.Code.CLAIM_REFUSES):
    return shadow.Difference(direction=direction, code=code, hosts=hosts,
                             names=('a',), reason='why')


def line(document):
    return (f'No host of 3 can take the guest: x; instance y; {document}\n'
            ).encode()


LINE = line(refusal.text(a_refusal()))


class FindTest(unittest.TestCase):

    def found(self, *lines, request=None):
        return log_reading.read(lines, request)

    def assert_read(self, *lines, refused=1, unreadable=0):
        found = self.found(*lines)
        self.assertEqual((refused, unreadable),
                         (found.refused, found.unreadable))
        for item in found.refusals:
            self.assertEqual(a_refusal(), item)

    def test_any_prefix_may_stand_before_it(self):
        for prefix in (
                b'', b'2026-11-22 10:00:00.123 7 INFO x [None req-1 - - -] ',
                b'Nov 22 10:00:00 ctl nova-scheduler[7]: ', b'\xff\xfe {x} '):
            self.assert_read(b'something else\n', prefix + LINE, b'\n')

    def test_it_is_found_in_json_however_often_that_was_escaped(self):
        text = LINE.decode()
        for depth in range(1, 4):
            text = json.dumps({'asctime': '{', 'message': text, 'n': 1})
            with self.subTest(depth=depth):
                self.assert_read(text.encode())
                self.assert_read(b'Nov 22 ctl nova[7]: ' + text.encode())

    def test_the_message_may_be_in_an_inner_object(self):
        self.assert_read(json.dumps({
            'host': 'ctl', 'log': {'level': 'INFO', 'record': {
                'message': LINE.decode()}}}).encode())

    def test_the_object_of_journald_is_read(self):
        self.assert_read(json.dumps({
            '__REALTIME_TIMESTAMP': '1', 'MESSAGE': LINE.decode()}).encode())

    def test_lines_that_ran_into_each_other_are_told_apart(self):
        self.assert_read(LINE[:-60] + LINE, unreadable=1)
        self.assert_read(LINE.rstrip() + LINE, refused=2)

    def test_what_is_cut_is_counted(self):
        end = LINE.index(b'{"schema')
        for length in (end, end + 1, end + 30, len(LINE) - 2):
            self.assert_read(LINE[:length], refused=0, unreadable=1)
        escaped = json.dumps({'message': LINE.decode()}).encode()
        self.assert_read(escaped[:-30], refused=0, unreadable=1)

    def test_nothing_but_the_document_itself_is_accepted(self):
        plain = json.loads(refusal.text(a_refusal())[len(refusal.MARK):])
        for wrong in (
                {}, [], 3, {**plain, 'schema_version': 2},
                {**plain, 'more': 1}, {**plain, 'hosts': '3'},
                {**plain, 'flavor': None}, {**plain, 'hosts': float('nan')},
                {**plain, 'groups': [{**plain['groups'][0], 'code': 'x'}]},
                {**plain, 'groups': [{**plain['groups'][0],
                                      'hosts': 10 ** 9}]}):
            with self.subTest(wrong=wrong):
                self.assert_read(line(refusal.MARK + json.dumps(wrong)),
                                 refused=0, unreadable=1)
        twice = refusal.text(a_refusal()).replace('{', '{"hosts":1,', 1)
        self.assert_read(line(twice), refused=0, unreadable=1)

    def test_hostile_lines_take_no_time(self):
        start = time.process_time()
        for hostile in (
                b'hpcvirt.refusal=' * 60000,
                b'hpcvirt.refusal={"a":' * 50000,
                b'hpcvirt.refusal=' + b'[' * 900000,
                b'hpcvirt.refusal={\\' * 50000,
                b'{"a":' * 100000 + b'hpcvirt.refusal={\\"'):
            self.assertEqual(0, self.found(hostile).refused)
        self.assertLess(time.process_time() - start, 2)

    def test_a_request_is_found_by_its_ids_and_its_instance(self):
        wanted = line(refusal.text(a_refusal(
            'req-2', global_request_id='req-g', instance='uuid-2')))
        for name in ('req-2', 'req-g', 'uuid-2'):
            found = self.found(LINE, wanted, LINE, request=name)
            self.assertEqual(('req-2', 1, 2), (
                found.refusals[0].request_id, found.refused, found.others))

    def test_the_last_refusals_are_kept_and_all_are_counted(self):
        lines = [line(refusal.text(a_refusal(f'req-{number}')))
                 for number in range(log_reading.MOST_REFUSALS + 2)]
        found = self.found(*lines)
        self.assertEqual(len(lines), found.refused)
        self.assertEqual(['req-2', 'req-1001'], [
            found.refusals[place].request_id for place in (0, -1)])


class ShadowTest(unittest.TestCase):

    def sums(self, *comparisons):
        return log_reading.read(
            [line(shadow.text(item)) for item in comparisons], None).shadow

    def test_decisions_are_counted_by_reason_and_by_flavor(self):
        sums = self.sums(
            a_comparison('req-1', passed=3),
            a_comparison('req-2', differences=(a_difference(),)),
            a_comparison('req-3', 'big', passed=0, differences=(
                a_difference(2), a_difference(
                    direction=shadow.Direction.NOVA_REFUSES, code=None))),
            a_comparison('req-4', 'big', passed=1, novas=0, compared=2))
        self.assertEqual(
            (4, 2, 12, 11, 1, 1),
            (sums.requests, sums.differing, sums.hosts, sums.compared,
             sums.only_nova, sums.only_hpcvirt))
        self.assertEqual({
            (shadow.Direction.HPCVIRT_REFUSES, reasons.Code.CLAIM_REFUSES):
            log_reading.Kind(2, 3, ['req-2', 'req-3']),
            (shadow.Direction.NOVA_REFUSES, None):
            log_reading.Kind(1, 1, ['req-3'])}, sums.by_reason)
        self.assertEqual({'hpc': log_reading.Flavor(2, 1, 1),
                          'big': log_reading.Flavor(2, 1, 3)},
                         sums.by_flavor)

    def test_a_comparison_that_failed_is_counted(self):
        sums = self.sums(a_comparison(error='KeyError: 3'), a_comparison())
        self.assertEqual((2, 1, 'KeyError: 3'),
                         (sums.requests, sums.errors, sums.error))

    def test_names_of_flavors_do_not_fill_the_memory(self):
        sums = self.sums(*(a_comparison(flavor=f'f{number}')
                           for number in range(1200)))
        self.assertEqual(1200, sums.requests)
        self.assertEqual(1000, len(sums.by_flavor))
