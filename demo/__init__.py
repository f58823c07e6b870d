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

"""A demonstration of hpcvirt from end to end, on an embedded Nova.

``python -m demo`` reads hosts from topology files, generates flavors, creates
them through Nova's API, fills the hosts, and places the same requests with
hpcvirt and with Nova alone. See docs/source/demo.rst.
"""
