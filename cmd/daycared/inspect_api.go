package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// listener checks the certificate and the port of the listener for remote agents.
func (in *inspection) listener() {
	a := in.cfg.API
	if a.Listen == "" {
		return
	}
	if a.TLSCertFile != "" {
		in.certificate(a.TLSCertFile, a.TLSKeyFile)
	}
	if in.running != nil && wire.Value(in.running.Listen) == a.Listen {
		return // our own daemon listens there
	}
	l, err := net.Listen("tcp", a.Listen) //nolint:noctx // it is closed at once
	if err == nil {
		_ = l.Close()
	}
	in.listened(a.Listen, err)
}

// listened adds a problem if the daemon could not listen at an address.
func (in *inspection) listened(address string, err error) {
	const key = "api.listen"
	host, port, _ := net.SplitHostPort(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && in.locked():
		in.blind = append(in.blind, address+", which the daemon that runs may have")
	case errors.Is(err, syscall.EADDRINUSE):
		in.fails(key, "%s: %s is in use by %s; choose another port, or end that program", key, address, listening(host, port))
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		in.fails(key, "%s: this machine has no address %s; write one that it has: %s", key, host, strings.Join(addresses(), ", "))
	case errors.Is(err, syscall.EACCES):
		in.fails(key, "%s: port %s may not be listened at by %s; write one of 1024 or above", key, port, accountName(in.cli.UID))
	case err != nil:
		in.fails(key, "%s: %v; write another address", key, err)
	}
}

// locked reports whether a daemon runs that does not report its status: another process holds this data directory, or the daemon
// refuses this account.
func (in *inspection) locked() bool {
	if in.cli.statusRefused {
		return true
	}
	by, held := heldBy(in.paths.DataDir)
	return held && by.PID != os.Getpid()
}

// listening describes the process that listens on a local port, if this account may see the process's open files.
func listening(host, port string) string {
	number, _ := net.LookupPort("tcp", port) //nolint:noctx // it is a number, or in a file
	mine := net.ParseIP(host)
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} { // proc(5); they may not exist
		text, _ := os.ReadFile(table)
		for row := range strings.Lines(string(text)) {
			const local, state, inode, listens = 1, 3, 9, "0A"
			f := strings.Fields(row)
			if len(f) <= inode || f[state] != listens {
				continue
			}
			at, hexPort, _ := strings.Cut(f[local], ":")
			ip, _ := hex.DecodeString(at)
			for i := 0; i+4 <= len(ip); i += 4 {
				binary.BigEndian.PutUint32(ip[i:], binary.NativeEndian.Uint32(ip[i:]))
			}
			if hexPort == fmt.Sprintf("%04X", number) &&
				(mine == nil || mine.IsUnspecified() || net.IP(ip).IsUnspecified() || mine.Equal(ip)) {
				sockets["socket:["+f[inode]+"]"] = true
			}
		}
	}
	open, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, name := range open {
		if to, err := os.Readlink(name); err == nil && sockets[to] {
			process := filepath.Dir(filepath.Dir(name))
			program, _ := os.ReadFile(filepath.Join(process, "comm"))
			return fmt.Sprintf("pid %s (%s)", filepath.Base(process), spelled(strings.TrimSpace(string(program))))
		}
	}
	return "another program"
}

// addresses are the addresses of this machine.
func addresses() (all []string) {
	found, _ := net.InterfaceAddrs()
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			all = append(all, n.IP.String())
		}
	}
	return all
}

// certificate checks a certificate and its key.
func (in *inspection) certificate(certFile, keyFile string) {
	const cert, key = "api.tls_cert_file", "api.tls_key_file"
	text, ok := in.pem(cert, certFile, "CERTIFICATE", "a certificate")
	secret, alsoOK := in.pem(key, keyFile, "PRIVATE KEY", "a private key")
	if alsoOK {
		if text := exposed(keyFile); text != "" {
			in.warns(key, "%s: %s", key, text)
		}
	}
	if !ok || !alsoOK {
		return
	}
	pair, err := tls.X509KeyPair(text, secret)
	if err != nil {
		in.fails(key, "%s: %s is not the key of %s (%v); name the pair", key, keyFile, certFile, err)
		return
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return // it parsed already, as part of the pair
	}
	const again = "; renew it: it is read again by itself"
	switch left := time.Until(leaf.NotAfter); {
	case left <= 0:
		in.warns(cert, "%s: the certificate %s is over since %s%s", cert, certFile, leaf.NotAfter.Format(time.DateOnly), again)
	case left < expiresSoon:
		in.warns(cert, "%s: the certificate %s is over on %s%s", cert, certFile, leaf.NotAfter.Format(time.DateOnly), again)
	}
}

// expiresSoon is how long before its expiry a certificate is reported: an automatic renewal would have happened by then.
const expiresSoon = 7 * 24 * time.Hour

