package main

import (
	"context"
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
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/rules"
)

// observation is a property of the machine that does not fit the configuration.
type observation struct {
	config.Problem
	fatal bool // it prevents the daemon from starting
}

// inspection checks the files, folders, ports and programs that a configuration names, for the account that runs the daemon. It
// changes nothing and makes no network calls.
type inspection struct {
	cli     *CLI
	cfg     *config.Config
	paths   config.Paths
	as      account
	running *admin.Status // the status of the running daemon of this configuration, if it reports one
	owner   func(fs.FileInfo) int
	found   []observation
	blind   []string // what only a service's unit provides, so that it was not checked
}

// inspection returns an inspection that has checked nothing yet.
func (c *CLI) inspection(cfg *config.Config, paths config.Paths, as account) *inspection {
	return &inspection{cli: c, cfg: cfg, paths: paths, as: as, owner: ownerOf}
}

// inspect checks everything that a daemon of this configuration needs at its start.
func (c *CLI) inspect(cfg *config.Config, paths config.Paths, as account, running *admin.Status) *inspection {
	in := c.inspection(cfg, paths, as)
	in.running = running
	in.data()
	in.checkTrusted()
	in.telegram()
	in.whatsapp()
	in.listener()
	in.socket("api.agent_socket", paths.AgentSocket, "api.agent_group", cfg.API.AgentGroup)
	in.socket("api.admin_socket", paths.AdminSocket, "api.admin_group", cfg.API.AdminGroup)
	for i, a := range cfg.Agents {
		in.agent(a, "agents."+strconv.Itoa(i))
	}
	in.ruleLinks()
	return in
}

