package tools

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWebSearch queries a service like SearXNG: only the operator's, whatever it redirects to.
func TestWebSearch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/here/search" || r.FormValue("format") != "json" {
			t.Errorf("it is asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]string{
			"the & of <go>": `{"results":[{"title":"One\nline","url":"https://example.org/1","content":" first\n excerpt "},` +
				`{"url":"https://example.org/2"}]}`,
			"many": `{"results":[` + strings.Repeat(`{"title":"t","url":"u"},`, 30) + `{}]}`, "no json": "results",
		}[r.FormValue("q")]
		switch r.FormValue("q") {
		case "forbidden":
			w.WriteHeader(http.StatusForbidden)
		case "elsewhere":
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
		default:
			_, _ = w.Write([]byte(answer))
		}
	}))
	defer server.Close()
	p := Workspace{Search: server.URL + "/here"}.with(t, "@network")
	for _, c := range []struct {
		query  string
		failed bool
		says   string
	}{
		{"the & of <go>", false, "2 results\n\n1. One line\nhttps://example.org/1\nfirst excerpt\n\n" +
			"2. https://example.org/2\nhttps://example.org/2\n"},
		{"many", false, "10 results\n\n1. t\nu\n"},
		{"no json", true, "search: the search service does not answer as SearXNG does"},
		{"forbidden", true, "search: the search service answers 403"},
		{"elsewhere", true, "search: the search service answers 302"},
	} {
		call(t, p, "web_search", args{"query": c.query}).says(t, c.failed, c.says)
	}
	if o := call(t, p, "web_search", args{"query": "many", "pause": true}); o.Pause != o.Text {
		t.Errorf("people are shown %q", o.Pause)
	}
	if got := plan(t, Workspace{}, "web_search", args{"query": "x"}); needs(got) != "network access" {
		t.Errorf("it needs %q", needs(got))
	}
	call(t, Workspace{Search: server.URL}, "web_search", args{"query": "x"}).says(t, true, "there is no network access")
}
