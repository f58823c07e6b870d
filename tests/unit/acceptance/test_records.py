# SPDX-License-Identifier: Apache-2.0

"""The records of acceptances."""

import dataclasses
import json
import os
import pathlib

import testtools

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import records
from hpcvirt.bench.model import judgement
from tests.builders import folders
from tests.unit.acceptance import test_acceptance

BEGUN = dataclasses.replace(test_acceptance.BEGUN, native='')


def at(hour, **more):
    return dataclasses.replace(
        BEGUN, began_at=f'2026-11-22T{hour}:00:00+00:00', **more)


class RecordsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.data = str(folders.make(self))
        self.records = records.Records(self.data)

    def test_what_is_written_is_read(self):
        ended = at(21, result=judgement.VerdictResult.FAIL, ended_at='later',
                   machine={'vendor': 'Dell'}, audit=())
        for each in (ended, BEGUN):
            self.records.write(each)
        self.assertEqual((BEGUN, ended), self.records.read())
        self.assertTrue(pathlib.Path(self.records.path(ended)).exists())
        self.assertEqual(0o700, os.stat(
            pathlib.Path(self.data, 'acceptances')).st_mode & 0o777)

    def test_the_same_request_finds_what_it_began(self):
        self.records.write(BEGUN)
        self.records.write(at(21, request='other'))
        self.assertEqual(BEGUN, self.records.unfinished('n1', 'r'))
        self.assertIsNone(self.records.unfinished('n2', 'r'))
        self.records.write(dataclasses.replace(BEGUN, ended_at='later'))
        self.assertIsNone(self.records.unfinished('n1', 'r'))

    def test_the_last_acceptance_refuses_a_host(self):
        fail, good = judgement.VerdictResult.FAIL, judgement.VerdictResult.PASS
        self.records.write(at(20, result=fail, ended_at='x'))
        self.records.write(at(20, host='n2', result=fail, ended_at='x'))
        self.records.write(at(21, host='n2', result=good, ended_at='x'))
        self.records.write(at(22))
        self.assertEqual({'n1'}, self.records.refused())
        self.assertEqual(2, self.records.count_hosts())

    def test_the_last_gate_refuses_a_host_too(self):
        fail, good = judgement.VerdictResult.FAIL, judgement.VerdictResult.PASS

        def gated(hour, word, **more):
            return at(hour, gate=acceptance.decide_gate('local', [
                acceptance.GateCheck('clock', word is good, 'slow', 'fast')],
                None, (), ()), ended_at='x', **more)
        self.records.write(gated(19, fail, host='n0', parts=(), result=fail))
        self.records.write(gated(20, fail, parts=(), result=fail))
        self.assertEqual({'n0', 'n1'}, self.records.refused())
        self.assertEqual(0, self.records.count_hosts())
        self.records.write(gated(21, good, result=good))
        self.assertEqual({'n0'}, self.records.refused())
        # A gate does not show what failed in guests.
        self.records.write(at(22, result=fail, ended_at='x'))
        self.records.write(gated(23, good, parts=(), result=good))
        self.assertEqual({'n0', 'n1'}, self.records.refused())

    def test_a_repair_begins_a_new_time(self):
        self.assertEqual('', self.records.repaired_at('n1'))
        for hour, text in ((18, ''), (19, 'DIMM'), (20, ''), (21, 'riser'),
                           (22, 'riser'), (23, '')):
            self.records.write(at(hour, repaired=text))
        self.assertEqual(at(21).began_at, self.records.repaired_at('n1'))
        self.assertEqual('', self.records.repaired_at('n2'))

    def test_a_damaged_record_is_named(self):
        path = pathlib.Path(self.records.path(BEGUN))
        self.records.write(BEGUN)
        plain = json.loads(path.read_text())
        for text in ('', '[]', '{}', json.dumps({**plain, 'x': 1}),
                     json.dumps({**plain, 'schema_version': 2})):
            path.write_text(text)
            error = self.assertRaises(exception.InvalidInput,
                                      self.records.read)
            self.assertIn(str(path), str(error))

    def test_a_file_cannot_be_named_after_anything(self):
        for name in ('', '../x', '.x', 'a/b', 'a b', 'x' * 300):
            self.assertRaises(exception.InvalidInput, records.check_host, name)
        for name in ('n1', 'node-1.example.org', 'N_1'):
            records.check_host(name)
