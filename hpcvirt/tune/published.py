# SPDX-License-Identifier: Apache-2.0

"""Find what studies have published about a choice."""

from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt import bibliography
from hpcvirt.audit import costs
from hpcvirt.flavors import planned as plans
from hpcvirt.tune import experiment

_STUDY = 'CERN-HEPiX-2015'
_SERVICES = str(costs.BY_RULE['isolation'])
_KSM = str(costs.BY_RULE['ksm'])
_NESTED_PAGING = str(costs.BY_RULE['nested-paging'])
_SHARES = ', '.join(
    f'{loss.low_percent:g}' + (f' to {loss.high_percent:g}'
                               if loss.high_percent > loss.low_percent else '')
    + f' % with {loss.configuration}' for _, loss in plans.BY_SHARE)

#: Key of a profile or setting of the host -> what was published about it.
_BY_KEY: Mapping[str, str] = {
    'page_size': f'{costs.SMALL_PAGES}; 1 GiB pages were slightly better than '
                 f'2 MiB {bibliography.get(_STUDY).citation}',
    'guests_per_host': f'HS06 rate lost by guests of a 32-core host: {_SHARES}'
                       f' {plans.HS06_STUDY}',
    'shared_cores_per_cell': _SERVICES,
    'housekeeping_cores_per_cell': _SERVICES,
    'ept': _NESTED_PAGING,
    'npt': _NESTED_PAGING,
    'nested_paging': _NESTED_PAGING,
    'ksm': _KSM,
}


def find(change: experiment.ValueChange) -> tuple[str, ...]:
    """Find what was published about the changes of a value, in sentences."""
    return tuple(dict.fromkeys(
        _BY_KEY[key] for key in _keys(change) if key in _BY_KEY))


def _keys(change: experiment.ValueChange) -> Iterator[str]:
    yield from change.profile
    if change.guests_per_host is not None:
        yield 'guests_per_host'
    for key in change.host:
        yield key.lower().replace('-', '_')
