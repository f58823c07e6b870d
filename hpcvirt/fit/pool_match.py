# SPDX-License-Identifier: Apache-2.0

"""Tell whether a request for devices may use the devices of a pool.

The rules are those of Nova's PciDeviceStats. They compare the tags of both.
"""

import typing
from collections.abc import Mapping
from collections.abc import Sequence

_Tags = Mapping[str, typing.Any]

#: The tags that can forbid a request to use a pool that matches it.
KINDS = ('dev_type', 'remote_managed', 'live_migratable')
_TRUE = frozenset(('1', 't', 'true', 'on', 'y', 'yes'))


def accepts(specs: Sequence[_Tags], pool: _Tags) -> tuple[bool, bool]:
    """Tell whether a pool matches, and whether its kind may be used.

    :param specs: alternatives in lower case; a pool matches one if it has all
        of its tags
    """
    return _matches(specs, pool), _is_eligible(specs, pool)


def _matches(specs: Sequence[_Tags], pool: _Tags) -> bool:
    for spec in specs:
        for key, wanted in spec.items():
            value = pool.get(key)
            if isinstance(value, str):
                value = value.lower()
            if value != wanted:
                break
        else:
            return True
    return False


def _is_eligible(specs: Sequence[_Tags], pool: _Tags) -> bool:
    kind = pool.get('dev_type')
    if kind in ('type-PF', 'vdpa') and not any(
            spec.get('dev_type') == kind.lower() for spec in specs):
        return False
    if _is_true(pool.get('remote_managed')) and not any(
            _is_true(spec.get('remote_managed')) for spec in specs):
        return False
    for wanted in ('true', 'false'):
        if all(spec.get('live_migratable') == wanted for spec in specs):
            return bool(pool.get('live_migratable') == wanted)
    return True


def _is_true(value: object) -> bool:
    return str(value).strip().lower() in _TRUE
