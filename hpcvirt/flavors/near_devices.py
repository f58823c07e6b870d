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
    most = min(max(counts.values(), default=0), number * len(near))
    found: list[tuple[str, ...]] = [()] * len(near)
    for limit in range(1, most + 1):
        found = _Assignment(near, {
            card: min(count, limit) for card, count in counts.items()},
            number).found
        if all(found):
            break
    return found


class _Assignment:
    """An assignment that grows by augmenting paths."""

    def __init__(self, near: Sequence[Sequence[str]],
                 counts: Mapping[str, int], number: int) -> None:
        self._near = near
        self._counts = counts
        # A set has several devices of one card only if it needs them.
        self._most = [-(-number // max(len(cards), 1)) for cards in near]
        self._users: dict[str, list[int]] = {card: [] for card in counts}
        self.found = []
        for own in range(len(near)):
            before = {card: [*users] for card, users in self._users.items()}
            if not all(self._add(own, set()) for _ in range(number)):
                self._users = before
        for own in range(len(near)):
            self.found.append(tuple(
                card for card, users in self._users.items()
                for user in users if user == own))

    def _add(self, own: int, tried: set[str]) -> bool:
        for card in self._near[own]:
            users = self._users[card]
            if card in tried or users.count(own) >= self._most[own]:
                continue
            tried.add(card)
            if len(users) < self._counts[card]:
                users.append(own)
                return True
            for other in dict.fromkeys(users):
                if other != own and self._add(other, tried):
                    users[users.index(other)] = own
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
        slots: list[str | None] = [None] * len(cards)
        late = []
        for card in cards:
            place = places.get(card)
            if place is not None and slots[place] is None:
                slots[place] = card
            else:
                late.append(card)
        for card in late:
            place = slots.index(None)
            slots[place] = card
            places.setdefault(card, place)
        ordered.append(tuple(card for card in slots if card is not None))
    return ordered
