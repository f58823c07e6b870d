# SPDX-License-Identifier: Apache-2.0

"""An embedded Nova: OpenStack Compute in one process, on simulated hosts.

Nova's API, conductor and scheduler, Placement, and one nova-compute with
Nova's fake libvirt for each :class:`hpcvirt.model.host.Host`, without servers,
root or ports. Tests and the demonstration boot instances on it, and read their
placement from the domain XML that Nova passes to libvirt.

Nova selects native threads or eventlet when it is first imported, so this
package selects before that: what nova-scheduler and nova-api use by default.
hpcvirt depends on neither. ``OS_NOVA_DISABLE_EVENTLET_PATCHING`` selects the
other.

The garbage collector runs less often, because many objects live as long as the
process; this saves a tenth of the time. All regular expressions of the routes
of Nova's API are kept, since each Nova of a process compiles them.
"""

import gc
import importlib
import importlib.metadata
import logging
import os
import re
import warnings

#: From this release on, nova-scheduler and nova-api use native threads by
#: default, and nova-compute can.
_NATIVE_THREADS = 33


def _choose_threads() -> None:
    release = int(importlib.metadata.version('nova').split('.')[0])
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING',
                          'true' if release >= _NATIVE_THREADS else 'false')
    # Both warn: that eventlet will be removed, or that threads are new.
    logging.getLogger('nova.monkey_patch').setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        importlib.import_module('nova.monkey_patch').patch()


_choose_threads()
gc.set_threshold(100_000, 50, 100)
re._MAXCACHE = 10_000  # type: ignore[attr-defined]
