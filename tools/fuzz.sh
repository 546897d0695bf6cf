#!/usr/bin/env bash
# Runs every property of the module with 2,000 cases that differ in each run, and then every fuzz target, one after the other, for
# the time given (30s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}

grep -lE 'rapid\.Check\(' -r --include='*_test.go' . | xargs -n 1 dirname | sort -u | while read -r package; do
	names=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /rapid\.Check\(/ { print name }' "$package"/*_test.go | sort -u | paste -sd '|')
	echo "$package $names"
	RAPID_SEED=0 RAPID_CHECKS=2000 go test -timeout 30m -count=1 -run "^($names)\$" "$package" </dev/null
done

targets=$(grep -rE '^func Fuzz' --include='*_test.go' . | sed -E 's#/[^/]*:func (Fuzz[A-Za-z0-9]*).*# \1#' | sort)
[ -n "$targets" ] || { echo 'there is no fuzz target' >&2; exit 1; }
while read -r package name; do
	echo "$package $name $time"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s "$package" </dev/null
done <<<"$targets"
