package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// TestMachinesThatDoNotServe tests valid configurations that name files which are missing, inaccessible to the account that runs
// the daemon, or of the wrong kind. Each problem is reported with its line and a remedy.
func TestMachinesThatDoNotServe(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{folder, filepath.Dir(folder)} { // the tests of modes need passage for other accounts
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(in(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{
		"closed": 0o700, "open": 0o755, "data": 0o700, "work": 0o700,
		"tls": 0o755, "tls2": 0o755, "tls3": 0o755, "drop": 0o777,
	} {
		if err := errors.Join(os.Mkdir(in(name), mode), os.Chmod(in(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	const token = "123456789:AAEabcdefghijklmnopqrstuvwxyz"
	put("token", token, 0o600)
	put("seen", token, 0o644)
	put("empty", "", 0o600)
	put("other", "hello", 0o600)
	put("socket", "", 0o600)
	put("key", "sk-1", 0o600)
	cert, key, _ := wiretest.Certificate(t, in("tls"), "localhost")
	_, otherKey, _ := wiretest.Certificate(t, in("tls2"), "localhost")
	over := time.Now().Add(-48 * time.Hour)
	oldCert, oldKey, _ := wiretest.CertificateUntil(t, over, in("tls3"), "localhost")
	if err := os.Chmod(oldKey, 0o644); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	host, port, _ := net.SplitHostPort(taken.Addr().String())
	holder := listening(host, port)

	self, other := accountOf(os.Getuid()), account{uid: 54321, gids: []int{54321}}
	const bot, model = "connectors: {telegram: {enabled: true, token_file: ", "agents: [{name: a, person: fay, "
	data := "data_dir: " + in("data") + "\napi: {agent_socket: " + in("data/a.sock") + ", admin_socket: " + in("data/b.sock") + "}\n"
	listen := "data_dir: " + in("data") + "\napi: {agent_socket: " + in("data/a.sock") + ", admin_socket: " + in("data/b.sock") + ", listen: '"
	secure := func(cert, key string) string {
		return listen + "127.0.0.1:1', tls_cert_file: " + cert + ", tls_key_file: " + key + "}\n"
	}
	sockets := func(more string) string { return "data_dir: " + in("data") + "\napi: {" + more + "}\n" }
	for name, test := range map[string]struct {
		text  string
		as    account
		fatal bool
		want  string
	}{
		"1 no token": {
			data + "connectors: {telegram: {enabled: true}}\n",
			self, true,
			"5: connectors.telegram.token_file: it is empty, and there is no credential telegram.token; put",
		},
		"2 no such token": {
			data + bot + in("none") + "}}\n",
			self, true,
			"5: connectors.telegram.token_file: " + in("none") + " does not exist; put the token",
		},
		"3 an empty token": {
			data + bot + in("empty") + "}}\n",
			self, true,
			"5: connectors.telegram.token_file: " + in("empty") + " is empty; put the token",
		},
		"4 no token at all": {
			data + bot + in("other") + "}}\n",
			self, true,
			"5: connectors.telegram.token_file: what " + in("other") + " holds is no bot token: BotFather's",
		},
		"5 a folder for a token": {
			data + bot + in("open") + "}}\n",
			self, true,
			"5: connectors.telegram.token_file: " + in("open") + " is a folder; name the file in it",
		},
		"6 a token of somebody else": {
			data + bot + in("token") + "}}\n",
			other, true,
			"5: connectors.telegram.token_file: " + in("token") + " cannot be read by uid 54321: " + in("token") +
				" belongs to uid ",
		},
		"7 a token that others read": {
			data + bot + in("seen") + "}}\n",
			self, false,
			"5: connectors.telegram.token_file: others may read " + in("seen") + " (0644); run: chmod 600 " +
				in("seen"),
		},
		"9 whatsapp without account": {
			data + "connectors: {whatsapp: {enabled: true}}\n",
			self, false,
			"5: no WhatsApp account is linked, so nobody is asked there; run: daycared link whatsapp",
		},
		"11 no certificate": {
			secure(in("none"), key),
			self, true,
			"4: api.tls_cert_file: " + in("none") + " does not exist; put a certificate there",
		},
		"12 no PEM": {
			secure(in("other"), key),
			self, true,
			"4: api.tls_cert_file: " + in("other") + " holds something else, and not a certificate in PEM; name",
		},
		"12 a key for a certificate": {
			secure(key, key),
			self, true,
			"4: api.tls_cert_file: " + key + " holds ec private key, and not a certificate in PEM; name",
		},
		"13 the key of another": {
			secure(cert, otherKey),
			self, true,
			"4: api.tls_key_file: " + otherKey + " is not the key of " + cert,
		},
		"14 a certificate that is over": {
			secure(oldCert, oldKey),
			self, false,
			"4: api.tls_cert_file: the certificate " + oldCert + " is over since " + over.UTC().Format(time.DateOnly) + "; renew it",
		},
		"15 a key that others read": {
			secure(oldCert, oldKey),
			self, false,
			"4: api.tls_key_file: others may read " + oldKey + " (0644); run: chmod 600 " + oldKey,
		},
		"16 a port in use": {
			listen + taken.Addr().String() + "'}\n",
			self, true,
			"4: api.listen: " + taken.Addr().String() + " is in use by " + holder + "; choose another port",
		},
		"18 no such address": {
			listen + "192.0.2.1:7801', behind_proxy: true}\n",
			self, true,
			"4: api.listen: this machine has no address 192.0.2.1; write one that it has: 127.0.0.1",
		},
		"19 a socket in a closed one": {
			sockets("agent_socket: " + in("closed/a.sock") + ", admin_socket: " + in("closed/b.sock")),
			other, true,
			"4: api.agent_socket: uid 54321 cannot make a socket at " + in("closed/a.sock") +
				", since it may not write in " + in("closed") + ", which belongs to ",
		},
		"20 no socket": {
			sockets("agent_socket: " + in("socket") + ", admin_socket: " + in("data/b.sock")),
			self, true,
			"4: api.agent_socket: there is something else at " + in("socket") + ", which is not a socket; take",
		},
		"21 a group, a folder to be": {
			sockets("agent_group: '" + strconv.Itoa(os.Getgid()) + "', agent_socket: " + in("open/no/such/a.sock") +
				", admin_socket: " + in("data/b.sock")),
			self, true,
			"4: api.agent_group: nobody of the group " + strconv.Itoa(os.Getgid()) + " could come to " +
				in("open/no/such/a.sock") + ", since others cannot enter " + in("open/no") +
				", which the daemon would make for itself alone; write a path that they can, as in /run/daycared/a.sock",
		},
		"22 a group, a closed folder": {
			sockets("agent_group: '1', agent_socket: " + in("closed/a.sock") + ", admin_socket: " + in("data/b.sock")),
			self, true,
			"4: api.agent_group: nobody of the group 1 could come to " + in("closed/a.sock") +
				", since others cannot enter " + in("closed") + " (0700); write",
		},
		"23 a group of others": {
			sockets("agent_group: '1', agent_socket: " + in("drop/a.sock") + ", admin_socket: " + in("drop/b.sock")),
			account{uid: 54321}, true,
			"4: api.agent_group: uid 54321 is not in the group 1, so it cannot give the socket to it; as root, run: usermod -aG 1 54321",
		},
		"24 data that cannot be made": {
			"data_dir: " + in("closed/x/data") + "\napi: {}\n",
			other, true,
			"3: data_dir: " + in("closed/x/data") + " cannot be made by uid 54321, which may not write in " +
				in("closed") + "; name",
		},
		"25 open data": {
			"data_dir: " + in("open") + "\n",
			self, true,
			"3: data_dir: the data directory " + in("open") +
				" is open to other accounts (0755); run: chmod 700 " + in("open"),
		},
		"26 a file for data": {
			"data_dir: " + in("other") + "\n",
			self, true,
			"3: data_dir: " + in("other") + " is a file, or lies in one; name a folder",
		},
		"27 data of another account": {
			"data_dir: " + in("data") + "\n",
			other, true,
			"3: data_dir: " + in("data") + " is of another account, uid ",
		},
		"29 no workspace": {
			data + model + "workspace: " + in("none") +
				", model: {provider: openai, name: m, base_url: 'http://127.0.0.1:1'}}]\n",
			self, false,
			"5: agents.workspace: " + in("none") + " does not exist, so a cannot work; make it",
		},
		"30 a file for a workspace": {
			data + model + "workspace: " + in("other") +
				", model: {provider: openai, name: m, base_url: 'http://127.0.0.1:1'}}]\n",
			self, false,
			"5: agents.workspace: " + in("other") + " is a file, so a cannot work in it; name",
		},
		"31 a closed workspace": {
			data + model + "workspace: " + in("work") +
				", model: {provider: openai, name: m, base_url: 'http://127.0.0.1:1'}}]\n",
			other, false,
			"5: agents.workspace: uid 54321 cannot write in " + in("work"),
		},
		"32 no key": {
			data + model + "model: {provider: openai, name: m, api_key_file: " + in("none") + "}}]\n",
			self, true,
			"5: agent a: model.api_key_file: " + in("none") +
				" does not exist; put the key that openai gave you there",
		},
		"33 an empty key": {
			data + model + "model: {provider: openai, name: m, api_key_file: " + in("empty") + "}}]\n",
			self, true,
			"5: agent a: model.api_key_file: " + in("empty") + " is empty; put the key",
		},
		"34 a key that others read": {
			data + model + "model: {provider: openai, name: m, api_key_file: " + in("seen") + "}}]\n",
			self, false,
			"5: agents.model.api_key_file: others may read " + in("seen") + " (0644); run: chmod 600 " +
				in("seen"),
		},
		"36 no turns": {
			data + model + "model: {provider: script, file: " + in("none") + "}}]\n",
			self, true,
			"5: agents.model.file: agent a: " + in("none") + " cannot be read (no such file",
		},
		"37 no instructions": {
			data + model + "instructions_file: " + in("none") +
				", model: {provider: openai, name: m, base_url: 'http://127.0.0.1:1'}}]\n",
			self, true,
			"5: agents.instructions_file: agent a: ",
		},
		"38 no program": {
			data + model + "acp: [no-such-program], workspace: " + in("work") + "}]\n",
			self, false,
			`5: agents.acp: the program "no-such-program" is not there, or uid`,
		},
		"60 a configuration that everybody may change": {
			data,
			self, true,
			"1: this configuration: other accounts may change ",
		},
		"39 no server": {
			data + model + "mcp: [{name: m, command: [" + in("other") +
				"]}], model: {provider: openai, name: m, base_url: 'http://127.0.0.1:1'}}]\n",
			self, false,
			`5: agents.mcp.command: the program "` + in("other") + `" is not there, or uid`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte("people: [{name: fay, user: root}]\nroutes: [{ask: [fay]}]\n"+test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "60 ") {
				if err := os.Chmod(file, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			c := &CLI{UID: os.Getuid(), Environ: []string{"HOME=" + folder}}
			cfg, err := config.Load(file, c.Environ)
			if err != nil {
				t.Fatal(err)
			}
			seen := c.inspect(cfg, cfg.Paths(c.UID, c.Environ), test.as, nil)
			said := ""
			for _, o := range seen.found {
				text := strings.TrimPrefix(o.String(), file+":")
				if strings.HasPrefix(text, test.want) && o.fatal == test.fatal {
					return
				}
				said += "\n" + text
			}
			t.Errorf("said is%s\nwant %s", said, test.want)
		})
	}
}

// TestPortsThatDoNotServe: the kernel's error for a port is reported with a remedy. Whether an account may listen on a port
// depends on the machine, so that error is injected.
func TestPortsThatDoNotServe(t *testing.T) {
	cfg, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if runtime.GOOS == "linux" {
		own := fmt.Sprintf("pid %d (", os.Getpid())
		for _, host := range []string{"127.0.0.1", "", "0.0.0.0", "::"} {
			if by := listening(host, port); !strings.HasPrefix(by, own) {
				t.Errorf("16 a port of our own: %s at %q", by, host)
			}
		}
		if by := listening("127.0.0.2", port); by != "another program" {
			t.Errorf("16 a port of another address: %s", by)
		}
	}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	if by := listening("127.0.0.1", port); by != "another program" {
		t.Errorf("16 a port of nobody whom we know: %s", by)
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"16": {syscall.EADDRINUSE, "api.listen: " + address + " is in use by another program; choose another port, or end that program"},
		"17": {syscall.EACCES, "api.listen: port " + port + " may not be listened at by " + accountName(os.Getuid()) +
			"; write one of 1024 or above"},
	} {
		c := &CLI{UID: os.Getuid()}
		seen := &inspection{cli: c, cfg: cfg, paths: config.Paths{DataDir: t.TempDir()}, as: accountOf(os.Getuid())}
		seen.listened(address, &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", test.err)})
		if len(seen.found) != 1 || !seen.found[0].fatal || seen.found[0].Text != test.want {
			t.Errorf("%s: %v, want %s", name, seen.found, test.want)
		}
	}
}

// TestServicesThatDoNotServe: doctor calls Telegram while no daemon does, and the models' addresses.
func TestServicesThatDoNotServe(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	telegram := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":401,"description":"Unauthorized"}`)
	}))
	defer telegram.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("123456789:AAEabcdefghijklmnopqrstuvwxyz"), 0o600); err != nil {
		t.Fatal(err)
	}
	bot := "connectors:\n  telegram:\n    enabled: true\n    token_file: " + token + "\n    api_url: "
	for name, test := range map[string]struct{ text, want string }{
		"8 getMe refuses": {bot + telegram.URL + "\n",
			"7: connectors.telegram: at " + telegram.URL + ", Telegram does not accept this token"},
		"8 nobody is there": {bot + nobody + "\n",
			"7: connectors.telegram: at " + nobody + ", Telegram does not answer: "},
		"35 no model": {"agents:\n- {name: a, person: fay, workspace: /w, model: {provider: openai, name: m, base_url: '" + nobody + "'}}\n",
			"4: agents.model.base_url: nothing answers at " + nobody + " (the connection was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte("people: [{name: fay, user: root}]\nroutes: [{ask: [fay]}]\n"+test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c := &CLI{UID: os.Getuid()}
			cfg, err := config.Load(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			said := (&inspection{cli: c, cfg: cfg, as: accountOf(c.UID)}).examineServices(t.Context())
			if len(said) != 1 || said[0].Level != "wrong" || said[0].Remedy == "" ||
				!strings.HasPrefix(strings.TrimPrefix(said[0].What, file+":"), test.want) {
				t.Errorf("said is %v\nwant %s", said, test.want)
			}
		})
	}
}

// TestWhoMayReadWhat compares modes, even if this account is root and may do everything.
func TestWhoMayReadWhat(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "f")
	if err := os.WriteFile(file, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		who  account
		what os.FileMode
		may  bool
	}{
		{account{uid: 54321}, mayRead, false},
		{account{uid: 54321, gids: []int{groupOf(info)}}, mayRead, true},
		{account{uid: 54321, gids: []int{groupOf(info)}}, mayWrite, false},
		{accountOf(os.Getuid()), mayRead | mayWrite, true},
	} {
		if got := test.who.may(file, info, test.what); got != test.may {
			t.Errorf("%v may do %o: %t", test.who, test.what, got)
		}
	}
}

// TestASocketOfAProgramThatIsBeingKilledIsFree: such a process may still accept a connection, but does not answer.
func TestASocketOfAProgramThatIsBeingKilledIsFree(t *testing.T) {
	for name, dies := range map[string]bool{"it dies": true, "it lives": false} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				first, err := l.Accept()
				if err != nil {
					return
				}
				if dies {
					_ = l.Close()
				} else {
					_, _ = first.Read(make([]byte, 1)) // until the other side closes it
				}
				_ = first.Close()
			}()
			if got := answers(path); got == dies {
				t.Errorf("it answers: %v", got)
			}
			_ = l.Close()
			<-ended
		})
	}
}

