#!/bin/sh
# Says in one place what this machine lacks to build daycared, each thing by its own name and with the Debian package
# that has it, and exits 1 if anything is missing. With --packages it prints those packages alone, one a line, and exits 0.
#
#   tools/need.sh [--packages]        to build
#   tools/need.sh [--packages] test   to test: also how long that takes and how much memory
set -eu
cd "$(dirname "$0")/.."

[ "${1-}" != --packages ] || { only_packages=1; shift; }
purpose=${1-build}
missing='' # sentences, a line each
packages=''

# lacks adds a sentence about what is missing, and the Debian packages that have it.
lacks() {
	missing="$missing  $1
"
	shift
	packages="$packages${*:+ $*}"
}

# older reports whether the first version is less than the second.
older() {
	awk -v a="$1" -v b="$2" 'BEGIN {
		sub(/^[^0-9]*/, "", a)
		split(a, x, /[^0-9]+/); n = split(b, y, /[^0-9]+/)
		for (i = 1; i <= n; i++) if (x[i] + 0 != y[i] + 0) exit x[i] + 0 >= y[i] + 0
		exit 1
	}'
}

# certificates reports whether Go finds the certificates of authorities, by Go's own rules and places.
certificates() {
	[ "$(uname)" != Darwin ] || return 0
	for file in ${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem \
		/etc/pki/tls/cacert.pem /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem /etc/ssl/cert.pem}; do
		[ ! -s "$file" ] || return 0
	done
	for dir in $(echo "${SSL_CERT_DIR:-/etc/ssl/certs:/etc/pki/tls/certs}" | tr : ' '); do
		[ -z "$(ls "$dir" 2>/dev/null)" ] || return 0
	done
	return 1
}

# need_go says what is wrong with Go, and sets cc to the C compiler that it calls. A Go since 1.21 may fetch the newer one
# that go.mod wants, unless it is told not to.
need_go() {
	want=$(sed -n 's/^go //p' go.mod)
	install="install Go ${want%.0} or newer, https://go.dev/dl (the golang-go of Debian 12 and 13 is older)"
	if ! command -v go >/dev/null; then
		[ ! -x /usr/local/go/bin/go ] || install='it is in /usr/local/go/bin: put that on the PATH'
		lacks "Go is missing: $install"
		return
	fi
	if ! said=$(GOTOOLCHAIN=local go env GOVERSION CC 2>&1); then
		lacks "Go does not work (go env: $(echo "$said" | head -n 1)): $install"
		return
	fi
	version=$(echo "$said" | sed -n 's/^go//; 1p')
	cc=$(echo "$said" | sed -n 2p)
	if ! older "$version" "$want"; then
		certificates || GOPROXY=off go list -deps ./... >/dev/null 2>&1 ||
			lacks 'The certificates that Go fetches modules with are missing' ca-certificates
	elif older "$version" 1.21; then
		lacks "Go $version is too old: $install"
	elif ! said=$(go env GOVERSION 2>&1); then
		certificates || {
			lacks "The certificates are missing that Go $version would fetch Go ${want%.0} with" ca-certificates
			return
		}
		lacks "Go $version is too old and cannot fetch a newer one ($(echo "$said" | tail -n 1)): $install"
	elif older "$said" "$want"; then
		lacks "Go $version is too old: $install"
	fi
}

# need_program says if a program is missing, which the Debian packages have.
need_program() {
	program=$1
	shift
	command -v "$program" >/dev/null || lacks "$program is missing" "$@"
}

cc=${CC:-gcc}
need_go
if ! command -v "${cc%% *}" >/dev/null; then
	lacks "A C compiler is missing, which SQLite needs (${cc%% *} is not there; CC names another)" gcc libc6-dev
elif ! echo '#include <stdlib.h>' | $cc -x c -fsyntax-only - 2>/dev/null; then # $cc may have arguments
	lacks "The C library's headers are missing (${cc%% *} cannot include stdlib.h)" libc6-dev
fi
need_program make make
if [ "$purpose" = test ]; then
	need_program git git
	need_program curl curl
	need_program python3 python3
	need_program npm npm
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || need_program initdb postgresql
	if ! command -v node >/dev/null; then
		lacks 'node is missing' nodejs
	elif older "$(node --version)" 18; then
		lacks "Node $(node --version) is too old: the examples need 18"
	fi
fi

if [ -n "${only_packages-}" ]; then
	for package in $packages; do echo "$package"; done | sort -u
	exit
fi
if [ -n "$missing" ]; then
	printf 'This machine lacks what the %s needs:\n%s' "$purpose" "$missing" >&2
	[ -z "$packages" ] || echo "On Debian, as root: apt-get install$packages" >&2
	exit 1
fi
[ "$purpose" != test ] || cat <<-END
	Every test: about 12 minutes on two idle processors, up to 2 GB of memory, 3 GB of disk; the first run needs the network.
END
