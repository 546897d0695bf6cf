package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daycared/daycared/cmd/daycared/config"
)

// Files that the daemon trusts are refused if accounts other than root and its own own or can write them or their folder.
func TestWhatOthersMayChangeIsRefused(t *testing.T) {
	const others = 12345
	files := map[string]string{
		"config.yaml": "", "token": "123456789:AAEabcdefghijklmnopqrstuvwxyz", "key": "sk-1", "words": "Be brief.", "turns": "[]\n",
		"cert": "", "tls": "",
	}
	open := func(name string) func(t *testing.T, folder string) {
		return func(t *testing.T, folder string) {
			t.Helper()
			mode := os.FileMode(0o666)
			if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.IsDir() {
				mode = 0o777
			}
			if err := os.Chmod(filepath.Join(folder, name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, folder string)
		given  string // the file owned by another account
		want   string // empty: it serves
	}{
		"B7/all is its own":                       {},
		"B7/configuration that all may write":     {change: open("config.yaml"), want: "config.yaml (0666), and with it"},
		"B7/configuration of another":             {given: "config.yaml", want: "config.yaml belongs to uid 12345"},
		"B7/folder of it that all may write":      {change: open("."), want: "(0777), and with it"},
		"B7/folder of it of another":              {given: ".", want: "belongs to uid 12345"},
		"B7/token that all may write":             {change: open("token"), want: "connectors.telegram.token_file: other accounts may change"},
		"B7/token of another":                     {given: "token", want: "connectors.telegram.token_file: "},
		"B7/model key that all may write":         {change: open("key"), want: "agents.model.api_key_file: other accounts may change"},
		"B7/turns of another":                     {given: "turns", want: "agents.model.file: "},
		"B7/instructions that all may write":      {change: open("words"), want: "agents.instructions_file: other accounts may change"},
		"B7/tls key that all may write":           {change: open("tls"), want: "api.tls_key_file: other accounts may change"},
		"B7/certificate of another":               {given: "cert", want: "api.tls_cert_file: "},
		"B7/folder of the sockets, all may write": {change: open("sockets"), want: "api.agent_socket: other accounts may change"},
		"B7/folder of the sockets of another":     {given: "sockets", want: "api.agent_socket: "},
		"B7/admin key that others read": {change: func(t *testing.T, folder string) {
			t.Helper()
			if err := os.Chmod(filepath.Join(folder, "data", "admin.key"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, want: "data_dir: others may read"},
		"B7/admin key of another": {given: "data/admin.key", want: "admin.key belongs to uid 12345"},
		"B7/by a link to a folder that all may write": {change: func(t *testing.T, folder string) {
			t.Helper()
			elsewhere, token := filepath.Join(folder, "elsewhere"), filepath.Join(folder, "token")
			if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.Chmod(elsewhere, 0o777),
				os.Rename(token, elsewhere+"/token"), os.Symlink(elsewhere+"/token", token)); err != nil {
				t.Fatal(err)
			}
		}, want: "connectors.telegram.token_file: other accounts may change"},
		"B7/by a link in a folder that all may write": {change: func(t *testing.T, folder string) {
			t.Helper()
			elsewhere, kept := filepath.Join(folder, "elsewhere"), filepath.Join(folder, "kept.yaml")
			if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.Chmod(elsewhere, 0o777), os.Rename(filepath.Join(folder, "config.yaml"), kept),
				os.Symlink("../kept.yaml", elsewhere+"/link"), os.Symlink("elsewhere/link", filepath.Join(folder, "config.yaml"))); err != nil {
				t.Fatal(err)
			}
		}, want: "elsewhere (0777), and with it"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			in := func(name string) string { return filepath.Join(folder, name) }
			if err := errors.Join(os.Chmod(folder, 0o755), os.Mkdir(in("data"), 0o700), os.Mkdir(in("sockets"), 0o755)); err != nil {
				t.Fatal(err)
			}
			for file, text := range files {
				if err := os.WriteFile(in(file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(in("data/admin.key"), []byte(strings.Repeat("a", 64)), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, folder)
			}
			cfg := config.Default()
			cfg.File, cfg.DataDir = in("config.yaml"), in("data")
			cfg.API.AgentSocket, cfg.API.AdminSocket = in("sockets/a"), in("sockets/b")
			cfg.API.TLSCertFile, cfg.API.TLSKeyFile = in("cert"), in("tls")
			cfg.Connectors.Telegram.Enabled, cfg.Connectors.Telegram.TokenFile = true, in("token")
			cfg.Agents = []config.Agent{{Name: "a", InstructionsFile: in("words"), Model: config.AgentModel{
				Credential: "agent.a.key", APIKeyFile: in("key"), File: in("turns"),
			}}}
			cli := &CLI{UID: os.Getuid()}
			look := &inspection{cli: cli, cfg: cfg, paths: cfg.Paths(cli.UID, nil), as: accountOf(cli.UID), owner: func(info fs.FileInfo) int {
				if is, err := os.Stat(in(c.given)); c.given != "" && err == nil && os.SameFile(is, info) {
					return others // only root can change a file's owner
				}
				return ownerOf(info)
			}}
			found := look.writableByOthers()
			if text := found.Error(); (len(found) > 0) != (c.want != "") || !strings.Contains(text, c.want) {
				t.Errorf("it finds\n%s\nwant %q", text, c.want)
			}
			for _, p := range found[:min(1, len(found))] {
				if _, remedy := p.Split(); !strings.Contains(remedy, "run: ch") {
					t.Errorf("it does not say what to do: %s", p.Text)
				}
			}
		})
	}
}
