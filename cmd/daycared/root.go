package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"github.com/daycared/daycared/client"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
)

// systemRun is the folder of a system service's sockets; tests replace it.
var systemRun = "/run/daycared"

func (c *CLI) root() *cobra.Command {
	root := &cobra.Command{
		Use:  "daycared",
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if told, _ := cmd.Flags().GetBool("version"); told {
				_, err := fmt.Fprintln(c.Out, versionLine())
				return err
			}
			return cmd.Help()
		},
		SilenceUsage:          true,
		SilenceErrors:         true,
		DisableFlagsInUseLine: true,
	}
	// No Version with a template: templates call methods by name, so the linker would keep them all.
	root.Flags().BoolP("version", "v", false, "version for daycared")
	root.SetHelpCommand(helpCommand())
	root.SetFlagErrorFunc(wrongFlag)
	root.AddGroup(
		&cobra.Group{ID: "agents", Title: "For agents and scripts:"},
		&cobra.Group{ID: "people", Title: "For people who answer:"},
		&cobra.Group{ID: "operator", Title: "For the operator:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add("agents", c.askCommand(), c.confirmCommand(), c.chooseCommand(), c.runCommand(), c.mcpCommand(), c.hookCommand(),
		c.tellCommand())
	add("people", c.inboxCommand(), c.pendingCommand(), c.showCommand(), c.approveCommand(), c.denyCommand(),
		c.answerCommand(), c.cancelCommand(), c.grantsCommand(), c.revokeCommand(), c.stopAllCommand(), c.resumeCommand(),
		c.agentsCommand(), c.eventsCommand(), c.lockCommand(), c.unlockCommand(),
		c.awayCommand(), c.stopAgentCommand(), c.trustCommand(), c.quietCommand())
	serve := newCommand("serve", nil, func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context()) })
	add("operator", serve, c.demoCommand(), c.setupCommand(), c.pairCommand(), c.unpairCommand(), c.linkCommand(),
		c.tokenCommand(), c.connectCommand(),
		c.statusCommand(), c.reportCommand(), c.stopCommand(), c.auditCommand(), c.backupCommand(), c.restoreCommand(), c.migrateCommand(),
		c.migrateStoreCommand(), c.suspendedCommand(),
		c.reinstateCommand(), c.configCommand(), c.policyCommand(), c.suggestCommand(), c.doctorCommand(), c.versionCommand(),
		c.completionCommand())
	root.AddCommand(c.referenceCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	for cmd := range commandsBelow(root) {
		if cmd.Args == nil {
			cmd.Args = arguments(cobra.NoArgs)
		}
		c.sharedFlags(cmd)
	}
	root.InitDefaultHelpCmd()
	setHelp(root)
	return root
}

// commandsBelow yields the commands of a tree, without cobra's own.
func commandsBelow(root *cobra.Command) iter.Seq[*cobra.Command] {
	return func(yield func(*cobra.Command) bool) {
		for _, cmd := range root.Commands() {
			if !yield(cmd) {
				return
			}
			for sub := range commandsBelow(cmd) {
				if !yield(sub) {
					return
				}
			}
		}
	}
}

// The commands that do not accept a shared flag, and the commands that accept one. A command rejects flags that it does not use.
var (
	withoutConfig = []string{"demo", "version", "completion", "reference"}
	withoutSocket = []string{
		"demo", "version", "completion", "reference", "serve", "setup", "link", "backup", "restore", "config check", "config show",
	}
	withToken = []string{"ask", "confirm", "choose", "run", "mcp", "hook", "tell", "cancel", "connect", "doctor"}
	withURL   = []string{"ask", "confirm", "choose", "mcp", "hook", "tell", "cancel", "connect", "doctor"}
)

// limitedBy are the commands with --since and --limit, by what the limit does.
var limitedBy = map[string]string{
	"pending": newestAlone, "grants": newestAlone, "agents": newestAlone, "suspended": newestAlone, "token list": newestAlone,
	"audit": newestAlone, "events": "end after so many (default: go on until Ctrl-C)",
}

const newestAlone = "list at most so many, the newest (default: all)"

// jsonOutputs are the commands with --json, by what they print.
var jsonOutputs = []struct {
	usage    string
	errors   bool // they print errors as JSON, too
	commands []string
}{
	{"print one JSON object", true, []string{
		"tell", "show", "approve", "deny", "answer", "cancel", "revoke", "stop-all", "stop-agent", "quiet", "trust", "resume",
		"lock", "unlock", "away", "unpair",
		"token create", "connect", "status", "report", "stop", "backup", "restore", "reinstate", "config show",
	}},
	{"print one JSON object instead of the sentence", true, []string{"ask", "confirm", "choose"}},
	{"print one JSON object", false, []string{"config check", "doctor", "version", "policy test", "suggest"}},
	{"print a JSON array", false, []string{
		"pending", "grants", "agents", "token list", "token revoke", "audit verify", "suspended",
	}},
	{"print one JSON object a line", false, []string{"audit", "events"}},
}

// pathOf is a command's path below the root, as in token create.
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

