#!/bin/sh
# bind [--facts] PROGRAM [ARGUMENT...]: starts a rank of MPI on a core of its own, first on those
# of the socket of the network card. With --facts it prints what it finds, as one line of JSON.
# Whatever launches ranks sets one of these.
local=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${PMIX_LOCAL_RANK:-${SLURM_LOCALID:-${PMI_LOCAL_RANK:-}}}}}

# list: 0-3,8 as a number on each line.
list() {
	echo "$1" | tr ',' '\n' | while IFS=- read -r low high; do
		[ -n "$low" ] && seq "$low" "${high:-$low}"
	done
}

# The card is the one that is named, the first of InfiniBand, or the fastest of the others.
card=${MUSTER_NIC:-}
[ -n "$card" ] || for d in /sys/class/infiniband/*; do
	[ -e "$d/device" ] && card=${d##*/} && break
done
if [ -z "$card" ]; then
	best=-2
	for d in /sys/class/net/*; do
		[ -e "$d/device" ] && [ "$(cat "$d/operstate" 2> /dev/null)" != down ] || continue
		speed=$(cat "$d/speed" 2> /dev/null || echo -1)
		[ "${speed:--1}" -gt "$best" ] && best=${speed:--1} card=${d##*/}
	done
fi
cell=
for d in "/sys/class/infiniband/$card/device" "/sys/class/net/$card/device"; do
	[ -n "$card" ] && [ -r "$d/numa_node" ] && cell=$(cat "$d/numa_node") && break
done
[ "${cell:--1}" -ge 0 ] 2> /dev/null || cell=
socket=
if [ -n "$cell" ]; then
	first=$(list "$(cat "/sys/devices/system/node/node$cell/cpulist" 2> /dev/null)" | head -n 1)
	socket=$(cat "/sys/devices/system/cpu/cpu${first:-x}/topology/physical_package_id" 2> /dev/null)
fi

# One thread of each core that this rank may use: those of the card's socket, then the others.
near='' far='' seen=' '
for cpu in $(list "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"); do
	t=/sys/devices/system/cpu/cpu$cpu/topology
	package=$(cat "$t/physical_package_id" 2> /dev/null || echo 0)
	core=$package:$(cat "$t/core_id" 2> /dev/null || echo "$cpu")
	case $seen in *" $core "*) continue ;; esac
	seen="$seen$core "
	if [ -n "$socket" ] && [ "$package" = "$socket" ]; then near="$near $cpu"; else far="$far $cpu"; fi
done
set -f
cores=$near$far
count=0
for cpu in $cores; do count=$((count + 1)); done
cpu=
# More ranks than cores, or a rank that does not know its place: it stays where it is.
if [ -n "$local" ] && [ "$local" -lt "$count" ]; then
	cpu=$(echo $cores | cut -d ' ' -f $((local + 1)))
fi

if [ "$1" = --facts ]; then
	text() { tr -cd '[:print:]' | tr -d '"\\' | cut -c 1-200; }
	field() { sed -n "s/^$1[[:space:]]*:[[:space:]]*//p" "$2" 2> /dev/null | head -n 1 | text; }
	sockets=$(cat /sys/devices/system/cpu/cpu*/topology/physical_package_id 2> /dev/null | sort -u | wc -l)
	printf '{"node":"%s","local":%s,"cpu":%s,"nic":"%s","nic_cell":%s,"near":%s,"processor":"%s","sockets":%d,"cores":%d,"memory_bytes":%.0f,"kernel":"%s","governor":"%s","virtualization":"%s"}\n' \
		"$(uname -n | text)" "${local:-null}" "${cpu:-null}" "$(echo "$card" | text)" "${cell:-null}" \
		"$([ -n "$socket" ] && case " $near " in *" ${cpu:-x} "*) echo true ;; *) echo false ;; esac || echo null)" \
		"$(field 'model name' /proc/cpuinfo)" "$sockets" "$count" \
		"$(awk '/^MemTotal/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)" "$(uname -r | text)" \
		"$(text < /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2> /dev/null)" \
		"$(if grep -q '^flags.* hypervisor' /proc/cpuinfo; then echo hypervisor; else echo none; fi)"
	exit 0
fi
if [ -n "$cpu" ] && command -v taskset > /dev/null; then
	exec taskset -c "$cpu" "$@"
fi
exec "$@"
