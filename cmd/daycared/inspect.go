package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/permissions"
)

// observation is something on the machine that is not as the configuration needs it.
type observation struct {
	config.Problem
	fatal bool // the daemon would not start with it
}

// inspection looks at what a configuration names on this machine, for the account that will serve: files, folders, ports
// and programs. It changes nothing and calls nobody.
type inspection struct {
	cli     *CLI
	cfg     *config.Config
	paths   config.Paths
	as      account
	running *admin.Status // the daemon of this configuration, where it runs and says how it stands
	owner   func(fs.FileInfo) int
	found   []observation
	blind   []string // what only the unit of a service gives, and was not looked at
}

// inspection is one that has looked at nothing yet.
func (c *CLI) inspection(cfg *config.Config, paths config.Paths, as account) *inspection {
	return &inspection{cli: c, cfg: cfg, paths: paths, as: as, owner: ownerOf}
}

// inspect looks at everything that a daemon of this configuration needs before it starts.
func (c *CLI) inspect(cfg *config.Config, paths config.Paths, as account, running *admin.Status) *inspection {
	in := c.inspection(cfg, paths, as)
	in.running = running
	in.data()
	in.guarded()
	in.telegram()
	in.whatsapp()
	in.listener()
	in.socket("api.agent_socket", paths.AgentSocket, "api.agent_group", cfg.API.AgentGroup)
	in.socket("api.admin_socket", paths.AdminSocket, "api.admin_group", cfg.API.AdminGroup)
	for i, a := range cfg.Agents {
		in.agent(a, "agents."+strconv.Itoa(i))
	}
	return in
}

// refusal is all that keeps the daemon from starting, nil where nothing does.
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

// verdict is [inspection.refusal] where this account will serve. What is found for another one is in doubt: modes do not
// tell all that an account may.
func (in *inspection) verdict() error {
	if in.as.self() {
		return in.refusal()
	}
	return nil
}

// doubts are what does not keep this account from serving.
func (in *inspection) doubts() (all config.Problems) {
	for _, o := range in.found {
		if !o.fatal || !in.as.self() {
			all = append(all, o.Problem)
		}
	}
	return all
}

// scope says for whom it was looked, and at what it was not.
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

// fails notes what the daemon would not start with.
func (in *inspection) fails(key, format string, args ...any) {
	in.found = append(in.found, observation{in.cfg.Problem(key, format, args...), true})
}

// warns notes what the daemon would start with, all the same.
func (in *inspection) warns(key, format string, args ...any) {
	in.found = append(in.found, observation{in.cfg.Problem(key, format, args...), false})
}

// data looks at the data directory.
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
	case err != nil: // this account cannot look
	case owns(dir, in.as.uid) != nil:
		in.fails(key, "%s: %s is of another account, %s; run this as that account, or set another data_dir", key, dir, accountName(ownerOf(info)))
	case info.Mode().Perm()&0o077 != 0:
		in.fails(key, "%s: the data directory %s is open to other accounts (%#o); run: chmod 700 %s", key, dir, info.Mode().Perm(), dir)
	}
}

// telegram looks at the bot's token.
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

// secret looks at a file that holds one, which read reads as the daemon does.
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

// unreadable notes that the daemon's account cannot read a file, or that this one cannot look for it.
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

// whatsapp looks whether an account is linked.
func (in *inspection) whatsapp() {
	if _, err := os.Stat(filepath.Join(in.paths.DataDir, whatsappName)); in.cfg.Connectors.WhatsApp.Enabled && errors.Is(err, fs.ErrNotExist) {
		in.warns("connectors.whatsapp.enabled", "no WhatsApp account is linked, so nobody is asked there; run: daycared link whatsapp")
	}
}

// agent looks at the files, folders and programs of an agent of ours.
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
	case m.Credential != "agent."+a.Name+".key": // its parent's, which is looked at there
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

