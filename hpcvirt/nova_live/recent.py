# SPDX-License-Identifier: Apache-2.0

"""Read what a cloud was asked for, and what it moved, not long ago."""

import collections
import datetime
import typing
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping

from nova import context as nova_context
from nova import objects

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.nova_live import cell_hosts
from hpcvirt.nova_live import masking

#: The newest requests of this time are read, up to a number for each Nova
#: cell.
REQUESTS = datetime.timedelta(days=28)
MAX_REQUESTS = 10_000

_HOUR = datetime.timedelta(hours=1)


def count_requests() -> Mapping[str, int]:
    """Count the instances of each flavor that were requested in four weeks.

    Those that were refused, or deleted since, count as well, unless they were
    archived.

    :raises Unreachable: if a database cannot be read
    """
    return collections.Counter(
        instance.flavor.name for instance in _read(
            REQUESTS, lambda *query: objects.InstanceList.get_by_filters(
                *query, limit=MAX_REQUESTS, expected_attrs=['flavor']))
        if instance.flavor)


def find_budget(most: int) -> tuple[int, str]:
    """Find how many migrations may begin now.

    :param most: the most live and cold migrations in an hour, including those
        that others begin
    :returns: the number, which is 0 if one failed in the last hour, and why
    :raises Unreachable: if a database cannot be read
    """
    found = [each for each in _read(
        _HOUR, objects.MigrationList.get_by_filters)
        if each.migration_type in ('live-migration', 'migration')]
    for each in found:
        if each.status in ('error', 'failed'):
            return 0, f'the migration of {each.instance_uuid} has failed'
    left = max(0, most - len(found))
    return left, f'the budget has {words.count_noun(left, "move")} left'


def _read(age: datetime.timedelta, get: Callable[..., Iterable[typing.Any]],
          ) -> list[typing.Any]:
    """Read objects of this age of all Nova cells, also of cell0."""
    since = datetime.datetime.now(datetime.UTC) - age
    found: list[typing.Any] = []
    try:
        context = nova_context.get_admin_context()
        for cell in objects.CellMappingList.get_all(context):
            with nova_context.target_cell(context, cell) as targeted:
                found.extend(get(targeted, {'changes-since': since}))
    except cell_hosts.UNREADABLE as exc:
        raise exception.Unreachable(
            f'Nova cannot be read: {masking.mask(exc)}') from None
    return [each for each in found if each.created_at >= since]
