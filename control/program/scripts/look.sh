# Prints how the job of a run is: lines for a program, and at the end its output.
export LC_ALL=C.UTF-8
cd "$HOME/.muster/runs/@ID@" 2>/dev/null && [ -s job ] || {
	echo "state gone"
	exit 0
}
job=$(cat job)
if [ ! -f end ]; then
	now=$(squeue -h -j "$job" -o '%T|%M|%N|%r' 2>&1)
	status=$?
	if [ $status != 0 ] && [[ $now != *"Invalid job id"* ]]; then
		echo "state unknown"
		exit 0
	fi
	if [ $status = 0 ] && [ -n "$now" ]; then
		echo "state queue"
		echo "phase $(cat phase 2>/dev/null)"
		echo "queue $now"
		exit 0
	fi
	# Its end may be on its way here by the network, unless it was ended from outside.
	was=$(scontrol -o show job "$job" 2>/dev/null | grep -oE '(JobState|NodeList|Reason)=[^ ]*' | tr '\n' ' ')
	tries=20
	[[ $was == *JobState=* && $was != *JobState=COMPLETED* ]] && tries=4
	for _ in $(seq $tries); do
		ls >/dev/null
		[ -f end ] && break
		sleep 0.5
	done
fi
echo "state ended"
echo "phase $(cat phase 2>/dev/null)"
if [ -f end ]; then
	cat end
else
	echo "job $was"
fi
phase=$(cat phase 2>/dev/null)
echo "output"
cat "${phase:-run}.head" "${phase:-run}.tail" 2>/dev/null
exit 0
