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

"""Validators for the ``hpcvirt`` namespace, loaded by nova-api.

Nova looks for ``register`` in the modules of the entry point group
``nova.api.extra_spec_validators``. From microversion 2.86 on, a key of the
namespace that is not in the vocabulary, or a value of the wrong type, is
refused with status 400 when a flavor's extra specs are set. The package must
be installed where nova-api runs; without it Nova passes the keys unseen.
"""

from typing import Any

from nova.api.validation.extra_specs import base

from hpcvirt.specs import key
from hpcvirt.specs import vocabulary


def register() -> list[base.ExtraSpecValidator]:
    """Give Nova one validator for each key of our own."""
    return [
        base.ExtraSpecValidator(
            name=row.name, description=row.help, value=_value(row))
        for row in vocabulary.OWN
    ]


def _value(row: key.Key) -> dict[str, Any]:
    """Put a row's type into the terms of Nova's validators."""
    if row.kind is key.Kind.BOOLEAN:
        return {'type': bool}
    if row.kind is key.Kind.CHOICE:
        # Plain strings: the values are shown to the caller of the API.
        return {'type': str, 'enum': [str(word) for word in row.choices]}
    if row.kind is key.Kind.TEXT:
        return {'type': str, 'pattern': row.pattern}
    bounds = {'min': row.minimum, 'max': row.maximum}
    return {'type': int, **{side: bound for side, bound in bounds.items()
                            if bound is not None}}
