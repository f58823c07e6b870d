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

"""Sphinx configuration of the release notes."""

project = 'hpcvirt release notes'
copyright = 'hpcvirt developers'
author = 'hpcvirt developers'

extensions = [
    'openstackdocstheme',
    'reno.sphinxext',
]

html_theme = 'openstackdocs'
pygments_style = 'native'

openstackdocs_auto_name = False
openstackdocs_repo_name = 'hpcvirt'
openstackdocs_pdf_link = False
openstackdocs_use_storyboard = False

# Release notes have no version of their own.
version = ''
release = ''
