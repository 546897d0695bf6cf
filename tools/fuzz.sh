#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, for the time given (30s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}

targets=$(grep -rE '^func Fuzz' --include='*_test.go' . | sed -E 's#/[^/]*:func (Fuzz[A-Za-z0-9]*).*# \1#' | sort)
[ -n "$targets" ] || { echo 'there is no fuzz target' >&2; exit 1; }
while read -r package name; do
	echo "$package $name $time"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s "$package" </dev/null
done <<<"$targets"
