# SPDX-License-Identifier: Apache-2.0

"""Sphinx configuration of the documentation."""

import configparser
import pathlib
import sys
from importlib import metadata

ROOT = pathlib.Path(__file__).parents[2]

sys.path.insert(0, str(ROOT / 'doc' / 'ext'))

project = 'hpcvirt'
copyright = 'hpcvirt developers'
author = 'hpcvirt developers'

extensions = [
    'sphinx.ext.extlinks',
    'oslo_config.sphinxext',
    'audit_rules',
    'benchmark_table',
    'bibliography_page',
    'command_reference',
    'document_keys',
    'extra_spec_table',
    'host_files_table',
    'package_table',
    'page_checks',
]

# The addresses of the project stand in setup.cfg alone.
_setup = configparser.ConfigParser()
_setup.read(ROOT / 'setup.cfg')
_addresses = dict(
    line.split(' = ') for line in
    _setup['metadata']['project_urls'].strip().splitlines())

#: ``:source:`benchmarks/README.rst``` is a link to that file.
extlinks = {'source': (f'{_addresses["Source"]}/%s', '%s')}

# A command line in prose keeps its two dashes.
smartquotes = False

html_theme = 'furo'
html_title = 'hpcvirt'
# The version comes from git, as that of the package.
release = metadata.version('hpcvirt')
version = release

#: Source, name, description, authors, section.
man_pages = [('cli/hpcvirt', 'hpcvirt',
              'near-native HPC instances on OpenStack Nova', [author], 1)]
