#!/bin/sh
# figures.sh run FILE DECISIONS: run the benchmarks of tools/goals.txt, and keep in FILE what they print, after what is to be said of the
# machine; show FILE: print the table of what was kept; write FILE: write it and its picture to docs/performance.md and .svg.
set -eu
LC_ALL=C
export LC_ALL
goals=tools/goals.txt
show() { awk -v as="$1" -f tools/figures.awk "$goals" "$2"; }

# disk is the file system of a folder, and how long a write of 4 KB over what was there takes with its sync.
disk() {
	file=$(mktemp "$1/figures.XXXXXX")
	dd if=/dev/zero of="$file" bs=4096 count=201 2>/dev/null
	sync
	took=$(dd if=/dev/zero of="$file" bs=4096 count=201 conv=notrunc oflag=dsync 2>&1 | awk '/copied/ { for (i = NF; i > 1; i--) if ($i ~ /^s/) print $(i - 1) }')
	rm -f "$file"
	awk -v dir="$1" -v took="$took" 'index(dir "/", $2 == "/" ? "/" : $2 "/") == 1 && length($2) > long { long = length($2); kind = $3 }
		END {
			printf "disk: %s", kind ? kind : "a disk"
			if (took) printf ", where 4 KB written over and synced take %.2g ms", took / 201 * 1000
			print ""
		}' \
		"$(test -r /proc/self/mounts && echo /proc/self/mounts || echo /dev/null)"
}

case ${1:-} in
run)
	keep=$2
	case $3 in '' | 0 | *[!0-9]*) echo "figures: DECISIONS is $3, and has to be 1 or more" >&2; exit 1 ;; esac
	part=$(($3 < 50000 ? $3 : 50000)) parts=$((($3 + 49999) / 50000))
	export DECISIONS=$part
	mkdir -p "$(dirname "$keep")"
	{ echo "cores: $(getconf _NPROCESSORS_ONLN)"; echo "toolchain: $(go env GOVERSION)"; disk "${TMPDIR:-/tmp}"; } >"$keep"
	awk -F ' *[|] *' '!/^#/ && NF && !seen[$3, $4]++ { print $3, $4, $5, $6 }' "$goals" | while read -r package pattern time count; do
		test "$count" != DECISIONS || count=$parts
		echo "$package $pattern, $count times" >&2
		go test -run '^$' -bench "^Benchmark$pattern" -benchtime "$time" -count "$count" -timeout 6h "$package" >"$keep.part" ||
			failed="figures: run Benchmark$pattern of $package: it failed"
		tee -a "$keep" <"$keep.part" | sed 's/^/  /' >&2
		rm "$keep.part"
		test -z "${failed:-}" || { echo "$failed" >&2; exit 1; }
	done
	;;
show) show text "$2" ;;
write)
	new=$(mktemp)
	trap 'rm -f "$new"' EXIT
	show page "$2" >"$new"
	awk -v section="$new" '
		/^<!-- figures: written by make figures -->$/ { begins++; print; while ((getline line <section) > 0) print line; inside = 1; next }
		/^<!-- figures end -->$/ { ends++; if (!inside) ends = 9; inside = 0 }
		!inside { print }
		END { exit begins == 1 && ends == 1 ? 0 : 1 }' docs/performance.md >"$new.page" ||
		{ rm "$new.page"; echo 'figures: docs/performance.md does not have both marks, each once, in order' >&2; exit 1; }
	show picture "$2" >docs/performance.svg
	cat "$new.page" >docs/performance.md
	rm "$new.page"
	;;
*) sed -n '2,3s/^# //p' "$0" >&2; exit 2 ;;
esac
