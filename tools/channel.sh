#!/bin/sh
# Runs the tests of one channel in several processes, because they wait more than they compute: tools/channel.sh telegram
set -eu
dir=
for part in connectors examples; do
	[ -d "$part/${1:-.}" ] && [ -n "${1:-}" ] && dir=$part/$1
done
[ -n "$dir" ] || { echo 'which channel? make test-channel CHANNEL=telegram' >&2; exit 2; }
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go test -c -o "$bin/" "./$dir/..." # one binary for each package, with the package's name
for path in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "./$dir/..."); do
	test=$bin/$(basename "$path").test
	(cd "$path" && "$test" -test.list . | grep -E '^(Test|Fuzz|Example)' |
		xargs -P 4 -n 6 sh -c 'out=$("$0" -test.timeout 5m -test.run "^($(echo "$*" | tr " " "|"))\$" 2>&1) || { echo "$out"; exit 1; }' \
			"$test")
done
echo "$dir: ok"
