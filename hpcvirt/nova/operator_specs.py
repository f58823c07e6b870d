# SPDX-License-Identifier: Apache-2.0

"""Check extra specs with the validators of the installed Nova."""

from nova import exception as nova_exception
from nova.api.validation.extra_specs import validators

from hpcvirt import exception
from hpcvirt.specs import vocabulary


def check(extra_specs: tuple[tuple[str, str], ...], where: str) -> None:
    """Check extra specs as nova-api does from microversion 2.86 on.

    :param where: the file, for the error
    :raises InvalidInput: with the invalid key
    """
    for name, value in extra_specs:
        if vocabulary.is_unvalidated(name):
            # hpcvirt sets it with an older microversion.
            continue
        try:
            validators.validate(name, value)
        except nova_exception.ValidationError as exc:
            raise exception.InvalidInput(
                f'{where}: extra_specs',
                f'{name}: Nova refuses it: ' + ' '.join(str(exc).split())
            ) from None
