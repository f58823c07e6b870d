# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.tune import experiment
from tests import pages


class TestReference(unittest.TestCase):
    def test_the_page_has_all_keys_of_the_document(self):
        page = pages.read('reference/experiment-document')
        for kind in (experiment.Experiment, experiment.Program,
                     experiment.Change, experiment.Limits, experiment.Never):
            for field in dataclasses.fields(kind):
                key = field.metadata.get('key', field.name)
                if key != 'schema_version':
                    self.assertRegex(page, rf'``{key}(:.*)?``')
