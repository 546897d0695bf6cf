#!/usr/bin/env bash
# Changes the code of the packages below in one place at a time, by gremlins, and runs their tests each time: a mutant
# that the tests do not kill is something that no test looks at. Fails when less than 95 % of them are killed, and when
# one lives, or has no result in time, that tools/mutants.txt does not explain.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=${*:-permissions connectors/reply}
# How long a mutant may take, with compiling it; about ten times what one needs on two idle processors.
export MUTANT_SECONDS=${MUTANT_SECONDS:-30}

REAL_GO=$(command -v go)
# The drawn tests draw the same each time, so that a mutant lives or dies each time.
export REAL_GO RAPID_SEED=1 RAPID_NOFAILFILE=true
ulimit -v 16777216 2>/dev/null || true # KiB: a mutant that only ever allocates ends itself, and nothing else

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$REAL_GO" build -modfile=tools/gremlins.mod -o "$work/gremlins" github.com/go-gremlins/gremlins/cmd/gremlins
for package in $packages; do # without quotes: a list
	"$REAL_GO" test "./$package" # what fails by itself kills everything
	PATH="$PWD/tools/mutate:$PATH" "$work/gremlins" unleash --workers 1 --timeout-coefficient "$MUTANT_SECONDS" \
		--exclude-files 'test/' "./$package" >"$work/log" || { cat "$work/log" >&2; exit 1; }
	sed -n -E "s#^ *(LIVED|KILLED|TIMED OUT|NOT COVERED) ([A-Z_]+) at #\1\t\2\t$package/#p" "$work/log" >>"$work/mutants"
done
awk -f tools/mutate.awk tools/mutants.txt "$work/mutants"
