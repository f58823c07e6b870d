# SPDX-License-Identifier: Apache-2.0

"""Find what the written files of a deployment give each host and service.

The files of each deployer are sorted as the deployment tool does it: a host
gets the variables of its group in the inventory, and the files that the role
``hpcvirt.hpc.host`` writes from them.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt import yaml_document
from hpcvirt.deployment import ansible
from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.flavors import planned as plans

API, SCHEDULER, CONDUCTOR = 'nova-api', 'nova-scheduler', 'nova-conductor'
SERVICES = (API, SCHEDULER, CONDUCTOR, 'nova-super-conductor')
PLACEMENT = 'placement'


@dataclasses.dataclass(frozen=True, slots=True)
class WrittenText:
    """A text with the file that has it, for errors."""

    path: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class WrittenVariables:
    """Variables or a document, with the file that has them, for errors."""

    path: str
    values: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class WrittenHost:
    """What the files of a deployment give one host.

    :ivar conf: the options of its nova-compute
    :ivar provider: its document of provider.yaml
    :ivar folder: where its files are, as a prefix of their paths, for errors
    :ivar files: path on the host -> text, for its operating system
    :ivar variables: those of its deployment tool, by file
    :ivar about: what people must do themselves
    """

    conf: WrittenText
    provider: WrittenVariables
    folder: str = ''
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    variables: tuple[WrittenVariables, ...] = ()
    about: WrittenText | None = None

    def find(self, name: str) -> tuple[str, Any] | None:
        """Find a variable: the file that sets it, and its value."""
        for own in self.variables:
            if name in own.values:
                return own.path, own.values[name]
        return None

    def need(self, name: str) -> tuple[str, Any]:
        """Find a variable that must be set."""
        found = self.find(name)
        if found is None:
            raise exception.InvalidInput(self.variables[0].path,
                                         f'does not set {name}')
        return found

    def key(self) -> object:
        """Return what is equal for hosts that get the same."""
        return (self.conf.text, str(self.provider.values),
                tuple(self.files.items()),
                tuple(id(own.values) for own in self.variables))


@dataclasses.dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files of a deployment, sorted by who reads them.

    :ivar services: service of the controllers -> its options; Placement is
        not among them if it gets none
    """

    hosts: Mapping[str, WrittenHost]
    services: Mapping[str, WrittenText]


def sort_files(deployer: str, files: Iterable[tree.File],
               plan: plans.Plan) -> WrittenFiles:
    """Find who reads which file of a deployment.

    :param deployer: a key of :data:`hpcvirt.deployment.formats.FORMATS`
    :raises InvalidInput: if files are missing or contradict each other
    """
    texts = _list_texts(files)
    root = 'kolla/' if deployer == 'kayobe' else ''
    hosts: dict[str, WrittenHost] = {}
    if deployer in ('kolla', 'kayobe'):
        hosts = _sort_kolla(texts, root)
    elif deployer == 'ansible':
        hosts = _sort_ansible(texts)
    elif deployer == 'edpm':
        hosts = _sort_edpm(texts, plan)
    else:
        hosts = _sort_folders(texts, plan)
    for planned in plan.hosts:
        if planned.name not in hosts:
            raise exception.InvalidInput(
                f'{root}inventory/hpcvirt.yml',
                f'does not have the host {planned.name}')
    return WrittenFiles(hosts, _sort_services(deployer, texts, root, plan))


def _list_texts(files: Iterable[tree.File]) -> dict[str, str]:
    """Return path -> text of the files."""
    found: dict[str, str] = {}
    for file in files:
        _add(found, file.path, file.text, '')
    return found


def _add(found: dict[str, str], path: str, text: str, folder: str) -> None:
    """Add a file, which must not be there with another text.

    :param folder: the prefix of its path, for errors
    """
    before = found.setdefault(path, text)
    if before == text:
        return
    first, second = before.splitlines(), text.splitlines()
    lines = [line for line in second if line not in first]
    lines += [line for line in first if line not in second]
    raise exception.InvalidInput(
        f'{folder}{path}', 'would be written twice, and only one text has '
        f'the line {lines[0] if lines else "" !r}')


def _get_text(texts: Mapping[str, str], path: str) -> str:
    if path not in texts:
        raise exception.InvalidInput(path, 'is not written')
    return texts[path]


def _read_mapping(text: str, where: str) -> dict[str, Any]:
    """Read a document that is a mapping, or empty."""
    found = yaml_document.value(text, where) or {}
    if not isinstance(found, dict):
        raise exception.InvalidInput(where, 'is not a mapping')
    return found


def _read_variables(texts: Mapping[str, str], path: str) -> WrittenVariables:
    return WrittenVariables(path, _read_mapping(_get_text(texts, path), path))


def _read_groups(texts: Mapping[str, str], root: str) -> dict[str, list[str]]:
    """Return the hosts of each group of an inventory."""
    path = f'{root}inventory/hpcvirt.yml'
    inventory = _read_variables(texts, path).values
    found: dict[str, list[str]] = {}
    seen: dict[str, str] = {}
    try:
        for group, own in inventory[ansible.GROUP]['children'].items():
            found[group] = list(own['hosts'])
    except (KeyError, TypeError, AttributeError):
        raise exception.InvalidInput(
            path, f'has no groups of hosts below {ansible.GROUP}') from None
    for group, hosts in found.items():
        for host in hosts:
            if host in seen:
                raise exception.InvalidInput(
                    path, f'has the host {host} in {seen[host]} and in '
                    f'{group}, whose variables differ')
            seen[host] = group
    return found