func (c *CLI) sharedFlags(cmd *cobra.Command) {
	path, f := pathOf(cmd), cmd.Flags()
	if !slices.Contains(withoutConfig, path) {
		f.StringVar(&c.configFlag, "config", "",
			"configuration file (default: DAYCARED_CONFIG, ~/.config/daycared/config.yaml, /etc/daycared/config.yaml)")
	}
	if !slices.Contains(withoutSocket, path) {
		f.StringVar(&c.socketFlag, "socket", "",
			"socket of the daemon (default: DAYCARED_SOCKET or DAYCARED_ADMIN_SOCKET, the configuration, the usual places)")
	}
	if slices.Contains(withToken, path) {
		f.StringVar(&c.tokenFlag, "token-file", "",
			"file with the token of the agent that asks (default: DAYCARED_TOKEN_FILE, else this account asks)")
	}
	if slices.Contains(withURL, path) {
		f.StringVar(&c.urlFlag, "url", "",
			"URL of a daemon on another machine, which only knows agents by their tokens (default: DAYCARED_URL, else the socket)")
		f.StringVar(&c.proxyFlag, "proxy", "", "URL of the proxy on the way to --url (default: HTTPS_PROXY)")
		f.StringVar(&c.caFlag, "ca-file", "",
			"certificates that are trusted for --url instead of the machine's (default: SSL_CERT_FILE)")
	}
	for _, output := range jsonOutputs {
		if slices.Contains(output.commands, path) {
			f.BoolVar(&c.asJSON, "json", false, output.usage)
		}
	}
	if limit := limitedBy[path]; limit != "" {
		f.IntVar(&c.listing.limit, "limit", unlimited, limit)
		f.StringVar(&c.listing.since, "since", "", "list what is not older: 2h, 7d, 14:00, 2026-11-20 or 2026-11-20T14:00")
		f.Lookup("limit").DefValue = "0" // hides the default in the help
	}
	c.completeArguments(cmd, path)
}

// unused explains why a command does not accept a shared flag; empty for any other flag.
func unused(flag string) string {
	switch flag {
	case "config":
		return "it reads no configuration"
	case "socket":
		return "its sockets are those of the configuration: api.agent_socket and api.admin_socket"
	case "token-file":
		return "a token says who asks, and this is for people and the operator, whom their account proves"
	}
	return ""
}

// load reads the configuration given by the command line and environment, or returns the defaults if there is none.
func (c *CLI) load() (*config.Config, config.Paths, error) {
	path, _ := config.Find(c.configFlag, c.Environ, exists)
	cfg, err := config.Load(path, c.Environ)
	if err != nil {
		return nil, config.Paths{}, c.misnamed(err)
	}
	return cfg, cfg.Paths(c.UID, c.Environ), nil
}

// misnamed turns an error of reading the configuration into a usage error if the command line names the file.
func (c *CLI) misnamed(err error) error {
	var problems config.Problems
	if err == nil || c.configFlag == "" || errors.As(err, &problems) {
		return err
	}
	return usage("%s", err)
}

// places finds the daemon for a client; variable is the environment variable for its socket. A service configuration that this
// account may not read is ignored. From an invalid configuration only the paths are used, since the daemon may still run with an
// earlier version.
func (c *CLI) places(variable string) (config.Paths, error) {
	cfg, paths, err := c.load()
	var refused config.Problems
	if errors.As(err, &refused) {
		path, _ := config.Find(c.configFlag, c.Environ, exists)
		known, ok := config.Places(path, c.Environ)
		named := c.socketFlag != "" || c.env(variable) != ""
		switch {
		case ok || named && known != nil:
			cfg, paths, err = known, known.Paths(c.UID, c.Environ), nil
		case !named:
			return paths, fmt.Errorf("%w\na daemon that runs with what was there before is found at its socket: --socket PATH%s", err, lost)
		}
		if !c.warned {
			c.warned = true
			c.say("the configuration is refused, and the daemon is looked for all the same: %s", refused[0])
		}
	}
	if c.hidden(err) || refused != nil && err != nil {
		if cfg, err = config.Load("", c.Environ); err == nil {
			paths = cfg.Paths(c.UID, c.Environ)
		}
	}
	if err != nil {
		return paths, err
	}
	paths.AgentSocket = c.socket("DAYCARED_SOCKET", paths.AgentSocket, "api.agent_socket", cfg.API.AgentSocket, cfg)
	paths.AdminSocket = c.socket("DAYCARED_ADMIN_SOCKET", paths.AdminSocket, "api.admin_socket", cfg.API.AdminSocket, cfg)
	return paths, nil
}

// hidden reports whether err means that this account may not read the service's configuration, which was found by default.
func (c *CLI) hidden(err error) bool {
	path, _ := config.Find(c.configFlag, c.Environ, exists)
	return errors.Is(err, fs.ErrPermission) && path == config.SystemFile && c.configFlag == "" && c.env("DAYCARED_CONFIG") == ""
}

// emptied explains an empty configuration file.
const emptied = " says nothing; a daemon that runs with what it said before is found at its socket: --socket PATH" + lost

