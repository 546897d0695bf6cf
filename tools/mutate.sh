#!/usr/bin/env bash
# Changes the code of the packages and files below in one place at a time and runs their tests each time: a mutant
# that the tests do not kill is something that no test looks at. Fails when less than 95 % of them are killed, and when
# one lives, or has no result in time, that tools/mutants.txt does not explain; or when a package has no tests. A package
# whose name ends in test helps tests and is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=${*:-permissions connectors/reply agents/hooks engine/store/write.go engine/store/writequeue.go}
# The tests that look at a part which is a file, of a package whose whole suite is slow.
tests() {
	case $1 in
	*/write.go | */writequeue.go)
		printf '%s|%s' 'Group|LeavesTheLine|PanicsEndsAlone|DamageWasFound|CommitDid|IdleWrite|WrittenByAnother|HeadIsReadAgain' \
			'MarkIsNotMoved|TriggerCouldUndo|WithoutAnAnswer|FailsInTheEnd|ToldOnlyWhatOthers' ;; # the last three in PostgreSQL
	engine/*.go) echo "tools/mutate.sh names no tests for $1" >&2; return 1 ;;
	*) echo . ;;
	esac
}
# How long the tests of a mutant may take: longer than the half minute after which a test has waited in vain.
seconds=${MUTANT_SECONDS:-45}

# The drawn tests draw the same each time, so that a mutant lives or dies each time.
export RAPID_SEED=1 RAPID_NOFAILFILE=true
ulimit -v 16777216 2>/dev/null || true # KiB: a mutant that only ever allocates ends itself, and nothing else

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/mutate" ./tools/mutate
for part in $parts; do # without quotes: a list
	part=${part#./}
	run=$(tests "$part")
	if [ -f "$part" ]; then all=$part; else all=$(go list -f '{{.Dir}}' "./$part/..." | grep -v 'test$' | sed "s#^$PWD/##"); fi
	for one in $all; do
		echo "$one" >&2
		if [ -d "$one" ] && ! compgen -G "$one/*_test.go" >/dev/null; then echo "$one has no tests" >&2; exit 1; fi
		"$work/mutate" -run "$run" -timeout "${seconds}s" "$one" | tee -a "$work/mutants" | grep -v '^KILLED' >&2 || test "${PIPESTATUS[0]}" = 0
	done
done
awk -f tools/mutate.awk tools/mutants.txt "$work/mutants"
