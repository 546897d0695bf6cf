package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine"
)

// TestAgentsAreNotGivenOurFiles tries every key that names a folder with the daemon's own folders, folders in and around them,
// and links to them.
func TestAgentsAreNotGivenOurFiles(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data, link := filepath.Join(folder, "data"), filepath.Join(folder, "link")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	paths := config.Paths{
		DataDir: data, AgentSocket: "/run/d/agent.sock", AdminSocket: "/run/d/admin.sock", AdminKey: data + "/admin.key",
		Credentials: "/run/credentials/daycared",
	}
	file := filepath.Join(folder, "c.yaml")
	load := func(keys string) error {
		t.Helper()
		text := "api: {listen: '127.0.0.1:7801', tls_cert_file: /etc/tls/cert, tls_key_file: /etc/tls/key}\n" +
			"connectors: {telegram: {token_file: /etc/bot/token}}\nagents:\n- name: helper\n  model: {provider: anthropic, name: m, " +
			"api_key_file: /etc/model/key}\n  " + keys + "\n- {name: other, parent: helper, instructions_file: /etc/other/who.md, " +
			"model: {provider: script, file: /etc/script/turns.yaml}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = settings(cfg, paths, os.Getuid())
		return err
	}
	for _, bad := range []string{
		data, data + "/below", folder, "/", link, link + "/admin.key", file, "/run/d", "/run/d/admin.sock",
		"/run/credentials/daycared/x", "/etc/bot", "/etc/model/key",
		"/etc/tls", "/etc/tls/key", "/etc/other", "/etc/script/turns.yaml", "/dev", "/proc/self",
	} {
		t.Run("B7/"+bad, func(t *testing.T) {
			for _, key := range []string{
				"workspace: %s", "read: [/srv, %s]", "write: [%s]", "mcp: [{name: m, command: [x], read: [%s]}]",
				"mcp: [{name: m, command: [x], write: [%s]}]",
			} {
				err := load(fmt.Sprintf(key, bad))
				if err == nil || !strings.HasPrefix(err.Error(), file+":6: agents.") || !strings.Contains(err.Error(), bad) {
					t.Errorf("%s: %v", fmt.Sprintf(key, bad), err)
				}
			}
		})
	}
	if err := load("workspace: " + folder + "/data2"); err != nil {
		t.Errorf("beside the data directory: %v", err)
	}
	if err := load("mcp: [{name: m, command: [x], read: [/proc]}]"); err != nil { // the kernel reveals little about other processes
		t.Errorf("the processes, in the sandbox: %v", err)
	}
	if err := load("mcp: [{name: m, command: [x], write: [/proc]}]"); err == nil {
		t.Error("the processes may be written")
	}
}

func TestTheConsoleIsItsOwnersAlone(t *testing.T) {
	s := engine.Settings{UID: 7, People: []connectors.Person{{Name: "fay", UID: 7}, {Name: "sam", UID: 8}}}
	cfg := &config.Config{Agents: []config.Agent{
		{Name: "helper", Person: "fay", Connector: "terminal"}, {Name: "coder", Person: "sam", Connector: "telegram"},
	}}
	if err := checkConsoleAgents(cfg, s); err != nil {
		t.Error(err)
	}
	cfg.Agents[1].Connector = "terminal"
	const want = "coder is sam's, and the daemon's own console is fay's; write another connector, or run the daemon as sam"
	if err := checkConsoleAgents(cfg, s); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestKeyOfAModel(t *testing.T) {
	folder := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		t.Helper()
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := put("good", "sk-secret\n", 0o600)
	bad, credential := put("bad", "sk secret\n", 0o600), put("agent.helper.key", "sk-credential\n", 0o600)
	for name, test := range map[string]struct {
		provider, url, file string
		service             bool
		key, err            string
	}{
		"a file":                        {provider: "openai", file: good, key: "sk-secret"},
		"a credential":                  {provider: "anthropic", service: true, key: "sk-credential"},
		"the file goes first":           {provider: "anthropic", file: good, service: true, key: "sk-secret"},
		"a script needs none":           {provider: "script", service: true},
		"nor does a server of our own":  {provider: "openai", url: "http://127.0.0.1:1/v1"},
		"the provider's own needs one":  {provider: "openai", err: "there is no credential agent.helper.key"},
		"what is no key":                {provider: "openai", file: bad, err: "holds is no key"},
		"no file":                       {provider: "openai", file: folder + "/none", err: "none does not exist; put the key that openai"},
		"a credential, read on the way": {provider: "openai", url: "http://model.example/v1", service: true, err: "in the clear"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			c := &CLI{}
			if test.service {
				c.Environ = []string{"CREDENTIALS_DIRECTORY=" + filepath.Dir(credential)}
			}
			a := config.Agent{Name: "helper", Model: config.AgentModel{
				Provider: test.provider, BaseURL: test.url, APIKeyFile: test.file, Credential: "agent.helper.key",
			}}
			key, err := c.agentKey(a)
			if string(key) != test.key || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v", string(key), err)
			}
			slog.New(slog.NewTextHandler(&log, nil)).Info("", "key", key)
			if told := fmt.Sprintf("%v %+v %#v %s %v", key, key, key, log.String(), err); strings.Contains(told, "sk") {
				t.Errorf("the key is told: %s", told)
			}
		})
	}
}

func TestInstructions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "who.md")
	if err := os.WriteFile(file, []byte("You look after the wiki.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := agentInstructions(config.Agent{InstructionsFile: file}); got != "You look after the wiki.\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := agentInstructions(config.Agent{Instructions: "Be kind."}); got != "Be kind." || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("a\x00b"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + ".gone"} {
		if _, err := agentInstructions(config.Agent{Name: "helper", InstructionsFile: name}); err == nil ||
			!strings.HasPrefix(err.Error(), "agent helper: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