// workspace looks at the folder that an agent works in.
func (in *inspection) workspace(a config.Agent, key string) {
	info, err := os.Stat(a.Workspace)
	switch {
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

// program looks for what is to be started.
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

// account is who will serve.
type account struct {
	uid  int
	gids []int
}

// accountOf is an account of this machine, with its groups.
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

// String is the account for people.
func (a account) String() string { return accountName(a.uid) }

// self reports whether this process is of the account.
func (a account) self() bool { return a.uid == os.Geteuid() }

// What an account may do with a file or a folder, as in the last digit of a mode.
const (
	mayEnter fs.FileMode = 1 << iota
	mayWrite
	mayRead
)

// may reports whether the account may do something with what lies at a path, by its mode, or as the kernel says it of this
// account itself.
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

// keptOut is the first part of a path that keeps the account from doing something with what lies there; empty where
// nothing does. The error is that of looking.
func (a account) keptOut(path string, what fs.FileMode) (part string, info fs.FileInfo, err error) {
	switch whole, err := filepath.EvalSymlinks(path); {
	case err == nil:
		path = whole
	case !errors.Is(err, fs.ErrPermission): // else a folder on the way keeps this account out
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

// cannotMake is the folder in which the account cannot make what is missing of a path; empty where it can, or where this
// account cannot look.
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

// folders are those that a path leads through, from the root.
func folders(path string) (all []string) {
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		all = append(all, path)
	}
	slices.Reverse(all)
	return all
}

// serves is the account that will serve, as far as it can be known: the one whose the data directory is, else this one.
func (c *CLI) serves(paths config.Paths, running *admin.Status) account {
	if running != nil {
		return accountOf(running.UID)
	}
	if info, err := os.Stat(paths.DataDir); err == nil && info.IsDir() {
		return accountOf(ownerOf(info))
	}
	return accountOf(c.UID)
}

// daemonOf asks the daemon of a configuration how it stands; nil where none answers, only that of another one, or one that
// this account is nobody to: then its sockets and its port are left out of what is looked at.
func (c *CLI) daemonOf(ctx context.Context, paths config.Paths) *admin.Status {
	s, err := c.status(ctx)
	c.stranger = errors.Is(err, fs.ErrPermission) || permissions.CodeOf(err) == permissions.CodeNotYours
	if err != nil || s.DataDir != paths.DataDir && s.AdminSocket != paths.AdminSocket {
		return nil
	}
	return &s
}

// guarded looks whether anybody but root and the daemon's account can change what the daemon believes: its configuration,
// its data, secrets, certificates and instructions, and the folders of its sockets.
func (in *inspection) guarded() {
	in.keeps("", in.cfg.File)
	in.keepsFolder("data_dir", filepath.Dir(in.paths.DataDir)) // of what is in it, see [inspection.data]
	if info, err := os.Stat(in.paths.AdminKey); err == nil && in.keepsOne("data_dir", in.paths.AdminKey, info, false) &&
		info.Mode().Perm()&0o077 != 0 {
		in.fails("data_dir", "data_dir: others may read %s (%#o); run: chmod 600 %[1]s", in.paths.AdminKey, info.Mode().Perm())
	}
	if in.cfg.Connectors.Telegram.Enabled {
		in.keeps("connectors.telegram.token_file", in.cfg.Connectors.Telegram.TokenFile)
	}
	in.keeps("api.tls_cert_file", in.cfg.API.TLSCertFile)
	in.keeps("api.tls_key_file", in.cfg.API.TLSKeyFile)
	in.keepsFolder("api.agent_socket", filepath.Dir(in.paths.AgentSocket))
	if filepath.Dir(in.paths.AdminSocket) != filepath.Dir(in.paths.AgentSocket) {
		in.keepsFolder("api.admin_socket", filepath.Dir(in.paths.AdminSocket))
	}
	for i, a := range in.cfg.Agents {
		path := "agents." + strconv.Itoa(i)
		in.keeps(path+".instructions_file", a.InstructionsFile)
		if a.Model.Credential == "agent."+a.Name+".key" { // else its parent's
			in.keeps(path+".model.api_key_file", a.Model.APIKeyFile)
			in.keeps(path+".model.file", a.Model.File)
		}
	}
}

// keeps looks at a file and at its folder, also at that of the file that a link leads to.
func (in *inspection) keeps(key, file string) {
	if file == "" {
		return
	}
	resolved, err := filepath.EvalSymlinks(file)
	if err != nil { // it is missing, or kept from this account; that is said elsewhere
		return
	}
	above, folder := filepath.Dir(file), filepath.Dir(resolved)
	found := in.keepsFolder(key, above) && (folder == above || in.keepsFolder(key, folder))
	if info, err := os.Stat(resolved); found && err == nil {
		in.keepsOne(key, resolved, info, info.Mode().Perm()&0o022 != 0)
	}
}

// keepsFolder looks at a folder. In one with the sticky bit, as /tmp has, others do not touch what is not theirs.
func (in *inspection) keepsFolder(key, folder string) bool {
	info, err := os.Stat(folder)
	return err != nil || in.keepsOne(key, folder, info, info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0)
}

// keepsOne says what is wrong with one file or folder, and reports whether nothing is.
func (in *inspection) keepsOne(key, path string, info os.FileInfo, open bool) bool {
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

// unguarded is what of the configuration somebody else may have written, for a daemon that runs.
func (in *inspection) unguarded() (all config.Problems) {
	in.guarded()
	for _, o := range in.found {
		all = append(all, o.Problem)
	}
	return all
}
