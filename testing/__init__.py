# SPDX-License-Identifier: Apache-2.0

"""An embedded Nova: OpenStack Compute in one process, on simulated hosts.

Nova's API, conductor and scheduler, Placement, and one nova-compute with
Nova's fake libvirt for each :class:`hpcvirt.model.host.Host`, without servers,
root or ports. Tests and the demonstration boot instances on it, and read their
placement from the domain XML that Nova passes to libvirt.

Nova selects native threads or eventlet when it is first imported, so this
package selects eventlet before that. Only with eventlet do the test fixtures
of all supported releases work and keep their databases in memory. With native
threads they use files, where SQLite sometimes rejects a write because another
thread has written ("database is locked"). hpcvirt depends on neither.

The garbage collector runs less often, because many objects live as long as the
process; this saves a tenth of the time.
"""

import gc
import importlib
import logging
import os
import warnings


def _choose_threads() -> None:
    os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = 'false'
    # Both warn that eventlet will be removed.
    logging.getLogger('nova.monkey_patch').setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        importlib.import_module('nova.monkey_patch').patch()


_choose_threads()
gc.set_threshold(20000, 50, 100)
