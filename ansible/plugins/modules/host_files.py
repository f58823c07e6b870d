#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0

"""Write the files of a host as "hpcvirt host config --apply" does."""

from __future__ import annotations

DOCUMENTATION = """
module: host_files
short_description: Write the files of a host for the flavors of hpcvirt
description:
  - Writes files as C(hpcvirt host config --apply) does.
  - A file is replaced in one step and keeps its mode and its owner.
  - Each file that is replaced or removed is copied first, to a folder that
    only root can read.
  - Nothing is written outside the root, and no link to a file is followed.
  - Needs Python 3.8 on the host.
options:
  root:
    description: The root of an image. Empty for a running host.
    type: str
    default: ''
  files:
    description: The files to write. One that hpcvirt did not write is refused.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The absolute path.
        type: str
        required: true
      content:
        description: The content.
        type: str
        required: true
      notify:
        description: What makes the file effective. The module does not use it.
        type: list
        elements: str
        default: []
  absent:
    description: Files of hpcvirt to remove.
    type: list
    elements: str
    default: []
  site_files:
    description: Which files of the site may have settings that conflict.
    type: list
    elements: dict
    default: []
    suboptions:
      folder:
        description: The absolute path of their folder.
        type: str
        required: true
      names:
        description: A pattern of their names.
        type: str
        required: true
      after:
        description: Only files whose names sort after this one count.
        type: str
        default: ''
      pattern:
        description: A regular expression of the settings.
        type: str
        required: true
      replacement:
        description: What replaces them. None if another program does.
        type: str
      why:
        description: Why they conflict.
        type: str
        default: ''
      notify:
        description: What makes a change of such a file effective.
        type: list
        elements: str
        default: []
  replace:
    description: Whether to replace the settings that conflict.
    type: bool
    default: false
  read:
    description: Files that are read when all is written. Links are followed.
    type: list
    elements: str
    default: []
  times:
    description: Paths of which the times of the last change are wanted.
    type: list
    elements: str
    default: []
author:
  - hpcvirt developers (@hpcvirt)
"""

EXAMPLES = """
- name: Write the files
  hpcvirt.hpc.host_files:
    files: "{{ hpcvirt_host_files }}"
    absent: "{{ hpcvirt_host_absent }}"
"""

RETURN = """
contents:
  description: Path -> content of each file that was there.
  type: dict
  returned: success
written:
  description: The paths of the files that were written.
  type: list
  elements: str
  returned: success
removed_at:
  description: Path -> time in seconds since the epoch when it was removed.
  type: dict
  returned: success
site:
  description: The files of the site that are there, with what conflicts.
  type: list
  elements: dict
  returned: success
read:
  description: Path -> content of each file to read that is there.
  type: dict
  returned: success
times:
  description: Path -> time in seconds since the epoch, of each that is there.
  type: dict
  returned: success
backup:
  description: The folder with copies of what was there before.
  type: str
  returned: if something was replaced or removed
"""

import contextlib  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402

try:
    from ansible_collections.hpcvirt.hpc.plugins.module_utils import (
        rooted_files,  # noqa: H301
    )
except ImportError:  # the tests of hpcvirt have no collection
    from hpcvirt import rooted_files

#: The first line of a file that hpcvirt has written.
MARK = '# Written by "hpcvirt host config".'

#: Where copies are kept, relative to the root.
BACKUPS = 'var/lib/hpcvirt/backups'

OPTIONS = {
    'root': {'type': 'str', 'default': ''},
    'files': {
        'type': 'list', 'elements': 'dict', 'default': [], 'options': {
            'path': {'type': 'str', 'required': True},
            'content': {'type': 'str', 'required': True},
            'notify': {'type': 'list', 'elements': 'str', 'default': []}}},
    'absent': {'type': 'list', 'elements': 'str', 'default': []},
    'site_files': {
        'type': 'list', 'elements': 'dict', 'default': [], 'options': {
            'folder': {'type': 'str', 'required': True},
            'names': {'type': 'str', 'required': True},
            'after': {'type': 'str', 'default': ''},
            'pattern': {'type': 'str', 'required': True},
            'replacement': {'type': 'str'},
            'why': {'type': 'str', 'default': ''},
            'notify': {'type': 'list', 'elements': 'str', 'default': []}}},
    'replace': {'type': 'bool', 'default': False},
    'read': {'type': 'list', 'elements': 'str', 'default': []},
    'times': {'type': 'list', 'elements': 'str', 'default': []},
}
_COMMENT = re.compile(r'(?m)^[ \t]*[#;].*$')


