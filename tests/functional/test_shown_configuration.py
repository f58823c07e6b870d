# SPDX-License-Identifier: Apache-2.0

"""The configurations in the documents do what the text says.

Each is loaded as the service that reads it would load it: through oslo.config
with the options of Nova, of hpcvirt and of its Tempest plugin.
"""

import pathlib
import re
import tempfile
import unittest

import nova.conf
import yaml
from keystoneauth1 import loading
from nova.compute import provider_config
from nova.conf import devices
from nova.conf import neutron
from nova.scheduler import filters
from nova.scheduler import weights
from oslo_config import cfg

from hpcvirt import yaml_document
from hpcvirt.cmd.host import supervise
from hpcvirt.conf import filters as filter_options
from hpcvirt.flavors import profile
from hpcvirt.fleet import document
from hpcvirt.nova import config
from hpcvirt.nova import weights as own_weights
from hpcvirt.tempest_plugin import config as tempest_config
from tests import shown

NOVA = 'nova.conf'
TEMPEST = 'tempest.conf'
PROFILE = 'profile.yaml'
PROVIDER = 'provider.yaml'
FLEET = 'fleet.yaml'
CLASSES = 'classes.yaml'
#: tests/integration/devstack runs it.
LOCAL = 'local.conf'

#: Files of other programs.
OF_OTHERS = {'prometheus.yml', 'rules.yml', 'hpcvirt.service', 'ipa.yml',
             'watcher.conf', 'globals.yml', 'kolla.yml', 'nova-hpcvirt.yaml',
             'placement.conf', 'heat.yaml'}

#: "``[group]option``" and "``[group]option = value``" within a sentence.
NAMED = re.compile(r'``\[(\w+)\]\s*(\w+)(?:\s*=\s*([^`]+))?``')


def blocks(file, mention=''):
    """List the blocks for a file that contain a text."""
    return [block for block in shown.configurations()
            if block.file == file and mention in block.text]


