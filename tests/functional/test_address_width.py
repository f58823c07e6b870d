# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import types
import unittest

from nova import objects
from nova.scheduler.filters import compute_capabilities_filter

from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import host_settings
from hpcvirt.model import flavor as flavor_model
from tests.builders import hosts
from tests.builders import plans

BITS = 'hw:maxphysaddr_bits'


class AddressWidthTest(unittest.TestCase):
    def test_hosts_are_refused_as_by_novas_filter(self):
        objects.register_all()
        nova = compute_capabilities_filter.ComputeCapabilitiesFilter()
        (planned,) = plans.plan(hosts.build()).hosts
        answers = set()
        for found in (39, 46, 52):
            host = dataclasses.replace(planned.host, address_bits=found)
            state = host_settings.make_empty_host(host, planned.settings)
            novas = types.SimpleNamespace(cpu_info=json.dumps(
                {'maxphysaddr': {'mode': 'emulate', 'bits': found}}))
            for wanted in ({}, {BITS: '39'}, {BITS: '46'}, {BITS: '47'},
                           {BITS: '52'}):
                specs = {'hw:maxphysaddr_mode': 'emulate', **wanted}
                spec = types.SimpleNamespace(flavor=objects.Flavor(
                    extra_specs=specs))
                guest = compiled_flavor.make(flavor_model.Flavor(
                    'f', 4, 4096, 0, specs))
                answer = placement.explain_unfit(guest, state) is None
                answers.add(answer)
                self.assertEqual(nova.host_passes(novas, spec), answer,
                                 (found, wanted))
        self.assertEqual({False, True}, answers)
