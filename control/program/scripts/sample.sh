# Prints what the processors of this node have done so far: its name, the time, whether it is a
# slice of a host, and in ticks of 10 ms user, system, how long its processors were busy, stolen;
# how often they were slowed down; and, where it has a message network, how many bytes and packets
# it sent there. $1 is a word that stands before it.
sample() {
	local slice=0 user=0 system=0 busy=0 stolen=0 slowed=0 file line name cpus=, part n bytes packets sent=
	systemd-detect-virt -cq 2>/dev/null && slice=1
	while read -r name line; do
		[ "$name" = Cpus_allowed_list: ] && cpus=$line
	done < <(cat /proc/self/status /proc/1/status 2>/dev/null)
	local mine=" "
	for part in ${cpus//,/ }; do
		for ((n = ${part%-*}; n <= ${part#*-}; n++)); do mine="$mine$n "; done
	done
	while read -r name line; do
		[[ $name == cpu[0-9]* && $mine == *" ${name#cpu} "* ]] || continue
		set -- $line
		busy=$((busy + $1 + $2 + $3 + $6 + $7)) stolen=$((stolen + ${8:-0}))
		[ $slice = 1 ] || user=$((user + $1 + $2)) system=$((system + $3 + $6 + $7))
	done </proc/stat
	if [ $slice = 1 ]; then
		for file in /proc/[0-9]*/stat; do
			read -r line 2>/dev/null <"$file" || continue
			set -- ${line##*) }
			user=$((user + ${12} + ${14})) system=$((system + ${13} + ${15}))
		done
	fi
	for file in /sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count; do
		read -r n 2>/dev/null <"$file" && slowed=$((slowed + n))
	done
	for file in /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat; do
		[ -r "$file" ] || continue
		while read -r name n; do
			[ "$name" = nr_throttled ] && slowed=$((slowed + n))
		done <"$file"
	done
	for file in /sys/class/net/msg[0-9]*/statistics; do
		read -r bytes 2>/dev/null <"$file/tx_bytes" && read -r packets 2>/dev/null <"$file/tx_packets" || continue
		set -- ${sent:-0 0}
		sent="$(($1 + bytes)) $(($2 + packets))"
	done
	echo "sampled $word $(hostname -s) $EPOCHREALTIME $slice $user $system $busy $stolen $slowed $sent"
}
export LC_ALL=C
word=$1
sample
[ "$word" = before ] && sleep 0.2 && word=begin && sample
exit 0