def _read_host_files(own: WrittenVariables) -> dict[str, str]:
    """Return the files that the role hpcvirt.hpc.host writes."""
    found: dict[str, str] = {}
    try:
        for item in own.values['hpcvirt_host_files']:
            _add(found, item['path'].removeprefix('/'), item['content'],
                 f'{own.path}: /')
        absent = list(own.values['hpcvirt_host_absent'])
    except (KeyError, TypeError, AttributeError):
        raise exception.InvalidInput(
            own.path, 'does not have the files of its hosts '
            '(hpcvirt_host_files and hpcvirt_host_absent)') from None
    for path in found:
        if f'/{path}' in absent:
            raise exception.InvalidInput(
                own.path, f'has the file /{path} in hpcvirt_host_files and '
                'in hpcvirt_host_absent')
    return found


def _sort_kolla(texts: Mapping[str, str], root: str) -> dict[str, WrittenHost]:
    """Sort the files of kolla-ansible, or of kayobe with it below a root."""
    name = 'nova_cell_compute_provider_config'
    groups = _read_groups(texts, root)
    if root and _read_groups(texts, '') != groups:
        raise exception.InvalidInput(
            f'{root}inventory/hpcvirt.yml',
            'has other groups of hosts than inventory/hpcvirt.yml')
    ending = '/hpcvirt.yml' if root else '.yml'
    found = {}
    for group, hosts in groups.items():
        kolla = _read_variables(
            texts, f'{root}inventory/group_vars/{group}{ending}')
        own = kolla
        if root:
            own = _read_variables(
                texts, f'inventory/group_vars/{group}{ending}')
        if not isinstance(kolla.values.get(name), dict):
            raise exception.InvalidInput(kolla.path, f'does not set {name}')
        provider = WrittenVariables(kolla.path, kolla.values[name])
        variables = (own, kolla) if root else (own,)
        files = _read_host_files(own)
        for host in hosts:
            path = f'{root}config/nova/{host}/nova.conf'
            found[host] = WrittenHost(
                WrittenText(path, _get_text(texts, path)), provider,
                f'{own.path}: /', files, variables)
    return found


def _sort_ansible(texts: Mapping[str, str]) -> dict[str, WrittenHost]:
    found = {}
    for group, hosts in _read_groups(texts, '').items():
        own = _read_variables(texts, f'inventory/group_vars/{group}.yml')
        folder = f'{own.path}: /'
        files = _read_host_files(own)
        for host in hosts:
            found[host] = _make_host(files, folder, (own,))
    return found


def _make_host(files: Mapping[str, str], folder: str,
               variables: tuple[WrittenVariables, ...] = ()) -> WrittenHost:
    """Make a host that gets the files of Nova like all others."""
    conf, provider = host_files.NOVA_CONF, host_files.PROVIDER
    if conf not in files:
        raise exception.InvalidInput(folder + conf, 'is not written')
    where = folder + provider
    return WrittenHost(
        WrittenText(folder + conf, files[conf]),
        WrittenVariables(where, _read_mapping(files.get(provider, ''), where)),
        folder, files, variables)


def _sort_edpm(texts: Mapping[str, str],
               plan: plans.Plan) -> dict[str, WrittenHost]:
    found = {}
    for alike in ansible.group_hosts(plan, host_files.files):
        path = f'{alike.name}.yaml'
        text = _get_text(texts, path)
        documents = yaml_document.values(text, path)
        try:
            node_set, config = documents
            data = config['data']
            conf = str(data['90-nova-hpcvirt.conf'])
            variables = WrittenVariables(path, node_set['spec'][
                'nodeTemplate']['ansible']['ansibleVars'])
        except (KeyError, TypeError, ValueError):
            raise exception.InvalidInput(
                path, 'is not a node set with variables, and a ConfigMap with '
                'options of Nova') from None
        where = f'{path}: provider-hpcvirt.yaml'
        provider = _read_mapping(data.get('provider-hpcvirt.yaml', ''), where)
        for planned in alike.hosts:
            found[planned.name] = WrittenHost(
                WrittenText(f'{path}: 90-nova-hpcvirt.conf', conf),
                WrittenVariables(where, provider), variables=(variables,),
                about=WrittenText(path, text.partition('\n---')[0]))
    return found


def _sort_folders(texts: Mapping[str, str],
                  plan: plans.Plan) -> dict[str, WrittenHost]:
    """Sort the files in a folder for each host, or those of one host."""
    folders: dict[str, dict[str, str]] = {}
    for path, text in texts.items():
        first, _, rest = path.partition('/')
        folders.setdefault(first, {})[rest] = text
    found = {}
    for planned in plan.hosts:
        if 'etc' in folders and planned.name not in folders:
            found[planned.name] = _make_host(texts, '')
        else:
            found[planned.name] = _make_host(
                folders.get(planned.name, {}), f'{planned.name}/')
    return found


def _sort_services(deployer: str, texts: Mapping[str, str], root: str,
                   plan: plans.Plan) -> dict[str, WrittenText]:
    found = {}
    if deployer in ('kolla', 'kayobe'):
        for name in SERVICES:
            path = f'{root}config/nova/{name}.conf'
            found[name] = WrittenText(path, texts.get(path, ''))
        path = f'{root}config/placement.conf'
    else:
        path = formats.CONTROLLER
        common = texts.get(path)
        if common is None:
            # The files of one host have none for the controllers.
            common = '\n'.join(nova_conf.controller(plan))
        for name in SERVICES:
            found[name] = WrittenText(path, common)
        path = f'{formats.CONTROLLERS}/placement.conf'
    if path in texts:
        found[PLACEMENT] = WrittenText(path, texts[path])
    return found