// refusal returns all problems that prevent the daemon from starting, nil if there are none.
func (in *inspection) refusal() error {
	var all config.Problems
	for _, o := range in.found {
		if o.fatal {
			all = append(all, o.Problem)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// doubts are the problems that do not prevent this account from serving.
func (in *inspection) doubts() (all config.Problems) {
	for _, o := range in.found {
		if !o.fatal || !in.as.self() {
			all = append(all, o.Problem)
		}
	}
	return all
}

// scope says for which account the checks were made, and what was not checked.
func (in *inspection) scope() string {
	text := "looked at for " + in.as.String()
	if !in.as.self() {
		text += ", and this account is " + accountName(os.Geteuid())
	}
	if len(in.blind) > 0 {
		text += "; not looked at: " + strings.Join(in.blind, ", ")
	}
	return text
}

// fails adds a problem that prevents the daemon from starting.
func (in *inspection) fails(key, format string, args ...any) {
	in.found = append(in.found, observation{in.cfg.Problem(key, format, args...), true})
}

// warns adds a problem with which the daemon still starts.
func (in *inspection) warns(key, format string, args ...any) {
	in.found = append(in.found, observation{in.cfg.Problem(key, format, args...), false})
}

func (in *inspection) data() {
	const key = "data_dir"
	dir := in.paths.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if part := in.as.cannotMake(dir); part != "" {
			in.fails(key, "%s: %s cannot be made by %s, which may not write in %s; name another folder, or make it as root and give it to "+
				"that account", key, dir, in.as, part)
		}
	case errors.Is(err, unix.ENOTDIR) || err == nil && !info.IsDir():
		in.fails(key, "%s: %s is a file, or lies in one; name a folder", key, dir)
	case err != nil: // this account may not check it
	case owns(dir, in.as.uid) != nil:
		in.fails(key, "%s: %s is of another account, %s; run this as that account, or set another data_dir", key, dir, accountName(ownerOf(info)))
	case info.Mode().Perm()&0o077 != 0:
		in.fails(key, "%s: the data directory %s is open to other accounts (%#o); run: chmod 700 %s", key, dir, info.Mode().Perm(), dir)
	}
}

func (in *inspection) telegram() {
	const key = "connectors.telegram.token_file"
	on := in.cfg.Connectors.Telegram
	switch {
	case !on.Enabled:
	case on.TokenFile == "" && in.cli.env("CREDENTIALS_DIRECTORY") == "" && (in.running != nil || !in.as.self()):
		in.blind = append(in.blind, "the credential telegram.token")
	default:
		in.secret(key, on.TokenFile, func() error { _, err := in.cli.telegramToken(on.TokenFile); return err })
	}
}

// secret checks a file that holds a secret; read reads it as the daemon would.
func (in *inspection) secret(key, file string, read func() error) {
	if file != "" && in.unreadable(key, file) {
		return
	}
	if err := read(); err != nil {
		in.fails(key, "%v", err)
		return
	}
	if text := exposed(file); text != "" {
		in.warns(key, "%s: %s", config.KeyName(key), text)
	}
}

// unreadable adds a problem if the daemon's account cannot read a file, or if this account cannot check that.
func (in *inspection) unreadable(key, file string) bool {
	part, info, err := in.as.keptOut(file, mayRead)
	switch {
	case part != "":
		in.fails(key, "%s: %s cannot be read by %s: %s belongs to %s (%#o); give it to that account, or name another file",
			config.KeyName(key), file, in.as, part, accountName(ownerOf(info)), info.Mode().Perm())
	case errors.Is(err, fs.ErrPermission):
		in.blind = append(in.blind, file)
	default:
		return false
	}
	return true
}

const notLinkedYet = "no WhatsApp account is linked, so nobody is asked there"

func (in *inspection) whatsapp() {
	if in.paths.Database == "" && in.wantsAccount() {
		in.warns("connectors.whatsapp.enabled", notLinkedYet+"; run: daycared link whatsapp")
	}
}

// wantsAccount reports whether WhatsApp is switched on, and no file has an account.
func (in *inspection) wantsAccount() bool {
	_, err := os.Stat(filepath.Join(in.paths.DataDir, whatsappName))
	return in.cfg.Connectors.WhatsApp.Enabled && errors.Is(err, fs.ErrNotExist)
}

// ruleLinks warns of rules about folders that lead elsewhere.
func (in *inspection) ruleLinks() {
	set, _ := rules.Compile(in.cfg.PermissionRules()) // Load has refused it otherwise
	answered := func(name string) string {
		leads, err := own.LookUp(name, func() (string, error) { return own.Resolve(name), nil })
		if err != nil {
			return name
		}
		return leads
	}
	for _, p := range set.CheckLinks(answered) {
		at := fmt.Sprintf("rules.%d.%s", p.Rule, p.Key)
		if p.Item >= 0 {
			at += "." + strconv.Itoa(p.Item)
		}
		in.warns(at, "rules.%s: %s", p.Key, p.Text)
	}
}

func (in *inspection) agent(a config.Agent, path string) {
	if a.Workspace != "" && a.Parent == "" {
		in.workspace(a, path+".workspace")
	}
	if len(a.ACP) > 0 {
		in.program(path+".acp", a.ACP[0])
		return
	}
	for i, s := range a.MCP {
		in.program(fmt.Sprintf("%s.mcp.%d.command", path, i), s.Command[0])
	}
	key := path + ".model.api_key_file"
	switch m := a.Model; {
	case m.Credential != "agent."+a.Name+".key": // its parent's, which is checked there
	case m.Provider == config.Script:
		if !in.unreadable(path+".model.file", m.File) {
			if _, err := in.cli.model(a, nil); err != nil {
				in.fails(path+".model.file", "agents.model.file: %v; name a file of turns", err)
			}
		}
	case m.APIKeyFile == "" && m.BaseURL == "" && in.cli.env("CREDENTIALS_DIRECTORY") == "" && (in.running != nil || !in.as.self()):
		in.blind = append(in.blind, "the credential "+m.Credential)
	default:
		in.secret(key, m.APIKeyFile, func() error { _, err := in.cli.agentKey(a); return err })
	}
	if file := a.InstructionsFile; file != "" && !in.unreadable(path+".instructions_file", file) {
		if _, err := agentInstructions(a); err != nil {
			in.fails(path+".instructions_file", "agents.instructions_file: %v; name a file of text", err)
		}
	}
}

func (in *inspection) workspace(a config.Agent, key string) {
	info, err := statOf(a.Workspace)
	switch {
	case errors.Is(err, own.ErrSilent):
		in.warns(key, "agents.workspace: the file system of %s does not answer, so %s cannot work; restart daycared when it does",
			a.Workspace, a.Name)
	case errors.Is(err, fs.ErrNotExist):
		in.warns(key, "agents.workspace: %s does not exist, so %s cannot work; make it, or name another folder", a.Workspace, a.Name)
	case errors.Is(err, unix.ENOTDIR), err == nil && !info.IsDir():
		in.warns(key, "agents.workspace: %s is a file, so %s cannot work in it; name a folder", a.Workspace, a.Name)
	case err == nil:
		if part, _, _ := in.as.keptOut(a.Workspace, mayWrite|mayEnter); part != "" {
			in.warns(key, "agents.workspace: %s cannot write in %s, for %s keeps it out; give that folder to the account, or name another one",
				in.as, a.Workspace, part)
		}
	}
}

func (in *inspection) program(key, name string) {
	found, err := findProgram(name)
	part := ""
	if err == nil {
		part, _, _ = in.as.keptOut(found, mayRead|mayEnter)
	}
	if err != nil || part != "" {
		in.warns(key, "%s: the program %s is not there, or %s may not start it; write its whole path, or install it",
			config.KeyName(key), strconv.Quote(name), in.as)
	}
}

// account is an account that may run the daemon.
type account struct {
	uid  int
	gids []int
}

// accountOf returns an account of this machine with its groups.
func accountOf(uid int) account {
	a := account{uid: uid}
	if uid == os.Geteuid() {
		a.gids, _ = os.Getgroups()
		a.gids = append(a.gids, os.Getegid())
		return a
	}
	if known, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		ids, _ := known.GroupIds()
		for _, id := range ids {
			if gid, err := strconv.Atoi(id); err == nil {
				a.gids = append(a.gids, gid)
			}
		}
	}
	return a
}

// String formats the account for people.
func (a account) String() string { return accountName(a.uid) }

// self reports whether this process runs as the account.
func (a account) self() bool { return a.uid == os.Geteuid() }

// Permissions on a file or folder, as in the last digit of a mode.
const (
	mayEnter fs.FileMode = 1 << iota
	mayWrite
	mayRead
)

// may reports whether the account has a permission on a path, by its mode; for this account itself, by the kernel.
func (a account) may(path string, info fs.FileInfo, what fs.FileMode) bool {
	if a.self() {
		return unix.Access(path, uint32(what)) == nil
	}
	mode := info.Mode().Perm()
	switch {
	case a.uid == 0:
		return info.IsDir() || what&mayEnter == 0 || mode&0o111 != 0
	case ownerOf(info) == a.uid:
		mode >>= 6
	case slices.Contains(a.gids, groupOf(info)):
		mode >>= 3
	}
	return mode&what == what
}

// statOf is [os.Stat] of a path that may not answer.
func statOf(path string) (fs.FileInfo, error) {
	return own.LookUp(path, func() (fs.FileInfo, error) { return os.Stat(path) })
}

// keptOut returns the first part of a path that denies the account a permission on it; empty: none. The error is that of checking.
func (a account) keptOut(path string, what fs.FileMode) (part string, info fs.FileInfo, err error) {
	type kept struct {
		part string
		info fs.FileInfo
	}
	k, err := own.LookUp(path, func() (kept, error) {
		part, info, err := a.keptFrom(path, what)
		return kept{part, info}, err
	})
	return k.part, k.info, err
}

func (a account) keptFrom(path string, what fs.FileMode) (part string, info fs.FileInfo, err error) {
	switch whole, err := filepath.EvalSymlinks(path); {
	case err == nil:
		path = whole
	case !errors.Is(err, fs.ErrPermission): // otherwise a folder on the way denies access to this account
		return "", nil, err
	}
	for _, folder := range folders(path) {
		if info, err = os.Stat(folder); err != nil {
			return "", nil, err
		}
		if !a.may(folder, info, mayEnter) {
			return folder, info, nil
		}
	}
	if info, err = os.Stat(path); err == nil && !a.may(path, info, what) {
		return path, info, nil
	}
	return "", info, err
}

// cannotMake returns the folder in which the account cannot create the missing part of a path; empty if it can, or if that is unknown.
func (a account) cannotMake(path string) string {
	above := filepath.Dir(path)
	for _, err := os.Stat(above); errors.Is(err, fs.ErrNotExist) && above != "/"; _, err = os.Stat(above) {
		above = filepath.Dir(above)
	}
	if part, _, _ := a.keptOut(above, mayWrite|mayEnter); part != "" {
		return part
	}
	if info, err := os.Stat(above); err == nil && !info.IsDir() {
		return above
	}
	return ""
}

// folders returns the folders on the way to a path, from the root.
func folders(path string) (all []string) {
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		all = append(all, path)
	}
	slices.Reverse(all)
	return all
}

