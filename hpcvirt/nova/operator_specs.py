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

"""Check extra specs with the validators of the Nova that is installed."""

from nova import exception as nova_exception
from nova.api.validation.extra_specs import validators

from hpcvirt import exception


def check(extra_specs: tuple[tuple[str, str], ...], where: str) -> None:
    """Check extra specs as nova-api does from microversion 2.86 on.

    :param where: the file, for the error
    :raises InvalidInput: naming the key at fault
    """
    for name, value in extra_specs:
        try:
            validators.validate(name, value)
        except nova_exception.ValidationError as exc:
            raise exception.InvalidInput(
                f'{where}: extra_specs',
                f'{name}: Nova refuses it: ' + ' '.join(str(exc).split())
            ) from None
