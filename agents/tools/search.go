package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/permissions"
)

// webSearch queries the SearXNG instance that the operator configured; only that one may be private.
type webSearch struct{ fetchURL }

type seeking struct {
	Query string `json:"query" need:"yes" size:"1.." say:"what to look for"`
	Pause bool   `json:"pause" default:"false" say:"show people the result, and go on when they say so"`
}

const maxHits = 10

func (webSearch) spec() models.Tool {
	return models.Tool{Name: "web_search", Description: "Search the web: titles, addresses and excerpts of " +
		"at most ten pages, to be read by fetch_url. People are asked for the network."}
}

func (webSearch) plan(_ context.Context, p Workspace, in seeking) (plan Plan, err error) {
	if strings.TrimSpace(in.Query) == "" {
		err = errors.New("query is missing")
	}
	return Plan{Needs: p.missing(permissions.Network)}, err
}

func (t webSearch) run(ctx context.Context, p Workspace, in seeking, _ Plan) (o Outcome, err error) {
	if err := p.mustHold(permissions.Network); err != nil {
		return o, err
	}
	u, err := url.Parse(strings.TrimSuffix(p.Search, "/") + "/search")
	if err != nil {
		return o, errors.New("the address of the search service is not right")
	}
	u.RawQuery = url.Values{"q": {in.Query}, "format": {"json"}}.Encode()
	ctx, stop := context.WithTimeout(ctx, fetchTime)
	defer stop()
	client := t.client(anywhere)
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // not the operator's choice
	_, status, text, err := fetched(ctx, client, u)
	var reply struct {
		Results []struct{ Title, URL, Content string }
	}
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the search service answers %d; the operator has to allow the format json there", status)
	} else if err == nil && json.Unmarshal([]byte(text), &reply) != nil {
		err = errors.New("the search service does not answer as SearXNG does")
	}
	if err != nil {
		return o, fmt.Errorf("search: %w", unfetched(ctx, err))
	}
	found := reply.Results[:min(len(reply.Results), maxHits)]
	o.Text = fmt.Sprintf("%d results", len(found))
	for i, r := range found {
		excerpt := permissions.Brief(spaces(strings.TrimSpace(r.Content)), 500)
		o.Text += fmt.Sprintf("\n\n%d. %s\n%s\n%s", i+1, spaces(cmp.Or(r.Title, r.URL)), r.URL, excerpt)
	}
	if in.Pause {
		o.Pause = o.Text
	}
	return o, nil
}