class ShownConfigurationTest(unittest.TestCase):
    def load(self, file, text=''):
        """Load a file.

        :returns: the options, and the lines of the file by group and option
        """
        conf, sections = nova.conf.CONF, {}
        if file == TEMPEST:
            conf = cfg.ConfigOpts()
            tempest_config.register_opts(conf)
        else:
            config.register()
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as written:
            written.write(text)
            written.flush()
            self.addCleanup(conf.reset)
            conf([], project='nova', default_config_files=[written.name],
                 default_config_dirs=[])
            cfg.ConfigParser(written.name, sections).parse()
        if file == NOVA:
            devices.register_dynamic_opts(conf)
            neutron.register_dynamic_opts(conf)
            for option in loading.get_auth_plugin_conf_options('password'):
                # Other files do not have it.
                option.required = False
                conf.register_opt(option, 'vendordata_dynamic_auth')
        return conf, {(group, name): lines
                      for group, options in sections.items()
                      for name, lines in options.items()}

    def test_every_configuration_names_its_file(self):
        seen = {block.file for block in shown.configurations()}
        self.assertLessEqual({NOVA, TEMPEST, LOCAL}, seen)
        self.assertLessEqual(seen, {NOVA, TEMPEST, PROFILE, PROVIDER, LOCAL,
                                    FLEET, CLASSES, *OF_OTHERS})

    def test_files_of_others_are_yaml(self):
        names = [name for name in OF_OTHERS
                 if name.endswith(('.yml', '.yaml'))]
        for file in names:
            for block in blocks(file):
                with self.subTest(where=str(block)):
                    self.assertTrue(yaml.safe_load(block.text))

    def test_classes_of_hosts_are_read(self):
        for block in blocks(CLASSES):
            with tempfile.NamedTemporaryFile('w', suffix='.yaml') as written:
                written.write(block.text)
                written.flush()
                self.assertEqual({'cpu', 'gpu'}, set(
                    supervise.read_classes(written.name)))

    def test_fleets_are_read(self):
        for block in blocks(FLEET):
            with self.subTest(where=str(block)):
                self.assertTrue(document.read(yaml_document.value(
                    block.text, str(block)), str(block)).classes)

    def test_options_exist_and_none_of_one_line_is_repeated(self):
        for file in (NOVA, TEMPEST):
            for block in blocks(file):
                with self.subTest(where=str(block)):
                    conf, given = self.load(file, block.text)
                    for (group, name), lines in given.items():
                        self.assertIn(name, conf[group])
                        self.assertIsNotNone(conf[group][name])
                        option = conf._get_opt_info(name, group)['opt']
                        if not option.multi:
                            self.assertEqual(1, len(lines), name)

    def test_filters_are_novas_with_one_replaced(self):
        usual = set(self.load(NOVA)[0].filter_scheduler.enabled_filters)
        self.assertGreater(len(usual), 4)
        for block in blocks(NOVA, 'enabled_filters'):
            with self.subTest(where=str(block)):
                conf = self.load(NOVA, block.text)[0]
                chosen = conf.filter_scheduler
                available = {one.__name__ for one in
                             filters.HostFilterHandler().get_matching_classes(
                                 chosen.available_filters)}
                enabled = set(chosen.enabled_filters)
                novas = {'NUMATopologyFilter', 'PciPassthroughFilter'}
                self.assertLessEqual(usual, enabled)
                self.assertLessEqual(enabled, available)
                if block.page.stem == 'remove':
                    self.assertEqual(novas, enabled - usual)
                    continue
                self.assertIn('HPCTopologyFilter', enabled)
                if conf.hpcvirt.filter_mode == filter_options.ENFORCE:
                    self.assertNotIn('NUMATopologyFilter', enabled)
                    continue
                order = list(map(chosen.enabled_filters.index, (
                    'HPCTopologyFilter', 'NUMATopologyFilter',
                    'PciPassthroughFilter')))
                self.assertEqual(sorted(order), order)

    def test_weighers_are_all_of_novas_and_of_ours(self):
        classes = weights.HostWeightHandler().get_matching_classes
        novas = set(classes(['nova.scheduler.weights.all_weighers']))
        self.assertGreater(len(novas), 10)
        for block in blocks(NOVA, 'weight_classes'):
            with self.subTest(where=str(block)):
                chosen = self.load(NOVA, block.text)[0].filter_scheduler
                self.assertEqual(novas | set(own_weights.all_weighers()),
                                 set(classes(chosen.weight_classes)))

    def test_multipliers_are_shown_with_their_defaults(self):
        default = dict(self.load(NOVA)[0].hpcvirt)
        for block in blocks(NOVA, '_multiplier'):
            with self.subTest(where=str(block)):
                self.assertEqual(default,
                                 dict(self.load(NOVA, block.text)[0].hpcvirt))

    def test_profiles_are_accepted(self):
        for block in blocks(PROFILE):
            with self.subTest(where=str(block)):
                profile.build(yaml.safe_load(block.text), str(block))

    def test_providers_are_accepted(self):
        for block in blocks(PROVIDER):
            with self.subTest(where=str(block)):
                directory = self.enterContext(tempfile.TemporaryDirectory())
                pathlib.Path(directory, PROVIDER).write_text(block.text)
                self.assertTrue(
                    provider_config.get_provider_configs(directory))

    def test_options_in_sentences_exist_and_take_the_value(self):
        confs = [self.load(NOVA, '[neutron]\nphysnets = NAME\n')[0],
                 self.load(TEMPEST)[0]]
        seen = 0
        for page in shown.PAGES:
            for group, name, value in NAMED.findall(page.read_text()):
                with self.subTest(page=page.name, group=group, option=name):
                    known = [conf for conf in confs
                             if group in conf and name in conf[group]]
                    self.assertTrue(known)
                    for conf in known if value else ():
                        conf.set_override(name, value, group=group)
                        conf.clear_override(name, group=group)
                    seen += 1
        self.assertGreater(seen, 10)


if __name__ == '__main__':
    unittest.main()
