# SPDX-License-Identifier: Apache-2.0

"""Find what studies have published about a choice."""

from hpcvirt import bibliography
from hpcvirt.audit import costs
from hpcvirt.flavors import planned as plans
from hpcvirt.tune import experiment

_STUDY = bibliography.get('CERN-HEPiX-2015').citation
_SERVICES = str(costs.BY_RULE['isolation'])
_NESTED_PAGING = str(costs.BY_RULE['nested-paging'])

#: Key of a profile or setting of the host -> what was published about it.
_BY_KEY = {
    'page_size': f'{costs.SMALL_PAGES}; 1 GiB pages were slightly better than '
                 f'2 MiB {_STUDY}',
    'guests_per_host': 'HS06 rate lost by guests of a 32-core host: '
    + ', '.join(f'{loss.low_percent:g}' + (
        f' to {loss.high_percent:g}' if loss.high_percent > loss.low_percent
        else '') + f' % with {loss.configuration}'
        for _, loss in plans.BY_SHARE) + f' {plans.HS06_STUDY}',
    'shared_cores_per_cell': _SERVICES,
    'housekeeping_cores_per_cell': _SERVICES,
    'ept': _NESTED_PAGING,
    'npt': _NESTED_PAGING,
    'nested_paging': _NESTED_PAGING,
    'ksm': str(costs.BY_RULE['ksm']),
}


def find(change: experiment.ValueChange) -> tuple[str, ...]:
    """Find what was published about the changes of a value, in sentences."""
    keys = [*change.profile,
            *(['guests_per_host'] if change.guests_per_host else []),
            *(key.lower().replace('-', '_') for key in change.host)]
    return tuple(dict.fromkeys(
        _BY_KEY[key] for key in keys if key in _BY_KEY))
