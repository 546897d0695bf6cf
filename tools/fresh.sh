#!/usr/bin/env bash
# Does what the README says for a fresh machine, from zero: for each Debian named (bookworm, trixie) it makes a minimal root,
# puts this machine's Go and a clone of HEAD there, installs the packages that the README names as it says, and runs `make
# demo` and `make test` as a plain account with empty caches, in a control group with MEMORY (2 GiB). Prints for each the
# wall clock, the CPU time, and the memory. Needs root, debootstrap, Linux with control groups (v1 or v2) and the network:
# Debian's mirror, proxies, certificates and the registries of Go and npm are those that this machine is set up with.
set -euo pipefail
cd "$(dirname "$0")/.."
MEMORY=${MEMORY:-2147483648}

fail() { echo "fresh: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail 'this makes a root of its own: run it as root'
for program in debootstrap unshare chroot git go npm; do
	command -v $program >/dev/null || fail "$program is missing"
done

# The README's own words: what to install for building and then for testing, and the two commands.
mapfile -t installs < <(grep -o '`apt-get install [^`]*`' README.md | tr -d '`')
demo=$(grep -o "\`make demo ARGS='[^']*'\`" README.md | head -n 1 | tr -d '`')
[ "${#installs[@]}" -ge 2 ] && [ -n "$demo" ] && grep -q '^    make test' README.md ||
	fail 'the README no longer says `apt-get install …` twice, `make demo ARGS=…`, and make test'

work=$(mktemp -d /var/tmp/daycared-fresh.XXXXXX)
group=
running= # the job that runs a command line of the README
# What runs in a root has a namespace of its own for its mounts and processes, so that both end with it. finish ends the
# job, which ignores Ctrl-C as jobs in the background do, and all that it started.
finish() {
	[ -n "$running" ] || return 0
	while [ -n "$(cat "$group/cgroup.procs")" ] || kill -0 "$running" 2>/dev/null; do
		xargs -r kill -KILL <"$group/cgroup.procs" 2>/dev/null || true
		sleep 0.1
	done
}
clean() {
	trap '' INT TERM HUP # a second Ctrl-C would leave half of it
	finish
	[ -z "$group" ] || rmdir "$group" || true
	rm -rf --one-file-system "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

# limit makes a control group with MEMORY at most, and no swap.
limit() {
	local base
	if base=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts) && [ -n "$base" ]; then
		group=$base/daycared-fresh-$$
		mkdir "$group" && echo "$MEMORY" >"$group/memory.limit_in_bytes" || fail 'the memory cannot be limited (control groups v1)'
		[ ! -e "$group/memory.memsw.limit_in_bytes" ] || echo "$MEMORY" >"$group/memory.memsw.limit_in_bytes"
	elif base=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts) && [ -n "$base" ]; then
		group=$base/daycared-fresh-$$
		echo +memory >"$base/cgroup.subtree_control" && mkdir "$group" && echo "$MEMORY" >"$group/memory.max" ||
			fail 'the memory cannot be limited (control groups v2)'
		[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
	else
		fail 'this machine has no control group for memory'
	fi
}

# used prints the bytes of the group's processes; what the kernel keeps of files can be taken back and does not count.
used() { awk '$1 == "total_rss" || $1 == "anon" { print $2; exit }' "$group/memory.stat"; }

# killed prints how many processes of the group the kernel killed for want of memory.
killed() { cat "$group"/memory.{oom_control,events} 2>/dev/null | awk '$1 == "oom_kill" { print $2 }'; }

# inside runs a command line in the root, as an account.
inside() {
	local account=$1 home
	shift
	home=$(chroot "$root" getent passwd "$account" | cut -d : -f 6)
	unshare --mount --pid --fork --kill-child bash -c '
		set -e
		mount -t proc proc "$0/proc"
		mount --rbind /dev "$0/dev"
		exec chroot --userspec="$1" "$0" env -i "${@:3}" bash -c "cd && $2"' \
		"$root" "$account" "$*" HOME="$home" USER="$account" PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${settings[@]}"
}

# measured runs a command line of the README in the group and adds a line to the report.
measured() {
	local at=$EPOCHREALTIME most=0 now code=0 TIMEFORMAT='%U %S'
	printf '\n== %s: %s\n' "$suite" "$*"
	{ time (echo "$BASHPID" >"$group/cgroup.procs" && inside fay "cd daycared && $*" >&3 2>&4); } 3>&1 4>&2 2>"$work/times" &
	running=$!
	while kill -0 $running 2>/dev/null; do
		now=$(used)
		[ "$now" -le "$most" ] || most=$now
		sleep 0.2
	done
	wait $running || code=$?
	running=
	awk -v suite="$suite" -v command="$*" -v from="$at" -v to="$EPOCHREALTIME" -v most="$most" -v killed="$(killed)" -v code="$code" \
		'END { printf "%-9s %-10s %6.0f s %7.0f CPU-s %6.0f MiB at most, %d killed for want of memory, exit %d\n",
			suite, substr(command, 1, 9), to - from, $1 + $2, most / 1048576, killed, code }' "$work/times" | tee -a "$work/report"
	return $code
}

# What this machine is set up with, for those who fetch.
settings=()
for name in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOINSECURE GOTOOLCHAIN; do
	settings+=("$name=$(go env $name)")
done
for name in registry proxy https-proxy noproxy; do
	value=$(npm config get $name)
	[ "$value" = null ] || [ -z "$value" ] || settings+=("npm_config_${name//-/_}=$value")
done
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_EXTRA_CA_CERTS; do
	[ -z "${!name-}" ] || settings+=("$name=${!name}")
done
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)

result=0
for suite in "${@:-bookworm}"; do
	root=$work/$suite
	debootstrap --variant=minbase "$suite" "$root" $mirror >"$work/log" || { tail "$work/log" >&2; fail "no $suite"; }
	apt-config dump | grep -E '^Acquire::(http|https)::' >"$root/etc/apt/apt.conf.d/90host" || true
	cp -rL /etc/resolv.conf /etc/hosts "$root/etc/"
	mkdir -p "$root/usr/local/share"
	[ ! -d /usr/local/share/ca-certificates ] || cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
	cp -r "$(go env GOROOT)" "$root/usr/local/go"
	chroot "$root" useradd --create-home --shell /bin/bash fay
	git clone -q "file://$PWD" "$root/home/fay/daycared"
	chroot "$root" chown -R fay: /home/fay
	limit
	inside root "apt-get update -q && ${installs[0]/install/install -q -y}" >"$work/log" 2>&1 || { tail "$work/log" >&2; fail "${installs[0]}"; }
	measured "$demo" || result=1
	inside root "${installs[1]/install/install -q -y}" >"$work/log" 2>&1 || { tail "$work/log" >&2; fail "${installs[1]}"; }
	measured make test || result=1
	rmdir "$group"
	group=
	rm -rf --one-file-system "$root"
done
printf '\n'
cat "$work/report"
exit $result
