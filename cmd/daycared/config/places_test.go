package config

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that is refused still says where its daemon is, unless what is wrong may have been to say that: then another
// daemon's place would be taken for it.
func TestPlacesOfARefusedFile(t *testing.T) {
	for _, test := range []struct {
		name, text string
		ok         bool
	}{
		{"another key", "data_dir: /d\napi: {admin_socket: /a}\nbogus: 1\n", true},
		{"another value", "data_dir: /d\napi: {admin_socket: /a}\nlog: {level: loud}\n", true},
		{"the defaults", "bogus: 1\n", true},
		{"a mistyped folder", "data_dri: /d\n", false},
		{"a wrong folder", "data_dir: [/d]\n", false},
		{"a mistyped socket", "api: {admin_sockt: /a}\n", false},
		{"a socket at the top", "admin_socket: /a\n", false},
		{"a wrong section", "api: 1\n", false},
		{"no YAML", "people: [\n", false},
		{"no YAML below", "data_dir: /d\napi:\n  admin_socket: /a\n  agent_socket: /b\npeople: [\n  {name: fay\n", true},
		{"no YAML above", "people: [\n[\ndata_dir: /d # here\n\napi: {agent_socket: /b, admin_socket: /a}\n[\nroutes: ]\n", true},
		{"no YAML, and a place is lost", "data_dir: /d\napi: {admin_socket: /a}\npeople: [\n", false},
		{"no YAML, and a mistyped place", "data_dir: /d\napi: {admin_socket: /a, agent_socket: /b}\ndata_dri: /e\npeople: [\n", false},
		{"no YAML, and a folder twice", "data_dir: /d\napi: {admin_socket: /a, agent_socket: /b}\n<<<<\ndata_dir: /e\n", false},
		{"no YAML where a place is", "data_dir: /d\napi: {admin_socket: /a, agent_socket: /b\n", false},
		{"nothing wrong", "data_dir: /d\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, ok := Places(file, nil)
			if ok != test.ok {
				t.Fatalf("Places gives %t, want %t", ok, test.ok)
			}
			if !ok || test.name == "the defaults" {
				return
			}
			if p := cfg.Paths(1, nil); p.DataDir != "/d" || p.AdminSocket != "/a" {
				t.Errorf("Paths gives %s and %s", p.DataDir, p.AdminSocket)
			}
		})
	}
}
