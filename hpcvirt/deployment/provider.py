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

"""Write the traits of a host that do not change.

nova-compute reads ``provider.yaml`` only when it starts, and leaves a trait in
Placement that was taken out of the file. What changes while a host runs (its
overhead, its quarantine) is therefore set through the Placement API, and not
here. The file has the traits that the planned flavors require.
"""

from typing import Any

from hpcvirt.flavors import planned as plans
from hpcvirt.specs import resources
from hpcvirt.specs import vocabulary

#: Traits that "hpcvirt host accept" sets.
_CHANGING = 'CUSTOM_HPCVIRT_'


def document(planned: plans.PlannedHost,
             plan: plans.Plan) -> dict[str, Any] | None:
    """Write the document; None for a host that needs no trait."""
    found: set[str] = set()
    for item in plan.flavors:
        if item.per_host.get(planned.name):
            found |= resources.traits(item.flavor.extra_specs,
                                      vocabulary.REQUIRED)
    traits = sorted(trait for trait in found if trait.startswith('CUSTOM_')
                    and not trait.startswith(_CHANGING))
    if not traits:
        return None
    return {
        'meta': {'schema_version': '1.0'},
        'providers': [{
            'identification': {'uuid': '$COMPUTE_NODE'},
            'traits': {'additional': traits}}],
    }
