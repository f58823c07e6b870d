# SPDX-License-Identifier: Apache-2.0

"""oslo.config reads the nova.conf of the pages as they mean it."""

import json
import re
import tempfile
import textwrap
import unittest

from oslo_config import cfg

from tests import pages

BLOCK = re.compile(r'^( *)\.\. code-block:: ini\n(?:\1   :.*\n)*\n'
                   r'((?:\1   .*\n|\n)+)', re.MULTILINE)
LISTS = 'enabled_filters', 'weight_classes'


def blocks(page):
    """The configuration files that a page shows."""
    return [textwrap.dedent(match[2]) for match in BLOCK.finditer(
        pages.read(page))]


def read(text):
    """Read options of nova-scheduler and nova-compute as Nova does."""
    conf = cfg.ConfigOpts()
    conf.register_opts([
        cfg.MultiStrOpt('available_filters'),
        *(cfg.ListOpt(name, default=[]) for name in LISTS)],
        'filter_scheduler')
    conf.register_opts([cfg.MultiStrOpt('device_spec'),
                        cfg.MultiStrOpt('alias')], 'pci')
    with tempfile.NamedTemporaryFile('w') as file:
        file.write(text)
        file.flush()
        conf([], default_config_files=[file.name])
    return conf


class FiltersTest(unittest.TestCase):
    def test_lists_of_several_lines_are_read(self):
        for page in ('install/scheduler', 'admin/shadow-mode'):
            with self.subTest(page):
                text = next(text for text in blocks(page)
                            if 'available_filters' in text)
                found = read(text).filter_scheduler
                self.assertEqual(['nova.scheduler.filters.all_filters',
                                  'hpcvirt.nova.filters.all_filters'],
                                 found.available_filters)
                self.assertIn('HPCTopologyFilter', found.enabled_filters)
                for name in (*found.enabled_filters, *found.weight_classes):
                    self.assertRegex(name, r'\A[\w.]+\Z')

    def test_the_filter_is_off_where_the_page_says_so(self):
        found = read(blocks('install/remove')[0]).filter_scheduler
        self.assertEqual(['NUMATopologyFilter', 'PciPassthroughFilter'],
                         found.enabled_filters[-2:])
        self.assertNotIn('HPCTopologyFilter', found.enabled_filters)

    def test_devices_of_several_lines_are_read(self):
        found = read(blocks('admin/gpus')[0]).pci
        self.assertEqual('1db1', json.loads(
            found.device_spec[0])['product_id'])
        self.assertEqual('type-PF', json.loads(found.alias[0])['device_type'])