// lost says how the key of a daemon is found whose folder is not known.
const lost = ", and --config with a file that has its data_dir, if that was not the default and is lost"

// socket returns the path of one of the two sockets, and records for errors what determined it. The service's socket replaces
// only the built-in default: an explicitly named daemon is used whether it runs or not.
func (c *CLI) socket(variable, path, key, value string, cfg *config.Config) string {
	if c.socketOrigins == nil {
		c.socketOrigins = map[string]string{}
	}
	system := filepath.Join(systemRun, filepath.Base(path))
	why := ""
	switch named := c.env(variable); {
	case c.socketFlag != "":
		path, why = c.socketFlag, "--socket names it"
	case named != "":
		path, why = named, variable+" names it"
	case value != "" && cfg.File != "":
		why = key + " of " + cfg.File + " names it"
	case value != "":
		why = key + " names it"
	case cfg.IsEmpty():
		why = cfg.File + emptied
	case cfg.File != "" && cfg.File != config.SystemFile:
		why = "it is the socket of the configuration " + cfg.File
	case cfg.DataDir != "" && filepath.Dir(path) == filepath.Clean(cfg.DataDir):
		why = "data_dir names its folder"
	case !exists(path) && exists(system):
		path, why = system, "it is the socket of this machine's service, and "+path+" does not exist"
	default:
		why = "it is the default, as no configuration names another"
	}
	c.socketOrigins[path] = why
	return path
}

// pin makes a command that names the daemon ignore the environment's connection settings, which may be from a project's files.
func (c *CLI) pin() {
	if c.socketFlag == "" && c.urlFlag == "" {
		return
	}
	c.Environ = slices.DeleteFunc(slices.Clone(c.Environ), func(pair string) bool { return strings.HasPrefix(pair, "DAYCARED_") })
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG"} {
		_ = os.Unsetenv(name) // libraries read the process's environment
		_ = os.Unsetenv(strings.ToLower(name))
	}
}

// environmentProxy is the proxy of the current environment. [http.ProxyFromEnvironment] caches the environment of its first
// call, which a library makes before main: a pinned command would still use that proxy.
func environmentProxy(r *http.Request) (*url.URL, error) {
	return httpproxy.FromEnvironment().ProxyFunc()(r.URL)
}

// asksAt returns the daemon to ask and the credentials: at the URL, if one is given, otherwise at the socket.
func (c *CLI) asksAt() (client.Options, error) {
	o := client.Options{
		URL: c.urlFlag, TokenFile: cmp.Or(c.tokenFlag, c.env("DAYCARED_TOKEN_FILE")), Proxy: c.proxyFlag, CAFile: c.caFlag,
		EnvironmentProxy: environmentProxy,
	}
	if o.URL == "" && c.socketFlag == "" && c.env("DAYCARED_SOCKET") == "" {
		o.URL = c.env("DAYCARED_URL")
	}
	switch {
	case o.URL != "" && c.socketFlag != "":
		return o, usage("--url and --socket name two places to ask at; give one")
	case o.URL != "":
	case c.socketFlag != "": // takes precedence over the configuration
		o.Socket = c.socketFlag
		c.socketOrigins = map[string]string{o.Socket: "--socket names it"}
	default:
		paths, err := c.places("DAYCARED_SOCKET")
		if err != nil {
			return o, err
		}
		o.Socket = paths.AgentSocket
	}
	return o, nil
}

// agentClient returns a client of that daemon.
func (c *CLI) agentClient() (*client.Client, error) {
	o, err := c.asksAt()
	if err != nil {
		return nil, err
	}
	asks, err := client.New(o)
	if err != nil {
		return nil, usage("%s", err)
	}
	if o.TokenFile == "" {
		return asks, nil
	}
	if text := exposed(o.TokenFile); text != "" {
		c.say("%s", text)
	}
	file, err := openFile(o.TokenFile) // once now, so that errors are reported before anything is asked
	if err != nil {
		return nil, usage("read the token file %s: %s", o.TokenFile, err)
	}
	return asks, file.Close()
}

func (c *CLI) adminClient() (*admin.Client, error) {
	paths, err := c.places("DAYCARED_ADMIN_SOCKET")
	if err != nil {
		return nil, err
	}
	return admin.NewClient(paths.AdminSocket, paths.AdminKey), nil
}

// newCommand returns a command. Without args it takes no arguments.
func newCommand(use string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: args, RunE: run}
}

// adminCommand returns a command that needs a client of the admin socket, which is closed when the command ends.
func (c *CLI) adminCommand(
	use string, args cobra.PositionalArgs, run func(*cobra.Command, []string, *admin.Client) error,
) *cobra.Command {
	return newCommand(use, args, func(cmd *cobra.Command, args []string) error { return c.withAdmin(cmd, args, run) })
}

func (c *CLI) withAdmin(cmd *cobra.Command, args []string, run func(*cobra.Command, []string, *admin.Client) error) error {
	client, err := c.adminClient()
	if err != nil {
		return err
	}
	defer client.Close()
	return run(cmd, args, client)
}

func (c *CLI) env(name string) string {
	for _, pair := range c.Environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
