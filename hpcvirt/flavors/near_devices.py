# SPDX-License-Identifier: Apache-2.0

"""Divide devices of another kind among sets, such as network cards.

A card that several sets share must have a device for each of them: itself if
instances get whole devices, a virtual function otherwise. Cards are used as
evenly as possible.
"""

from collections.abc import Mapping
from collections.abc import Sequence


def assign(near: Sequence[Sequence[str]], counts: Mapping[str, int],
           number: int) -> list[tuple[str, ...]]:
    """Give each set a number of devices.

    If the devices suffice for all sets, each gets them. Otherwise the first
    sets do.

    :param near: the cards that are near to each set, the best first
    :param counts: card -> its devices
    :param number: the devices of each set
    :returns: the card of each device of each set; empty for a set without
    """
    found: list[tuple[str, ...]] = [()] * len(near)
    most = min(max(counts.values(), default=0), number * len(near))
    for limit in range(1, most + 1):
        users: dict[str, list[int]] = {card: [] for card in counts}
        for own in range(len(near)):
            before = {card: [*those] for card, those in users.items()}
            if not all(_add(own, near, users, counts, limit, number, set())
                       for _ in range(number)):
                users = before
        found = [tuple(card for card, those in users.items()
                       for user in those if user == own)
                 for own in range(len(near))]
        if all(found):
            break
    return found


def _add(own: int, near: Sequence[Sequence[str]], users: dict[str, list[int]],
         counts: Mapping[str, int], limit: int, number: int,
         tried: set[str]) -> bool:
    """Give a set one more device, by moving others to other cards."""
    # Several devices of one card only if the set needs them.
    able = [card for card in near[own] if card not in tried
            and users[card].count(own) < -(-number // len(near[own]))]
    for card in able:
        if len(users[card]) < min(counts[card], limit):
            users[card].append(own)
            return True
    for card in able:
        tried.add(card)
        for other in dict.fromkeys(users[card]):
            if other != own and _add(other, near, users, counts, limit,
                                     number, tried):
                users[card][users[card].index(other)] = own
                return True
    return False


def order(assigned: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Order the cards of each set, so that a card has one place in all.

    A card that sets share has several places only if these sets share other
    cards in a way that allows no single place.
    """
    places: dict[str, int] = {}
    ordered = []
    for cards in assigned:
        slots = [''] * len(cards)
        # Cards that have a place come first.
        for card in sorted(cards, key=lambda each: each not in places):
            place = places.get(card, slots.index(''))
            if slots[place]:
                place = slots.index('')
            slots[place] = card
            places.setdefault(card, place)
        ordered.append(tuple(slots))
    return ordered
