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

"""Explain refusals on the controller, and make what would help.

For each kind of refusal a request is made that Nova refuses; ``hpcvirt
explain`` must say why, and after the change that it names, or that follows
from the reason, Nova must accept the request.
"""

from tools.cloud import cloud as clouds
from tools.cloud_checks import load
from tools.cloud_checks import tempest_run

#: Seconds that all requests may take.
LIMIT_S = 400


def check(cloud: clouds.Cloud) -> None:
    """Make and explain the requests.

    :raises CloudError: if an explanation is wrong or does not help
    """
    settings = cloud.settings
    load.finish(load.script(
        cloud, 'fleet_client.py', settings.program('hpcvirt'),
        str(settings.etc / 'nova' / 'nova-scheduler.conf'),
        tempest_run.images(settings)['simulated']),
        'explaining refusals', LIMIT_S)
