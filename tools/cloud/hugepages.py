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

"""Take huge pages from the kernel, and give back exactly those."""

import pathlib
import time

from tools.cloud import errors
from tools.cloud import settings as cloud_settings

KNOB = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages')


def reserve(settings: cloud_settings.Settings) -> None:
    """Add the cloud's pages to what the machine has.

    The former number is written down first, so that a killed cloud can
    still give its pages back.

    :raises CloudError: the kernel does not have that many
    """
    if not KNOB.exists():
        raise errors.CloudError('this kernel has no 2 MiB pages')
    record = _record(settings)
    if not record.exists():
        record.write_text(KNOB.read_text())
    wanted = int(record.read_text()) + settings.pages
    for _ in range(10):
        KNOB.write_text(f'{wanted}\n')
        if int(KNOB.read_text()) >= wanted:
            return
        # Memory is in pieces: give up caches, let the kernel join pieces.
        pathlib.Path('/proc/sys/vm/drop_caches').write_text('3\n')
        pathlib.Path('/proc/sys/vm/compact_memory').write_text('1\n')
        time.sleep(1)
    got = int(KNOB.read_text())
    restore(settings)
    raise errors.CloudError(
        f'the kernel gives {got} pages of 2 MiB of the {wanted} needed; free '
        'some memory, or choose fewer by HPCVIRT_CLOUD_PAGES')


def restore(settings: cloud_settings.Settings) -> None:
    """Set the former number again."""
    record = _record(settings)
    if record.exists():
        KNOB.write_text(record.read_text())
        record.unlink()


def _record(settings: cloud_settings.Settings) -> pathlib.Path:
    return settings.state / 'hugepages-before'
