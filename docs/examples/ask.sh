#!/bin/sh
# ask.sh KEY REASON TAG…: ask the daemon of this machine, and act on the answer. daycared ask itself waits, asks again when
# the connection is lost, and says on stderr what happens meanwhile.
key=$1 reason=$2
shift 2
answer=$(daycared ask --key "$key" --reason "$reason" "$@")
code=$?
case $code in
0) echo "go on: $answer" ;;
3) echo "leave it: ${answer:-see the line above}" ;;
4 | 6) echo "nobody answered, try again later: $answer" ;;
*) echo "not asked, or not settled: see the line above" >&2 ;;
esac
exit $code
