#!/usr/bin/env bash
# Measures a cluster with Muster's built-in programs. gcc, make and an MPI are needed.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
	cat <<END
usage: ./measure --name NAME [options]

Builds the programs with mpicc, runs each several times in random order, and writes a line of
JSON for each run. Load the result into Muster: muster platform import FILE

  --name NAME         what to call this platform: letters, digits, hyphens
  --programs LIST     of $all (default: all but farm)
  --class CLASS       S, W, A, B or C (default A)
  --ranks LIST        numbers of ranks, such as 4,16 (default: one for each core of this node)
  --launches N        runs of each (default 10; fewer than 6 have no interval)
  --launcher COMMAND  how ranks are started; {ranks} is their number
                      (default: 'mpirun -n {ranks}', without binding)
  --timeout SECONDS   for each run (default 3600)
  --output FILE       where lines go (default NAME.jsonl); it is continued if it is there
  --cflags FLAGS      of the compiler (default -O3)

Inside a job of Slurm, for example:
  ./measure --name archer --ranks 64,128 --launcher 'srun --cpu-bind=none -n {ranks}'
The first core of the ranks on each node is one of the socket of the network card; name another
card by MUSTER_NIC=eth1.
END
}

all=ep,is,cg,mg,ft,lu,sp,bt,lattice,farm
name='' programs=ep,is,cg,mg,ft,lu,sp,bt,lattice class=A ranks='' launches=10 launcher='' limit=3600 output='' cflags=-O3
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h) usage; exit 0 ;;
	--name | --programs | --class | --ranks | --launches | --launcher | --timeout | --output | --cflags)
		[ $# -gt 1 ] || { echo "measure: $1 needs a value" >&2; exit 2; }
		case $1 in
		--name) name=$2 ;; --programs) programs=$2 ;; --class) class=$2 ;; --ranks) ranks=$2 ;; --launches) launches=$2 ;;
		--launcher) launcher=$2 ;; --timeout) limit=$2 ;; --output) output=$2 ;; --cflags) cflags=$2 ;;
		esac
		shift 2 ;;
	*) echo "measure: there is no option $1" >&2; usage >&2; exit 2 ;;
	esac
done

bad=
wrong() { echo "measure: $*" >&2; bad=1; }
[[ $name =~ ^[a-z0-9][a-z0-9-]{0,62}$ ]] || wrong "--name '$name': write lower-case letters, digits and hyphens"
[[ $class =~ ^[SWABC]$ ]] || wrong "--class '$class': write S, W, A, B or C"
[[ $launches =~ ^[1-9][0-9]{0,3}$ ]] || wrong "--launches '$launches': write a number from 1 to 9999"
[[ $limit =~ ^[1-9][0-9]{0,6}$ ]] || wrong "--timeout '$limit': write seconds"
[ -n "$ranks" ] || ranks=$(nproc)
[[ $ranks =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || wrong "--ranks '$ranks': write numbers, such as 4,16"
for p in ${programs//,/ }; do
	[[ ,$all, == *,$p,* ]] || wrong "--programs: there is no $p; write some of $all"
done
for tool in mpicc make timeout; do
	command -v "$tool" > /dev/null || wrong "there is no $tool here: load the module of an MPI, or install it"
done
mpi=$( (mpirun --version || mpiexec --version) 2> /dev/null | head -n 2 | tr '\n' ' ' || :)
if [ -z "$launcher" ]; then
	launcher='mpirun -n {ranks}'
	# bind gives each rank its core; the launcher's own binding would be in its way.
	[[ $mpi == *"Open MPI"* || $mpi == *OpenRTE* ]] && launcher='mpirun --bind-to none -n {ranks}'
fi
[[ $launcher == *'{ranks}'* ]] || wrong "--launcher '$launcher': write {ranks} where the number of ranks belongs"
[ -z "$bad" ] || exit 2
output=${output:-$name.jsonl}

text() { tr -cd '[:print:]' | tr -d '"\\' | cut -c 1-200; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

make -s -C kernels/src BUILD="$PWD/build" CFLAGS="$cflags" all
make -s -C apps BUILD="$PWD/build/apps" CFLAGS="$cflags" all
compiler=$(mpicc --version 2> /dev/null | head -n 1 | text)

# size: what a program is given for a class.
size() {
	case $1:$class in
	farm:S) echo --tasks 200 --mean-ms 5 ;; farm:W) echo --tasks 1000 --mean-ms 10 ;; farm:A) echo --tasks 10000 --mean-ms 10 ;;
	farm:B) echo --tasks 40000 --mean-ms 20 ;; farm:C) echo --tasks 200000 --mean-ms 50 ;;
	lattice:S) echo --size 8x8x8x16 ;; lattice:W) echo --size 12x12x12x24 ;; lattice:A) echo --size 16x16x16x32 ;;
	lattice:B) echo --size 24x24x24x48 ;; lattice:C) echo --size 32x32x32x64 ;;
	*) echo --class "$class" ;;
	esac
}

printf '{"kind":"muster-platform/1","name":"%s","began":"%s","kit":"%s","launcher":"%s","compiler":"%s","flags":"%s","mpi":"%s","launches":%d}\n' \
	"$name" "$(now)" "$(cat version)" "$(echo "$launcher" | text)" "$compiler" "$(echo "$cflags" | text)" "$(echo "$mpi" | text)" "$launches" >> "$output"

# What the nodes are, once for each number of ranks.
for n in ${ranks//,/ }; do
	${launcher//\{ranks\}/$n} ./bind --facts < /dev/null 2> build/facts.err | sed -n 's/^.*\({"node":.*}\).*$/\1/p' |
		sed "s/^{/{\"ranks\":$n,/" > build/facts || :
	[ -s build/facts ] || { echo "measure: no rank started by '$launcher': $(tail -n 3 build/facts.err)" >&2; exit 1; }
	cat build/facts >> "$output"
done

cells=()
for p in ${programs//,/ }; do for n in ${ranks//,/ }; do cells+=("$p $n"); done; done
total=$((${#cells[@]} * launches)) done=0 start=$SECONDS
for round in $(seq "$launches"); do
	# Another order in each round: what changes with time hits all alike.
	while read -r p n; do
		folder=build
		case $p in lu | sp | bt | farm | lattice) folder=build/apps ;; esac
		read -r load _ < /proc/loadavg
		began=$(now) from=$(date +%s.%N) status=0
		# shellcheck disable=SC2046 # words of options
		timeout -k 10 "$limit" ${launcher//\{ranks\}/$n} ./bind "$folder/muster-$p" $(size "$p") --json < /dev/null > build/out 2> build/err || status=$?
		wall=$(echo "$from $(date +%s.%N)" | awk '{ printf "%.6f", $2 - $1 }')
		result=$(grep -a '^{.*}$' build/out | tail -n 1 | cut -c 1-60000 || :)
		printf '{"program":"%s","class":"%s","ranks":%d,"round":%d,"began":"%s","load":%s,"wall_seconds":%s,"status":%d,"message":"%s","result":%s}\n' \
			"$p" "$class" "$n" "$round" "$began" "$load" "$wall" "$status" "$(tail -n 1 build/err | text)" "${result:-null}" >> "$output"
		done=$((done + 1))
		printf '\r%d of %d, about %d s more: %s on %d ranks%s   ' "$done" "$total" $(((SECONDS - start) * (total - done) / done)) "$p" "$n" \
			"$([ "$status" = 0 ] || echo " ended with status $status")" >&2
	done < <(printf '%s\n' "${cells[@]}" | shuf)
done
printf '\n' >&2
echo "$output: load it into Muster by: muster platform import $output"
