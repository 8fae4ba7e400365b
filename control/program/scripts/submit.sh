# Submits the job of a run, unless it has been.
umask 077
export LC_ALL=C.UTF-8
dir="$HOME/.muster/runs/@ID@"
[ -s "$dir/job" ] && exit 0
needs=@NEEDS@
if [ -n "$needs" ] && [ ! -x "$needs" ]; then
	echo "the image has no $needs: build it again with this version of Muster (muster image build), and create the cluster anew" >&2
	exit 69
fi
stack=@STACK@
if [ -n "$stack" ] && ! { [ -r /etc/profile.d/lmod.sh ] && . /etc/profile.d/lmod.sh && module is-avail "stack/$stack" </dev/null; } >/dev/null 2>&1; then
	echo "the image has no stack $stack: create the cluster with image hpc-stacks, or see which there are: module avail stack" >&2
	exit 69
fi
mkdir -p "$dir/work" && cd "$dir" || exit 1
# One at a time, and whoever comes after one that was cut off goes on where it was.
exec 9>lock && flock -w 60 9 || exit 75
[ -s job ] && exit 0
if [ ! -s job.new ]; then
	# So much of the disk is for what the run shows, even if the program fills the rest.
	head -c $((@HEAD@ + 2 * @TAIL@)) /dev/zero >reserve || exit 1
	printf '%s\n' @BUILD@ >build.sh
	printf '%s\n' @RUN@ >run.sh
	printf '%s' @BATCH@ >batch.sh
	printf '%s' @SAMPLE@ >sample.sh
	sbatch --parsable --exclusive --mem=0 --no-requeue --job-name=@NAME@ --nodes=@NODES@ --ntasks=@RANKS@ --ntasks-per-node=@PER_NODE@ @THREADS@\
		--time=@MINUTES@ --chdir="$dir" --output=/dev/null --error=/dev/null batch.sh >job.new || exit 1
fi
cut -d';' -f1 job.new >job.id && mv job.id job
