#!/usr/bin/env bash
# Runs go generate and fails if that changes any file of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."

sums() {
	find . \( -name .git -o -path ./bin \) -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
}

before=$(sums)
go generate ./...
if ! diff <(echo "$before") <(sums); then
	echo 'generated files were stale; they are fresh now: look at them and commit them' >&2
	exit 1
fi
