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

"""An OpenStack Compute in one process, on machines that exist only on paper.

Nova's API, conductor and scheduler, Placement, and one nova-compute with
Nova's fake libvirt for each :class:`hpcvirt.model.host.Host`: no server, no
root, no port. Tests and the demonstration boot instances on it and read from
the domain XML, as libvirt would get it, where each one sits.

Nova must choose between native threads and eventlet before anything else of
it is imported, so that choice is made here. It is eventlet: only with it do
the test fixtures of all supported releases work, and keep their databases in
memory. With native threads they use files, in which SQLite now and then
refuses a write because another thread has written since ("database is
locked"). hpcvirt itself knows neither.
"""

import importlib
import logging
import os
import warnings


def _choose_threads() -> None:
    os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = 'false'
    # Both say that eventlet will go away. Whoever runs these knows.
    logging.getLogger('nova.monkey_patch').setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        importlib.import_module('nova.monkey_patch').patch()


_choose_threads()
