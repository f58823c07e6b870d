# SPDX-License-Identifier: Apache-2.0

"""Name the hosts that make flavors of their own, and say why.

A host that lacks a memory module, a core or a card gets flavors that no other
host of its class was planned with, and "hpcvirt flavor apply" would create
them. Its operator may rather repair it.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import words
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import warning

#: Hosts are few if there are this many times as many others.
_MANY = 2


def warn(hosts: Sequence[plans.PlannedHost],
         flavors: Sequence[plans.PlannedFlavor],
         numbers: Mapping[str, int]) -> Iterator[warning.PlanWarning]:
    """Warn of few hosts with flavors that were planned for them only.

    :param hosts: one of each kind
    :param numbers: host -> the number of hosts like it
    """
    by_name = {host.name: host for host in hosts}
    # The hosts that were planned with a flavor -> its name.
    own: dict[tuple[str, ...], list[str]] = {}
    for row in flavors:
        own.setdefault(tuple(row.shares), []).append(row.flavor.name)
    if not own:
        return

    def count(names: tuple[str, ...]) -> int:
        return sum(numbers[name] for name in names)
    most = max(own, key=count)
    for few, made in own.items():
        others = [name for name in most if name not in few]
        if not others or count(few) * _MANY > count(most):
            continue
        many = count(tuple(others))
        makes, own_host, it, its = (
            ('makes', 'host', 'it', 'its') if count(few) == 1 else
            ('make', 'hosts', 'them', 'their'))
        reason = _compare(by_name[few[0]], by_name[others[0]], many)
        if reason is None:
            continue
        yield warning.PlanWarning(
            warning.WarningCode.HOST_MAKES_FLAVORS,
            f'{makes} {words.count_noun(len(made), "flavor")} of {its} own '
            f'({words.shorten_names(made)}), because {its} {reason}; check '
            f'the {own_host}, or plan {it} in a class of {its} own', few)


def _compare(odd: plans.PlannedHost, usual: plans.PlannedHost,
             many: int) -> str | None:
    """Say how a host differs from many; None if the reason is unknown.

    The first word is that of what belongs to the host.
    """
    others = f'those of {words.count_noun(many, "other host")}'
    here, there = _list_cores(odd), _list_cores(usual)
    if here != there:
        return (f'cells have {", ".join(map(str, here))} cores for '
                f'guests, and {others} {", ".join(map(str, there))}')
    mine, its = odd.guest_memory_mib, usual.guest_memory_mib
    if mine and its and abs(mine - its) * 100 >= its:
        percent = round(abs(mine - its) * 100 / its)
        which = 'less' if mine < its else 'more'
        return (f'guests have {mine / 1024:.0f} GiB, {percent} % {which} '
                f'than {others}')
    if odd.devices != usual.devices:
        return (f'guests have {sum(odd.devices)} devices, and {others} '
                f'{sum(usual.devices)}')
    return None


def _list_cores(host: plans.PlannedHost) -> list[int]:
    return [len(share.cores) for share in host.partition.cells]
