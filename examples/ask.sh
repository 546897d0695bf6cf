#!/bin/sh
# Asks people through daycared, and waits for as long as they take: ask.sh KEY REASON TAG
case "$*" in *[\"\\]*) echo 'no quotes and no backslashes, please' >&2 && exit 2 ;; esac
body='{"kind":"permission","permissions":["'$3'"],"reason":"'$2'","key":"'$1'","wait":"50s"}'
call=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
until=$(($(date +%s) + 3600))

ask() {
	curl -sS --max-time 65 --unix-socket "$DAYCARED_SOCKET" -H 'Content-Type: application/json' \
		-H "Daycared-Call: $call" -d "$body" -w '\n%{http_code}' http://localhost/v1/requests 2>/dev/null
}
said() { printf '%s' "$told" | sed -n 's/.*"'"$1"'":"\(\(\\.\|[^"\\]\)*\)".*/\1/p'; }

while [ "$(date +%s)" -lt "$until" ]; do
	told=$(ask) || { sleep 1 && continue; } # the daemon is away; the question stands, and the key finds it again
	case "$(printf '%s' "$told" | tail -n 1) $(said state)" in
	'200 pending') ;;
	'200 '*) said result && [ "$(said state)" = approved ] && exit 0 || exit 3 ;;
	429* | 503*) sleep 1 ;;
	*) said detail >&2 && exit 1 ;;
	esac
done
echo 'nobody has answered, and that is not a yes' >&2 && exit 1
