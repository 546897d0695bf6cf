#!/usr/bin/env bash
# Changes the code of the packages and files below in one place at a time, by gremlins, and runs their tests each time: a mutant
# that the tests do not kill is something that no test looks at. Fails when less than 95 % of them are killed, and when
# one lives, or has no result in time, that tools/mutants.txt does not explain.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=${*:-permissions connectors/reply agents/hooks engine/store/write.go engine/store/writequeue.go}
# The tests that look at a part which is a file, of a package whose whole suite is slow.
tests() {
	case $1 in
	*/write.go | */writequeue.go) echo 'Group|LeavesTheLine|PanicsEndsAlone|DamageWasFound|CommitDid|IdleWrite|WrittenByAnother|LedgerIsRead|MarkIsNotMoved' ;;
	*.go) echo "tools/mutate.sh names no tests for $1" >&2; return 1 ;;
	*) echo . ;;
	esac
}
# How long a mutant may take, with compiling it; about ten times what one needs on two idle processors.
export MUTANT_SECONDS=${MUTANT_SECONDS:-30}

REAL_GO=$(command -v go)
# The drawn tests draw the same each time, so that a mutant lives or dies each time.
export REAL_GO RAPID_SEED=1 RAPID_NOFAILFILE=true
ulimit -v 16777216 2>/dev/null || true # KiB: a mutant that only ever allocates ends itself, and nothing else

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$REAL_GO" build -modfile=tools/gremlins.mod -o "$work/gremlins" github.com/go-gremlins/gremlins/cmd/gremlins
for part in $parts; do # without quotes: a list
	package=$part others='test/'
	if [ -f "$part" ]; then
		package=$(dirname "$part")
		for file in "$package"/*.go; do
			[ "$file" = "$part" ] || others+="|(^|/)$(basename "$file" .go)[.]go\$"
		done
	fi
	MUTANT_TESTS=$(tests "$part")
	export MUTANT_TESTS
	"$REAL_GO" test -run "$MUTANT_TESTS" "./$package/..." # what fails by itself kills everything
	PATH="$PWD/tools/mutate:$PATH" "$work/gremlins" unleash --workers 1 --timeout-coefficient "$MUTANT_SECONDS" \
		--exclude-files "$others" "./$package" >"$work/log" || { cat "$work/log" >&2; exit 1; }
	sed -n -E "s#^ *(LIVED|KILLED|TIMED OUT|NOT COVERED) ([A-Z_]+) at #\1\t\2\t$package/#p" "$work/log" >>"$work/mutants"
done
awk -f tools/mutate.awk tools/mutants.txt "$work/mutants"
