#!/usr/bin/env bash
# Checks that every package that does not need SQLite compiles for macOS. That binding needs a C compiler for macOS, so
# what imports it is left out; a package whose tests alone import it is compiled without them.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOOS=darwin CGO_ENABLED=0

list() { go list "$@" -f '{{.ImportPath}} {{join .Deps " "}}' ./...; }
sqlite=' github[.]com/mattn/go-sqlite3( |$)'

plain=$(list | awk -v sqlite="$sqlite" '$0 !~ sqlite { print $1 }')
tests=$(list -test | awk -v sqlite="$sqlite" '$0 ~ sqlite { sub(/(_test|[.]test)$/, "", $1); print $1 }')
whole=$(grep -vxF "$tests" <<<"$plain" || true)
code=$(grep -xF "$tests" <<<"$plain" || true)

# Unquoted: lists of import paths, which have no spaces.
[ -z "$whole" ] || go vet $whole
[ -z "$code" ] || go build $code
echo "darwin: $(wc -w <<<"$whole") packages with their tests, $(wc -w <<<"$code") without"
