#!/bin/sh
# Reports whether bin/daycared is of the version given and not older than what it is built from; says why if not. It needs
# no Go: so `sudo make install` installs what a user has built.
cd "$(dirname "$0")/.." || exit 1
[ -x bin/daycared ] || { echo 'bin/daycared is not built yet'; exit 1; }
newer=$(find go.mod go.sum agents client cmd connectors engine internal permissions -newer bin/daycared \
	-type f ! -name '*_test.go' ! -path '*/testdata/*' -print | head -n 1)
[ -z "$newer" ] || { echo "bin/daycared is older than $newer"; exit 1; }
built=$(bin/daycared version | cut -d ' ' -f 2)
[ -z "$1" ] || [ "$built" = "$1" ] || { echo "bin/daycared is of version $built, and this is $1"; exit 1; }
