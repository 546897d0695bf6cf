#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, for the time given (30s).
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}

# go test -list prints the names in a package, then "ok" and the package.
targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[++n] = $1 }
	$1 == "ok" { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')
[ -n "$targets" ] || { echo 'there is no fuzz target' >&2; exit 1; }
while read -r package name; do
	echo "$package $name $time"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s "$package" </dev/null
done <<<"$targets"
