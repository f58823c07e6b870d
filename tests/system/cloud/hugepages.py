# SPDX-License-Identifier: Apache-2.0

"""Reserve huge pages for guests, and release only these."""

import pathlib

from hpcvirt import waiting
from tests.system.cloud import errors
from tests.system.cloud import settings as cloud_settings

KNOB = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages')


def reserve(settings: cloud_settings.Settings) -> None:
    """Add the cloud's pages to those that the machine has reserved.

    The former number is recorded first, so that the pages of a killed cloud
    can still be released.

    :raises CloudError: if the kernel cannot reserve that many
    """
    if not KNOB.exists():
        raise errors.CloudError('this kernel does not support pages of 2 MiB')
    record = _record(settings)
    if not record.exists():
        record.write_text(KNOB.read_text())
    wanted = int(record.read_text()) + settings.pages
    reserved = waiting.poll(lambda: _request(wanted),
                            lambda reserved: reserved >= wanted, 10, 1)
    if reserved < wanted:
        restore(settings)
        raise errors.CloudError(
            f'the kernel reserved {reserved} of {wanted} pages of 2 MiB; free '
            'some memory, or set HPCVIRT_CLOUD_PAGES to a smaller number')


def _request(wanted: int) -> int:
    """Ask the kernel for pages and return how many it has reserved."""
    KNOB.write_text(f'{wanted}\n')
    reserved = int(KNOB.read_text())
    if reserved < wanted:
        # The free memory is fragmented: drop caches and compact it.
        pathlib.Path('/proc/sys/vm/drop_caches').write_text('3\n')
        pathlib.Path('/proc/sys/vm/compact_memory').write_text('1\n')
    return reserved


def restore(settings: cloud_settings.Settings) -> None:
    """Set the number of pages that the machine had reserved before."""
    record = _record(settings)
    if record.exists():
        KNOB.write_text(record.read_text())
        record.unlink()


def _record(settings: cloud_settings.Settings) -> pathlib.Path:
    return settings.state / 'hugepages-before'