// pem reads a PEM file with a block of the given sort.
func (in *inspection) pem(key, file, sort, what string) (text []byte, ok bool) {
	if in.unreadable(key, file) {
		return nil, false
	}
	text, err := config.ReadFile(file, maxAgentFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		in.fails(key, "%s: %s does not exist; put %s there, in PEM, or name another file", key, file, what)
	case errors.Is(err, syscall.EISDIR):
		in.fails(key, "%s: %s is a folder; name the file in it", key, file)
	case err != nil:
		in.fails(key, "%s: %s cannot be read (%v); name another file", key, file, permissions.Cause(err))
	case !slices.ContainsFunc(pemSorts(text), func(b string) bool { return strings.HasSuffix(b, sort) }):
		in.fails(key, "%s: %s holds %s, and not %s in PEM; name the file that does", key, file, contents(text), what)
	default:
		return text, true
	}
	return nil, false
}

// pemSorts lists the block types in PEM text.
func pemSorts(text []byte) (all []string) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		all = append(all, block.Type)
	}
	return all
}

// contents describes a file's content in a few words, without revealing secrets.
func contents(text []byte) string {
	all := pemSorts(text)
	switch {
	case len(strings.TrimSpace(string(text))) == 0:
		return "nothing"
	case len(all) == 0:
		return "something else"
	}
	return strings.ToLower(strings.Join(slices.Compact(all), ", "))
}

// socket checks whether the daemon can create a socket, and whether the socket's group can reach it.
func (in *inspection) socket(key, path, groupKey, group string) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		in.fails(key, "%s: there is something else at %s, which is not a socket; take it away, or write another path", key, path)
		return
	} else if err == nil && in.running == nil && in.as.self() && answers(path) && !in.locked() {
		in.fails(key, "%s: another program answers at %s; end it, or write another path", key, path)
		return
	}
	folder := filepath.Dir(path)
	part := ""
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		part = in.as.cannotMake(folder)
	} else {
		part, _, _ = in.as.keptOut(folder, mayWrite|mayEnter)
	}
	if part != "" && in.running == nil {
		owner := ""
		if info, err := os.Stat(part); err == nil {
			owner = ", which belongs to " + accountName(ownerOf(info))
		}
		right := config.Default().Paths(in.as.uid, in.cli.Environ)
		in.fails(key, "%s: %s cannot make a socket at %s, since it may not write in %s%s; write a path that it may, as in %s", key, in.as, path,
			part, owner, filepath.Join(filepath.Dir(right.AgentSocket), filepath.Base(path)))
		return
	}
	if group != "" {
		in.group(groupKey, group, path)
	}
}

// answers reports whether a process listens at a socket. A process that is just being killed may still accept connections and
// then close them; in that case it tries again.
func answers(path string) bool {
	for range 5 {
		c, err := net.DialTimeout("unix", path, time.Second) //nolint:noctx // it is bounded
		if err != nil {
			return false
		}
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // a socket supports deadlines
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return true
		}
	}
	return true
}

// group checks whether the daemon can give a socket to a group, and whether the group's members can reach it.
func (in *inspection) group(key, group, path string) {
	gid, err := server.GroupID(group)
	if err != nil {
		return // an error of the configuration, reported there
	}
	if in.as.uid != 0 && !slices.Contains(in.as.gids, gid) {
		in.fails(key, "%s: %s is not in the group %s, so it cannot give the socket to it; as root, run: usermod -aG %s %s",
			key, in.as, group, group, loginOf(in.as.uid))
	}
	member := account{uid: nobodyUID, gids: []int{gid}}
	missing := ""
	for _, folder := range folders(path) {
		info, err := os.Stat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(path):
			missing = fmt.Sprintf("%s, which the daemon would make for itself alone", folder)
		case err == nil && !member.may(folder, info, mayEnter):
			missing = fmt.Sprintf("%s (%#o)", folder, info.Mode().Perm())
		}
		if missing != "" {
			in.fails(key, "%s: nobody of the group %s could come to %s, since others cannot enter %s; write a path that they can, as in %s", key,
				group, path, missing, filepath.Join(systemRun, filepath.Base(path)))
			return
		}
	}
}

// nobodyUID is the uid of an account that owns nothing.
const nobodyUID = -2

// loginOf is an account's name, or its number without one.
func loginOf(uid int) string {
	name := accountName(uid)
	if _, login, named := strings.Cut(name, "("); named {
		return strings.TrimSuffix(login, ")")
	}
	return strings.TrimPrefix(name, "uid ")
}

// findProgram finds a program in the same way as for agents.
func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		info, err := os.Stat(name)
		if err == nil && (info.IsDir() || info.Mode().Perm()&0o111 == 0) {
			err = unix.EACCES
		}
		return name, err
	}
	for _, folder := range filepath.SplitList(sandbox.Path) {
		if found, err := findProgram(filepath.Join(folder, name)); err == nil {
			return found, nil
		}
	}
	return "", fs.ErrNotExist
}
