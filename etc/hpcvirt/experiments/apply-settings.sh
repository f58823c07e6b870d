#!/bin/sh -eu
# SPDX-License-Identifier: Apache-2.0
# apply-settings.sh HOST PROFILE SETTINGS
hpcvirt host config "$1=topologies/$1.json" --profile "$2" \
    --deployer ansible --write "site/$1" --apply
ansible-playbook -i hosts -i "site/$1/inventory" "site/$1/hpcvirt.yml" \
    -e hpcvirt_host_reboot=true -e "@$3"