def write(parameters: dict, is_check: bool) -> dict:
    """Write the files, and return the result of the module.

    :param is_check: whether to write nothing
    :raises FileRefused: before anything is written
    """
    root = parameters['root'] or '/'
    wanted = {}
    for file in parameters['files']:
        wanted[file['path'].lstrip('/')] = file['content']
    for path in parameters['absent']:
        wanted[path.lstrip('/')] = None
    present = rooted_files.read_present(root, wanted)
    changes = []
    for path, after in wanted.items():
        before = present.get(path)
        if before is not None and not before.startswith(MARK):
            raise rooted_files.refuse_foreign(os.path.join(root, path))
        if before != after:
            changes.append(rooted_files.FileEdit(path, before, after))
    site = read_site(root, parameters['site_files'])
    if parameters['replace']:
        changes += replace_settings(site)
    result = {'changed': bool(changes), 'contents': {
        f'/{path}': text for path, text in present.items()}}
    result['written'] = [f'/{change.path}' for change in changes
                         if change.after is not None]
    result['site'] = [
        {'path': f'/{path}', 'found': find_settings(rule['pattern'], text),
         'why': rule['why'], 'notify': rule['notify']}
        for path, text, rule in site]
    if changes and not is_check:
        kept = rooted_files.write(root, changes, BACKUPS)
        if kept is not None:
            result['backup'] = os.path.join(root, kept)
    result['removed_at'] = find_removed(root, parameters['absent'])
    result['read'] = read_files(root, parameters['read'])
    result['times'] = find_times(root, parameters['times'])
    return result


def read_site(root: str, rules: list) -> list:
    """Read the files of the site, each with the rule that it matches.

    Links are left out, such as Debian's to /etc/sysctl.conf, which is read by
    itself.

    :returns: path, content and rule of each
    """
    found = []
    if not rules or not os.path.lexists(root):
        return found
    with contextlib.closing(rooted_files.Folders(root)) as folders:
        for rule in rules:
            folder = rule['folder'].lstrip('/')
            for path in folders.list_files(os.path.join(folder,
                                                        rule['names'])):
                if (os.path.basename(path) <= rule['after']
                        or os.path.islink(os.path.join(root, path))):
                    continue
                present = folders.read(path)
                if present is None:
                    continue
                text = rooted_files.decode(present[0])
                if not text.startswith(MARK):
                    found.append((path, text, rule))
    return found


def find_settings(pattern: str, text: str) -> list:
    """Find the settings of a file that conflict, without comments."""
    return list(dict.fromkeys(found.strip() for found in re.findall(
        pattern, _COMMENT.sub('', text))))


def replace_settings(site: list) -> list:
    """Find the changes that replace settings of the site."""
    before = {}
    after = {}
    for path, text, rule in site:
        if rule['replacement'] is not None:
            before[path] = text
            after[path] = re.sub(rule['pattern'], rule['replacement'],
                                 after.get(path, text))
    return [rooted_files.FileEdit(path, text, after[path])
            for path, text in before.items() if text != after[path]]


def read_files(root: str, paths: list) -> dict:
    """Read those of the files that are there; links are followed."""
    contents = {}
    if not paths:
        return contents
    with contextlib.closing(rooted_files.Folders(root)) as folders:
        for path in paths:
            present = folders.read(path.lstrip('/'), follow=True)
            if present is not None:
                contents[path] = rooted_files.decode(present[0])
    return contents


def find_times(root: str, paths: list) -> dict:
    """Find when files were last changed."""
    times = {}
    for path in paths:
        with contextlib.suppress(OSError):
            status = os.lstat(os.path.join(root, path.lstrip('/')))
            times[path] = int(status.st_mtime)
    return times


def find_removed(root: str, absent: list) -> dict:
    """Find when files were removed that are not there any more."""
    removed = {}
    if not os.path.lexists(root):
        return removed
    left = rooted_files.read_present(root, [
        path.lstrip('/') for path in absent])
    for path in absent:
        if path.lstrip('/') not in left:
            time = rooted_files.find_backup_time(root, path.lstrip('/'),
                                                 BACKUPS)
            if time is not None:
                removed[path] = time
    return removed


def main() -> None:
    """Run the module."""
    # The tests of hpcvirt have no Ansible.
    from ansible.module_utils.basic import AnsibleModule  # noqa: PLC0415

    module = AnsibleModule(OPTIONS, supports_check_mode=True)
    try:
        module.exit_json(**write(module.params, module.check_mode))
    except rooted_files.FileRefused as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f'{exc.filename}: {exc.strerror}')


if __name__ == '__main__':
    main()
