# SPDX-License-Identifier: Apache-2.0

"""The answers of all commands about random fleets."""

import dataclasses

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.fit import admission
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import lint
from hpcvirt.flavors import lint_hosts
from hpcvirt.fleet import assemble
from hpcvirt.fleet import class_plans
from hpcvirt.fleet import count
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import make_room
from hpcvirt.fleet import verdict
from hpcvirt.simulate import host_table
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.builders import random_fleets
from tests.functional import planned_nova

#: The most guests for which room is searched, which places each of them.
MOST_GUESTS = 40


class Answers:
    """What each command says of one fleet.

    :ivar flavors: those that the classes plan
    """

    def __init__(self, dice, load=0.0):
        """Create a fleet, and start instances on some of its hosts.

        :param load: the share of its hosts that get instances
        """
        self.document = random_fleets.make_document(dice)
        self._machines = {name: own.list_topologies() for name, own
                          in self.document.classes.items()}
        planned = class_plans.plan_classes(self.document, self._machines)
        self.plan = fleet_plan.merge_plans(planned)
        self.nova = self._start_nova()
        _, self.flavors = assemble.make_fleet(self.document)
        records = self._start_instances(dice, load) if load else ()
        self.document = dataclasses.replace(
            self.document, instances=documents.read({
                'schema_version': 1, 'classes': {},
                'instances': list(records)}, 'fleet').instances)
        self.fleet, _ = assemble.make_fleet(self.document)
        assert not self.fleet.broken, self.fleet.broken

    def _start_nova(self):
        """Configure a compute host of Nova for each host of the plan."""
        found = {}
        # nova-api has the aliases of all classes.
        aliases = {alias['name']: alias for host in self.plan.hosts
                   for alias in host.settings.pci_alias}
        for host in self.plan.hosts:
            config = serialization.dump(host.settings)
            config['pci_alias'] = list(aliases.values())
            config['pages'] = {str(cell): pages for cell, pages
                               in config['pages'].items()}
            nova = planned_nova.ComputeHost(host.host, config)
            nova.traits = host.state.traits
            nova.kept_for = self._read_isolation(host)
            found[host.name] = nova
        return found

    def _start_instances(self, dice, load):
        for name, nova in self.nova.items():
            if dice.random() > load:
                continue
            for number in range(dice.randint(1, 4)):
                flavor = dice.choice(self.flavors)
                if self._admits(nova, flavor):
                    nova.start(f'{name}-{number}', plain(flavor))
            for own, claimed in nova.running.items():
                yield claimed.record(own, name)

    def _read_isolation(self, host):
        """Return the traits that the aggregate of a class demands."""
        own = self.document.classes[host.fleet_class]
        return set(own.traits) if own.isolated else set()

    @staticmethod
    def _admits(nova, flavor):
        guest = compiled_flavor.make(flavor)
        if nova.kept_for - guest.required:
            return False
        return nova.traits is None or (guest.required <= nova.traits and
                                       not guest.forbidden & nova.traits)

    def of_plan(self, flavor):
        """Count the instances that the plan promises of empty hosts."""
        (row,) = [row for row in self.plan.flavors
                  if row.flavor.name == flavor.name]
        return dict(row.per_host)

    def of_capacity(self, flavor):
        (item,) = count.count(self.fleet, [flavor])
        return dict(item.per_host)

    def of_explain(self, flavor):
        """Say on which hosts one instance fits."""
        guest = compiled_flavor.make(flavor)
        return {each.name: each.fits
                for each in verdict.judge(guest, self.fleet)}

    def of_placing(self, flavor):
        """Count by placing one instance after the other."""
        guest = compiled_flavor.make(flavor)
        return {host.name: len(admission.place_guests(guest, host.state, 999))
                for host in self.fleet.hosts}

    def has_room(self, flavor, number):
        """Whether make-room finds room for instances without a move."""
        return make_room.search(compiled_flavor.make(flavor),
                                self.fleet.hosts, 0, number) is not None

    def of_simulator(self, flavor):
        """Say on which hosts the simulator would place an instance."""
        guest = compiled_flavor.make(flavor)
        table = host_table.HostTable(
            [host.state for host in self.fleet.hosts], [guest])
        (chosen,) = strategy.parse('nova', 0)
        chooser = scheduler.Scheduler(table, [guest], chosen)
        everywhere = chooser._everywhere
        able = chooser._has_sums(0, everywhere)
        able &= chooser.known.fits(0, everywhere)
        return dict(zip((host.name for host in self.fleet.hosts),
                        able.tolist(), strict=True))

    def of_nova(self, flavor):
        """Count the instances that Nova's own functions take."""
        found = {}
        for name, nova in self.nova.items():
            kept = nova.snapshot()
            found[name] = 0
            if self._admits(nova, flavor):
                found[name] = nova.fill(plain(flavor))
            nova.restore(kept)
        return found

    def lint(self):
        """List what lint finds in the flavors of the plan."""
        states = {host.name: host.state for host in self.plan.hosts}
        found = lint_hosts.check_hosts(self.flavors, states, self.flavors)
        for flavor in self.flavors:
            yield from lint.lint(flavor)
            yield from found[flavor.name]


def plain(flavor):
    """Write a flavor as the document of a plan has it."""
    return {'name': flavor.name, 'vcpus': flavor.vcpus,
            'ram_mib': flavor.ram_mib, 'disk_gib': flavor.disk_gib,
            'extra_specs': dict(flavor.extra_specs)}


def answers(dice, load=0.0):
    """Create a fleet that can be planned."""
    while True:
        try:
            found = Answers(dice, load)
        except exception.InvalidInput:
            continue
        if found.flavors:
            return found