// serves returns the account that runs the daemon, as far as that is known: the data directory's owner, otherwise this account.
func (c *CLI) serves(paths config.Paths, running *admin.Status) account {
	if running != nil {
		return accountOf(running.UID)
	}
	if info, err := os.Stat(paths.DataDir); err == nil && info.IsDir() {
		return accountOf(ownerOf(info))
	}
	return accountOf(c.UID)
}

// daemonOf returns the status of this configuration's daemon; nil if none answers, if the one that does has another
// configuration, or if it refuses this account. In the last case its sockets and port are not checked.
func (c *CLI) daemonOf(ctx context.Context, paths config.Paths) *admin.Status {
	s, err := c.status(ctx)
	c.statusRefused = errors.Is(err, fs.ErrPermission) || permissions.CodeOf(err) == permissions.CodeNotYours
	if err != nil || s.DataDir != paths.DataDir && s.AdminSocket != paths.AdminSocket {
		return nil
	}
	return &s
}

// checkTrusted checks whether accounts other than root and the daemon's can change what the daemon trusts: its configuration, data,
// secrets, certificates and instructions, and the folders of its sockets.
func (in *inspection) checkTrusted() {
	in.checkFile("", in.cfg.File)
	in.checkFolder("data_dir", filepath.Dir(in.paths.DataDir)) // for its content, see [inspection.data]
	if info, err := os.Stat(in.paths.AdminKey); err == nil && in.checkOne("data_dir", in.paths.AdminKey, info, false) &&
		info.Mode().Perm()&0o077 != 0 {
		in.fails("data_dir", "data_dir: others may read %s (%#o); run: chmod 600 %[1]s", in.paths.AdminKey, info.Mode().Perm())
	}
	if on := in.cfg.Connectors.Telegram; on.Enabled {
		in.checkFile("connectors.telegram.token_file", on.TokenFile)
	}
	in.checkFile("api.tls_cert_file", in.cfg.API.TLSCertFile)
	in.checkFile("api.tls_key_file", in.cfg.API.TLSKeyFile)
	in.checkFolder("api.agent_socket", filepath.Dir(in.paths.AgentSocket))
	if filepath.Dir(in.paths.AdminSocket) != filepath.Dir(in.paths.AgentSocket) {
		in.checkFolder("api.admin_socket", filepath.Dir(in.paths.AdminSocket))
	}
	for i, a := range in.cfg.Agents {
		path := "agents." + strconv.Itoa(i)
		in.checkFile(path+".instructions_file", a.InstructionsFile)
		if a.Model.Credential == "agent."+a.Name+".key" { // otherwise its parent's
			in.checkFile(path+".model.api_key_file", a.Model.APIKeyFile)
			in.checkFile(path+".model.file", a.Model.File)
		}
	}
}

