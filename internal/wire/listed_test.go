package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// Lists have no long values, however much was asked, and say so; the rest is unchanged.
func TestListsHaveNothingLong(t *testing.T) {
	long := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	short := json.RawMessage(`{"x":"y"}`)
	for name, c := range map[string]struct {
		r     permissions.Request
		brief bool
	}{
		"F3/details": {permissions.Request{Tool: "x", Input: short, Details: string(long)}, true},
		"F3/input":   {permissions.Request{Tool: "x", Input: long}, true},
		"F3/calls":   {permissions.Request{Calls: []permissions.Call{{N: 1, Tool: "x", Input: short}, {N: 2, Tool: "y", Input: long}}}, true},
		"F3/links": {permissions.Request{Tool: "x", Input: short, Ruled: []permissions.Ruling{{
			Leads: &permissions.Leads{Names: map[string]string{"/a": string(long)}},
		}}}, true},
		"F3/message": {permissions.Request{Message: strings.Repeat("x", permissions.MaxMessage)}, true},
		"short":      {permissions.Request{Tool: "x", Input: short, Message: "look"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(c.r.Calls) > 1 && c.r.Calls[1].Input != nil
			w := Listed(permissions.RequestView{Request: c.r, Code: "K7F3Q"})
			text, err := Encode(w)
			if err != nil || len(text) > 2000 {
				t.Errorf("it has %d bytes: %v", len(text), err)
			}
			if w.Brief != c.brief || w.Code != "K7F3Q" || w.Details != nil {
				t.Errorf("brief: %v; want %v", w.Brief, c.brief)
			}
			if !c.brief && (string(w.Input) != string(short) || Value(w.Message) != "look") {
				t.Errorf("what is short is left out: %s", text)
			}
			s, err := w.View()
			if err != nil || s.Brief != c.brief || From(s, true).Brief != c.brief {
				t.Errorf("read back: %v, %v", s.Brief, err)
			}
			if before && c.r.Calls[1].Input == nil {
				t.Error("the request itself was changed")
			}
		})
	}
}

// An answer longer than a client accepts is reported as that, not cut and parsed.
func TestAnAnswerThatIsTooLongIsSaid(t *testing.T) {
	row := `"` + strings.Repeat("x", 1<<20-3) + `",` // a MiB
	for name, c := range map[string]struct {
		rows, status int
		want         string
	}{
		"F3/too long":           {64, http.StatusOK, "the answer of daycared is longer than 64 MiB; ask for less at a time"},
		"F3/a refusal too long": {64, http.StatusForbidden, "the answer of daycared is longer than 64 MiB; ask for less at a time"},
		"as long as it may be":  {63, http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("["))
				for range c.rows {
					if _, err := w.Write([]byte(row)); err != nil {
						return // the client has read enough
					}
				}
				_, _ = w.Write([]byte(`"end"]`))
			}))
			defer s.Close()
			client, err := NewRemoteClient(s.URL, RemoteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			var list []string
			err = client.Call(t.Context(), http.MethodGet, "/v1/audit", nil, nil, 0, &list)
			if said := fmt.Sprint(err); c.want != "" && said != c.want || c.want == "" && (err != nil || len(list) != c.rows+1) {
				t.Errorf("%d rows, %.200s", len(list), said)
			}
		})
	}
}

// The first page of a list is within a client's limit, even if every row is as large as possible.
func TestTheFirstPageOfAListFits(t *testing.T) {
	const page = 100                                            // default number of rows
	path := "/" + strings.Repeat(`"`, permissions.MaxTagPath-1) // the longest path in JSON
	words := func(n int) string { return strings.Repeat("\U0001F600", n) }
	large := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	r := permissions.Request{
		Reason: words(permissions.MaxReason), Message: words(permissions.MaxMessage), Cwd: path, Input: large, ID: "01J",
		Details: strings.Repeat("x", permissions.MaxDetails), Agent: words(permissions.MaxName), AffectedPath: path,
		Key: words(permissions.MaxName), Host: words(permissions.MaxName), Session: words(permissions.MaxName),
	}
	step, asks := r, r
	step.Kind, asks.Kind = permissions.KindTool, permissions.KindPermission
	for n := range permissions.MaxCalls {
		step.Calls = append(step.Calls, permissions.Call{N: n + 1, Tool: words(permissions.MaxName / 4), Input: large, AffectedPath: path})
	}
	for n := range permissions.MaxTags {
		tag, err := permissions.ParseTag(fmt.Sprintf("@write:%s%02d", path[:len(path)-2], n))
		if err != nil {
			t.Fatal(err)
		}
		asks.Tags = append(asks.Tags, tag)
	}
	session := permissions.AgentSession{Request: "01J", Agent: "helper"}
	for name, row := range map[string]any{
		"F3/steps":       Listed(permissions.RequestView{Request: step}),
		"F3/permissions": Listed(permissions.RequestView{Request: asks}),
		"F3/sessions":    ListedSession(permissions.SessionView{Session: session, WaitsOn: step}),
		"F3/grants":      FromGrant(permissions.Grant{Tags: asks.Tags, Session: r.Session}),
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Encode(row)
			if err != nil || page*len(text) > maxAnswer {
				t.Errorf("%d rows of %d bytes do not fit into %d: %v", page, len(text), maxAnswer, err)
			}
		})
	}
}
