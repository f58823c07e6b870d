# SPDX-License-Identifier: Apache-2.0

"""Read the lists and masks of vCPUs in extra specs."""

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.specs import key


def read(text: str, vcpus: int, where: str) -> frozenset[int]:
    """Read a mask; a mask that starts with ``^`` excludes vCPUs.

    :param vcpus: the guest's number of vCPUs
    :param where: the key, for the error
    :raises InvalidInput: if it is not a mask, or names a vCPU that the guest
        does not have
    """
    if text.strip().startswith('^'):
        text = f'0-{vcpus - 1},{text}'
    cpus = read_list(text, where)
    if cpus and max(cpus) >= vcpus:
        raise exception.InvalidInput(
            where, f'names vCPU {max(cpus)} of a guest with {vcpus} vCPUs')
    return cpus


def read_list(text: str, where: str) -> frozenset[int]:
    """Read a list of vCPUs.

    As in Nova, empty terms are ignored, numbers are read with int(), and
    excluded vCPUs need not exist.

    :raises InvalidInput: if it is not such a list
    """
    terms = [_plain(term.strip()) for term in text.split(',') if term.strip()]
    return cpuset.parse(','.join(terms), where)


def _plain(term: str) -> str:
    """Write the numbers of a term as digits."""
    caret = '^' if term.startswith('^') else ''
    return caret + '-'.join(_digits(number, bool(caret)) for number
                            in term.removeprefix('^').split('-', 1))


def _digits(text: str, is_excluded: bool) -> str:
    number = key.integer(text)
    if number is None:
        return text
    return str(min(number, cpuset.MAX_CPU) if is_excluded else number)