// checkFile checks a file and its folder, and the folders of the links by which it is reached.
func (in *inspection) checkFile(key, file string) {
	if file == "" {
		return
	}
	if _, err := statOf(file); err != nil { // missing or unreadable, which is reported elsewhere
		return
	}
	for {
		if !in.checkFolder(key, filepath.Dir(file)) {
			return
		}
		to, err := os.Readlink(file)
		if err != nil {
			break
		}
		if folder, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil && !filepath.IsAbs(to) {
			to = filepath.Join(folder, to)
		}
		file = to
	}
	if info, err := os.Stat(file); err == nil {
		in.checkOne(key, file, info, info.Mode().Perm()&0o022 != 0)
	}
}

// checkFolder checks a folder. A sticky bit, as on /tmp, protects files from other accounts.
func (in *inspection) checkFolder(key, folder string) bool {
	info, err := os.Stat(folder)
	return err != nil || in.checkOne(key, folder, info, info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0)
}

// checkOne adds a problem with one file or folder, and reports whether there is none.
func (in *inspection) checkOne(key, path string, info os.FileInfo, open bool) bool {
	owner := in.owner(info)
	if !open && (owner <= 0 || owner == in.as.uid) || errors.Is(unix.Access(path, unix.W_OK), unix.EROFS) { // as in a container
		return true
	}
	name := "this configuration"
	if key != "" {
		name = config.KeyName(key)
	}
	if open {
		in.fails(key, "%s: other accounts may change %s (%#o), and with it what the daemon allows; run: chmod go-w %s",
			name, path, info.Mode().Perm(), path)
		return false
	}
	in.fails(key, "%s: %s belongs to %s, which may change it, and with it what the daemon allows; run: chown %d %s",
		name, path, accountName(owner), in.as.uid, path)
	return false
}

// writableByOthers returns the configuration's files that other accounts may have written, for a running daemon.
func (in *inspection) writableByOthers() config.Problems {
	in.checkTrusted()
	return wire.Map(in.found, func(o observation) config.Problem { return o.Problem })
}

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

// locked reports whether a daemon runs without reporting its status: it holds this data directory, or refuses this account.
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

func addresses() (all []string) {
	found, _ := net.InterfaceAddrs()
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			all = append(all, n.IP.String())
		}
	}
	return all
}

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
		info, err := statOf(name)
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