// TestDoctorSaysThatTheClockIsBehind the newest entry of the audit, as after it was set back.
func TestDoctorSaysThatTheClockIsBehind(t *testing.T) {
	for ahead, want := range map[time.Duration]int{0: 1, 30 * time.Second: 1, time.Hour: 2} {
		dir := t.TempDir()
		o := storeOptions(config.Paths{DataDir: dir}, slog.New(slog.DiscardHandler))
		o.Now = func() time.Time { return time.Now().Add(ahead) }
		s, err := store.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Record(t.Context(), permissions.Record{Type: "X", At: o.Now()}), s.Close()); err != nil {
			t.Fatal(err)
		}
		found := (&inspection{cli: &CLI{}, cfg: &config.Config{}, paths: config.Paths{DataDir: dir}}).examineData(t.Context())
		if len(found) != want || want == 2 && (found[1].Level != "wrong" || !strings.Contains(found[1].What, "clock of this machine is behind")) {
			t.Errorf("%v ahead: %+v", ahead, found)
		}
	}
}

// TestDoctorSaysThatTheClockOfTheDatabaseIsBehind likewise.
func TestDoctorSaysThatTheClockOfTheDatabaseIsBehind(t *testing.T) {
	url, release, err := wiretest.OpenDatabase()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }() // it ends with the tests
	paths := config.Paths{DataDir: t.TempDir(), Database: url}
	s, err := store.Open(t.Context(), storeOptions(paths, slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for i, ahead := range []time.Duration{0, time.Hour} {
		if err := s.Record(t.Context(), permissions.Record{Type: "X", At: time.Now().Add(ahead)}); err != nil {
			t.Fatal(err)
		}
		found := (&inspection{cli: &CLI{}, cfg: &config.Config{}, paths: paths}).examineServer(t.Context())
		if len(found) != 1+i || i == 1 && (found[1].Level != "wrong" || !strings.Contains(found[1].What, "clock of the database is behind")) {
			t.Errorf("%v ahead: %+v", ahead, found)
		}
	}
}
