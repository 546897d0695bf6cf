package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// leaks are failures of a service that return the caller's input.
var leaks = map[string]func(w http.ResponseWriter, sent string){
	"401": func(w http.ResponseWriter, sent string) { refuse(w, 401, sent) },
	"400": func(w http.ResponseWriter, sent string) { refuse(w, 400, sent) },
	"500": func(w http.ResponseWriter, sent string) { refuse(w, 500, sent) },
	"a page": func(w http.ResponseWriter, sent string) {
		_, _ = io.WriteString(w, "<html>"+sent)
	},
	"elsewhere": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Location", "http://127.0.0.1:1/?"+url.QueryEscape(sent))
		w.WriteHeader(http.StatusTemporaryRedirect)
	},
	"cut off": func(w http.ResponseWriter, _ string) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	},
	"half": func(w http.ResponseWriter, sent string) {
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, `{"error":"`+sent)
	},
}

func refuse(w http.ResponseWriter, code int, sent string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"ok":false,"error_code":%d,"description":%q,"type":"error","error":{"type":"x","message":%q}}`, code, sent, sent)
}

// failing is a server that fails every call in one of these ways, and records its input.
type failing struct {
	*httptest.Server
	mu   sync.Mutex
	sent strings.Builder
}

func newFailing(t *testing.T, leak func(http.ResponseWriter, string)) *failing {
	t.Helper()
	f := &failing{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		_ = r.Header.Write(&b)
		sent := r.URL.Path + " " + strings.ReplaceAll(b.String(), "\r\n", " ")
		f.mu.Lock()
		f.sent.WriteString(sent)
		f.mu.Unlock()
		leak(w, sent)
	}))
	t.Cleanup(f.Close)
	return f
}

// was reports whether a text was received.
func (f *failing) was(text string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Contains(f.sent.String(), text)
}

// TestSecretsAreInNoOutput runs a daemon whose calls all fail with errors that contain its secrets, and searches all output and
// logs of daemon and commands, and the store with the audit.
func TestSecretsAreInNoOutput(t *testing.T) {
	for provider, header := range map[string]string{"openai": "Authorization: Bearer ", "anthropic": "X-Api-Key: "} {
		for name, leak := range leaks {
			t.Run("G3/"+provider+", "+name, func(t *testing.T) {
				t.Parallel()
				telegram, model := newFailing(t, leak), newFailing(t, leak)
				out := &watched{}
				c, secrets := planted(t, out, telegram.URL, model.URL, provider)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan int, 1)
				go func() { ended <- c.Run(ctx, []string{"serve"}) }()
				command := func(args ...string) {
					soon, done := context.WithTimeout(ctx, 2*time.Second) // nobody can be asked
					defer done()
					(&CLI{In: c.In, Out: out, Err: out, UID: c.UID, Environ: c.Environ}).Run(soon, args)
				}
				run := filepath.Dir(c.of("DAYCARED_CONFIG"))
				admin := wiretest.HTTP(t, filepath.Join(run, "admin"))
				wiretest.Eventually(t, "the daemon serves", func() bool {
					answer, err := admin.Get("http://localhost/healthz")
					if err == nil {
						answer.Body.Close()
					}
					return err == nil
				})
				token := filepath.Join(run, "ci.token")
				command("token", "create", "ci", "--out", token)
				for _, file := range []string{token, filepath.Join(run, "data", "admin.key"), filepath.Join(run, "data", "audit.key")} {
					secrets[file] = secretIn(t, file)
				}
				_, said := wiretest.Do(t, admin, http.MethodPost, "/v1/messages", "application/json", `{"text":"go","key":"1"}`)
				_, _ = io.WriteString(out, said)
				wiretest.Eventually(t, "Telegram is called", func() bool { return telegram.was(secrets["bot"]) })
				wiretest.Eventually(t, "the model is called", func() bool { return model.was(header + secrets["model"]) })
				for _, line := range []string{
					"ask @network --reason x --token-file " + token, "ask @network --reason x --token-file " + filepath.Join(run, "false.token"),
					"pending", "status", "status --json", "doctor", "token list", "agents", "grants", "config show", "audit", "audit --json",
					"audit verify", "stop-all", "resume", "token revoke ci",
				} {
					command(strings.Fields(line)...)
				}
				stop()
				<-ended
				for _, what := range []string{"telegram call", "REQUEST_CREATED", "This token is not valid here"} {
					if !strings.Contains(out.text.String(), what) {
						t.Errorf("nothing that is searched says %s", what)
					}
				}
				searched(t, "what is printed and logged", out.text.String(), secrets)
				for _, file := range []string{"daycared.db", "daycared.db-wal"} {
					text, err := os.ReadFile(filepath.Join(run, "data", file))
					if err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
					searched(t, file, string(text), secrets)
				}
			})
		}
	}
}

// of is a variable's value.
func (c *CLI) of(name string) string {
	for _, pair := range c.Environ {
		if value, found := strings.CutPrefix(pair, name+"="); found {
			return value
		}
	}
	return ""
}

// planted is a command line whose daemon has a bot, an agent and files of secrets; it returns the secrets too.
func planted(t *testing.T, out *watched, telegram, model, provider string) (*CLI, map[string]string) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	c := serving(t, out)
	file := c.of("DAYCARED_CONFIG")
	run := filepath.Dir(file)
	secrets := map[string]string{
		"bot": "123456789:CANARY-bot-0123456789abcdefghijklmn", "model": "sk-CANARY-model-0123456789",
		"false": string(permissions.NewSecret()),
	}
	config := fmt.Sprintf(`people: [{name: fay, user: %q, telegram: 4242}]
routes: [{ask: [fay]}]
connectors: {terminal: {enabled: false}, telegram: {enabled: true, token_file: %[2]s/bot, api_url: %[3]s}}
api: {allow_same_user: true, admin_reachable: true}
agents:
  - {name: helper, person: fay, connector: admin, workspace: %[2]s/ws,
     model: {provider: %[4]s, name: m, base_url: %[5]s, api_key_file: %[2]s/model}}
sandbox: off
log: {level: debug}
`, me.Username, run, telegram, provider, model)
	for name, text := range map[string]string{
		"config.yaml": config, "bot": secrets["bot"], "model": secrets["model"], "false.token": secrets["false"],
	} {
		if err := os.WriteFile(filepath.Join(run, name), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(run, "ws"), 0o700); err != nil {
		t.Fatal(err)
	}
	return c, secrets
}

func secretIn(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || len(strings.TrimSpace(string(text))) < 20 {
		t.Fatalf("%s holds no secret: %v", file, err)
	}
	return strings.TrimSpace(string(text))
}

// searched fails the test if a text contains a secret in any form.
func searched(t *testing.T, where, text string, secrets map[string]string) {
	t.Helper()
	for name, secret := range secrets {
		_, tail, _ := strings.Cut(secret, ":") // the secret part of a bot's token follows its id
		for _, form := range []string{
			secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%x", secret), tail,
		} {
			if at := strings.Index(text, form); form != "" && at >= 0 {
				t.Errorf("%s of %s is in %s: …%q", form, name, where, text[max(0, at-200):at])
			}
		}
	}
	if strings.Contains(text, "CANARY") {
		t.Errorf("part of a secret is in %s", where)
	}
}
