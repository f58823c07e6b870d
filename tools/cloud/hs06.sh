#!/bin/busybox sh
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
#
# A benchmark that the test guest can run, which has a shell and no more: it
# counts, and prints how fast in the form of HS06. The clock of busybox has no
# fractions of a second; that of the kernel does.
now() {
    awk '/^now at/ { print $3; exit }' /proc/timer_list
}
begin=$(now)
awk 'BEGIN { for (i = 0; i < 150000; i++) x = (x * 5 + i) % 65536; exit !x }' ||
    exit 1
end=$(now)
echo "$begin $end" | awk '{ printf "HS06: %.6f\n", 1e9 / ($2 - $1) }'
