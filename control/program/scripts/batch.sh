#!/bin/bash
# The job of a run: builds, runs, and keeps how that ended. What the programs print is cut in
# the middle; what they left running on this node is ended, since it may hold their output.
cd "$HOME/.muster/runs/@ID@" || exit 1
ulimit -c 0
stack=@STACK@
if [ -n "$stack" ]; then
	. /etc/profile.d/lmod.sh
	module load "stack/$stack" >stack.log 2>&1 || {
		: >build.sh
		echo 'cat ../stack.log; exit 1' >run.sh
	}
fi
export CC=mpicc CXX=mpicxx FC=mpifort

keep() {
	head -c @HEAD@ >"$1.head"
	exec tail -c @TAIL@ >"$1.tail"
}

sweep() {
	local try file pid parent found
	for try in 1 2 3 4 5; do
		found=
		for file in $(grep -lsxz "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ 2>/dev/null); do
			pid=${file#/proc/}
			pid=${pid%/environ}
			[ "$pid" = $$ ] && continue
			[ "$pid" = "$keeper" ] && continue
			read -r _ _ _ parent _ 2>/dev/null <"/proc/$pid/stat" || continue
			[ "$parent" = "$keeper" ] || [ "$parent" = $$ ] && continue
			kill -9 "$pid" 2>/dev/null
			found=1
		done
		[ -z "$found" ] && return
		sleep 0.1
	done
}

# The time from MPI_Init to MPI_Finalize, of programs that run by whatever MPI.
mpitime=/usr/libexec/muster/libmpitime.so
stage() {
	local preload=
	[ "$1" = run ] && [ -r "$mpitime" ] && preload=$mpitime
	echo "$1" >phase
	exec 3> >(keep "$1")
	keeper=$!
	began=$EPOCHREALTIME
	(
		cd work || exit 1
		[ -z "$preload" ] || export MUSTER_MPI_TIME="$PWD/../mpi" LD_PRELOAD="$preload${LD_PRELOAD:+:$LD_PRELOAD}"
		exec timeout -k 5 @LIMIT@ bash "../$1.sh"
	) </dev/null >&3 2>&1 3>&-
	status=$?
	ended=$EPOCHREALTIME
	sweep
	rm -f reserve
	exec 3>&-
	for _ in $(seq 50); do
		kill -0 "$keeper" 2>/dev/null || break
		sleep 0.1
	done
	times="$times$1 $began $ended"$'\n'
}

# sampled has every node say what its processors have done and what it has sent so far. Nothing depends on it.
sampled() {
	[ -s sample.sh ] || return
	samples="$samples$(timeout 30 srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --cpu-bind=none \
		bash "$PWD/sample.sh" "$1" 2>/dev/null </dev/null | grep '^sampled ')"$'\n'
}

times=
samples=
status=0
[ -s build.sh ] && [ -n "$(cat build.sh)" ] && stage build
if [ "$status" = 0 ]; then
	sampled before
	stage run
	sampled end
fi
{
	printf '%s' "$times"
	# One line for each MPI job, in turn or beside each other.
	[ -s mpi ] && head -n 10000 mpi | awk '{ sum += $1 } END { printf "mpi %.6f\n", sum }'
	printf '%s' "$samples" | sed '/^$/d'
	echo "status $status"
	echo "nodes" $(scontrol show hostnames "$SLURM_JOB_NODELIST")
} >end.new
mv end.new end
