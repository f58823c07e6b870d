# SPDX-License-Identifier: Apache-2.0

"""Validate extra specs of the ``hpcvirt`` namespace in nova-api.

Nova calls ``register`` of each module in the entry point group
``nova.api.extra_spec_validators``. From microversion 2.86 on, nova-api then
rejects an extra spec of the namespace that is not in the vocabulary or has a
value of the wrong type (status 400). Where nova-api runs without this package,
Nova accepts these extra specs unchecked.
"""

from typing import Any

from nova.api.validation.extra_specs import base

from hpcvirt.specs import extra_spec_key
from hpcvirt.specs import vocabulary


def register() -> list[base.ExtraSpecValidator]:
    """Return a validator for each extra spec of the namespace."""
    return [
        base.ExtraSpecValidator(
            name=row.name, description=row.help, value=_value(row))
        for row in vocabulary.OWN
    ]


def _value(row: extra_spec_key.ExtraSpecKey) -> dict[str, Any]:
    """Describe the type of a value as Nova's validators expect it."""
    if row.kind is extra_spec_key.ValueType.BOOLEAN:
        return {'type': bool}
    if row.kind is extra_spec_key.ValueType.CHOICE:
        # Plain strings, because the API returns the values to its caller.
        return {'type': str, 'enum': [str(word) for word in row.choices]}
    if row.kind is extra_spec_key.ValueType.TEXT:
        return {'type': str, 'pattern': row.pattern}
    bounds = {'min': row.minimum, 'max': row.maximum}
    return {'type': int, **{side: bound for side, bound in bounds.items()
                            if bound is not None}}
