package main

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestAnExactCallIsSaid: a grant of an exact call is described by the call, or, if that is no longer kept, by where it was
// asked.
func TestAnExactCallIsSaid(t *testing.T) {
	secret := "ghp_" + strings.Repeat("0a1B", 9)
	asked := permissions.Request{
		Kind: permissions.KindTool, Cwd: "/srv", Calls: []permissions.Call{
			{N: 1, Tool: "write_file", Input: []byte(`{"path":"a"}`)}, {N: 2, Tool: "sh", Input: []byte(`{"command":"gh --token ` + secret + `"}`)},
			{N: 3, Tool: "sh", Input: []byte(`{"command":"` + strings.Repeat("0123456789", 9) + `"}`)},
		},
	}
	elsewhere := asked
	elsewhere.Cwd = "/home"
	for _, c := range []struct {
		n    int
		from permissions.RequestView
		want string
	}{
		{1, permissions.RequestView{Request: asked, Code: "K7F3Q"}, `this exact call: to use write_file { "path": "a" }`},
		{2, permissions.RequestView{Request: asked}, "this exact call: to run with sh gh --token ‹secret, 40 characters, sha256 5de …"},
		{3, permissions.RequestView{Request: asked}, `this exact call: to run with sh ` + strings.Repeat("0123456789", 4) + "01234 …"},
		{1, permissions.RequestView{Request: elsewhere, Code: "K7F3Q"}, "this exact call of write_file, asked in request K7F3Q"},
		{1, permissions.RequestView{}, "this exact call of write_file, asked in request 01J"},
	} {
		call := asked.Calls[c.n-1]
		g := permissions.Grant{Tool: call.Tool, Call: permissions.CallDigest(asked, call), Request: "01J"}
		if got := covers(g, c.from); got != c.want {
			t.Errorf("covers %q, want %q", got, c.want)
		}
	}
}
