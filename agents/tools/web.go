package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/acts"
)

// fetchURL fetches a page. It checks every address at the moment of the connection, whatever a name resolves to.
type fetchURL struct {
	resolver *net.Resolver // nil: the system's
}

type fetchInput struct {
	URL   string `json:"url" need:"yes" size:"1.." say:"http or https, without a name and password"`
	Pause bool   `json:"pause" default:"false" say:"show people the result, and go on when they say so"`
}

// Limits of a fetch.
const (
	fetchTime    = 30 * time.Second
	maxFetched   = 5 << 20
	maxRedirects = 5
)

func (fetchURL) spec() models.Tool {
	return models.Tool{Name: "fetch_url", Description: "Fetch a page by GET, as text; of HTML, what is " +
		"to be read. Text alone, at most 5 MiB and 30 seconds; no private addresses. People are asked for the network."}
}

func (fetchURL) plan(_ context.Context, p Workspace, in fetchInput) (Plan, error) {
	_, err := in.parse()
	return Plan{Needs: p.missing(permissions.Network)}, err
}

func (in fetchInput) parse() (*url.URL, error) {
	u, err := url.Parse(in.URL)
	if err != nil {
		return nil, errors.New("that is no URL") // url.Parse's error contains the whole URL
	}
	return u, fetchable(u)
}

// fetchable refuses URLs with another scheme, or with a secret that would be logged.
func fetchable(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not http or https", u.Scheme)
	case u.User != nil:
		return errors.New("a URL must not hold a name or password")
	case u.Hostname() == "":
		return errors.New("the URL names no host")
	}
	return nil
}

func (t fetchURL) run(ctx context.Context, p Workspace, in fetchInput, _ Plan) (Outcome, error) {
	u, err := in.parse()
	if err == nil {
		err = p.requireTags(permissions.Network)
	}
	if err != nil {
		return Outcome{}, err
	}
	ctx, stop := context.WithTimeout(ctx, fetchTime)
	defer stop()
	end, status, text, err := fetched(ctx, t.client(p.AllowPrivate), u)
	if err != nil {
		return Outcome{}, fmt.Errorf("fetch %s: %w", u.Host, fetchError(ctx, err))
	}
	withoutSecrets := (&url.URL{Scheme: end.Scheme, Host: end.Host, Path: end.Path}).String()
	var whole headTail
	_, _ = io.WriteString(&whole, text)
	o := Outcome{
		Text:  fmt.Sprintf("%s\n%d %s\n\n%s", withoutSecrets, status, http.StatusText(status), whole.cut(maxTold)),
		Error: status >= http.StatusBadRequest, Artifacts: []agents.Artifact{whole.artifact(agents.ArtifactStdout)},
	}
	if in.Pause {
		o.Pause = o.Text
	}
	return o, nil
}

// fetchError is a client error in plain words, without the URL, which may contain a secret.
func fetchError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it did not answer in %d s", fetchTime/time.Second)
	}
	return wire.Plain(err)
}

var anywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// fetched is the readable text at a URL, after redirects.
func fetched(ctx context.Context, client *http.Client, u *url.URL) (end *url.URL, status int, text string, err error) {
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, 0, "", err
	}
	req.Header.Set("User-Agent", "daycared")
	req.Header.Set("Accept", "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1")
	res, err := client.Do(req)
	if err != nil {
		return nil, 0, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxFetched+1))
	if err == nil && len(body) > maxFetched {
		err = fmt.Errorf("it has more than %d bytes", maxFetched)
	}
	if err == nil {
		text, err = asText(res.Header.Get("Content-Type"), body)
	}
	return res.Request.URL, res.StatusCode, text, err
}

// client connects to public addresses only, whatever names and redirects say, and without a proxy.
func (t fetchURL) client(allowed []netip.Prefix) *http.Client {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second, Resolver: t.resolver,
		Control: func(_, address string, _ syscall.RawConn) error { // every address, at the connection
			a, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return reachable(a.Addr(), allowed)
		},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
			TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("it was redirected more than %d times", maxRedirects)
			}
			req.Header.Del("Referer")
			if err := fetchable(req.URL); err != nil {
				return err
			}
			from, to := via[0].URL, req.URL // what was allowed is the first host
			if host := func(u *url.URL) string { return acts.HostOf(u.Scheme + "://" + u.Host) }; host(from) != host(to) ||
				host(to) == "" || from.Scheme == "https" && to.Scheme != "https" {
				return fmt.Errorf("it redirects to another host: to read that, fetch %s://%s%.500s", to.Scheme, to.Host, to.EscapedPath())
			}
			return nil
		},
	}
}

// asText converts a response body to text, or refuses it.
func asText(contentType string, body []byte) (string, error) {
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", fmt.Errorf("its type is %.100q, which is none", contentType)
	}
	page := kind == "text/html" || kind == "application/xhtml+xml"
	if !page && !isTextual(kind) {
		return "", fmt.Errorf("it is %.100s, %d bytes, and no text", kind, len(body))
	}
	r, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err == nil {
		body, err = io.ReadAll(r)
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("read it as text: %w", err)
	case !isText(body):
		return "", fmt.Errorf("it says that it is %.100s, and is no text", kind)
	case page:
		return pageText(body)
	}
	return string(body), nil
}

func isTextual(kind string) bool {
	for _, end := range []string{"json", "xml", "yaml", "javascript", "x-sh", "toml", "x-ndjson", "graphql"} {
		if strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, end) {
			return true
		}
	}
	return strings.HasPrefix(kind, "text/") || kind == "image/svg+xml"
}

// special are the non-public ranges besides those that net/netip knows, from the registries of special-purpose addresses (RFC
// 6890). Ranges that embed an IPv4 address (6to4, Teredo, compatible, local NAT64) are refused as a whole.
var special = wire.Map([]string{
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
}, netip.MustParsePrefix)

// nat64 is how IPv6-only networks reach IPv4 (RFC 6052): the last 32 bits are the address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// reachable refuses an address that is not public, unless the operator allows it.
func reachable(a netip.Addr, allowed []netip.Prefix) error {
	meant := a.Unmap()
	if nat64.Contains(meant) {
		b := meant.As16()
		meant = netip.AddrFrom4([4]byte(b[12:]))
	}
	in := func(p netip.Prefix) bool { return p.Contains(meant) }
	if slices.ContainsFunc(allowed, in) {
		return nil
	}
	if meant.Zone() != "" || !meant.IsGlobalUnicast() || meant.IsPrivate() || slices.ContainsFunc(special, in) {
		return fmt.Errorf("%s is no public address; the operator can allow it in fetch.allow_private", a)
	}
	return nil
}

// webSearch queries the SearXNG instance that the operator configured; only that one may be private.
type webSearch struct{ fetchURL }

type webSearchInput struct {
	Query string `json:"query" need:"yes" size:"1.." say:"what to look for"`
	Pause bool   `json:"pause" default:"false" say:"show people the result, and go on when they say so"`
}

const maxHits = 10

func (webSearch) spec() models.Tool {
	return models.Tool{Name: "web_search", Description: "Search the web: titles, addresses and excerpts of " +
		"at most ten pages, to be read by fetch_url. People are asked for the network."}
}

func (webSearch) plan(_ context.Context, p Workspace, in webSearchInput) (plan Plan, err error) {
	if strings.TrimSpace(in.Query) == "" {
		err = errors.New("query is missing")
	}
	return Plan{Needs: p.missing(permissions.Network)}, err
}

func (t webSearch) run(ctx context.Context, p Workspace, in webSearchInput, _ Plan) (o Outcome, err error) {
	if err := p.requireTags(permissions.Network); err != nil {
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
		return o, fmt.Errorf("search: %w", fetchError(ctx, err))
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

// unread are elements without readable text.
var unread = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Head: true, atom.Svg: true,
	atom.Iframe: true, atom.Object: true, atom.Select: true,
}

// blocks are elements on their own lines.
var blocks = map[atom.Atom]bool{
	atom.P: true, atom.Div: true, atom.Br: true, atom.Li: true, atom.Tr: true, atom.Section: true, atom.Article: true,
	atom.Header: true, atom.Footer: true, atom.Nav: true, atom.Main: true, atom.Blockquote: true, atom.Pre: true, atom.Table: true,
	atom.Ul: true, atom.Ol: true, atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Hr: true, atom.Form: true, atom.Figure: true,
	atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true,
}

// pageText is the readable text of a page: title and body, in lines.
func pageText(page []byte) (string, error) {
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return "", fmt.Errorf("read the page: %w", err)
	}
	var text strings.Builder
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.FirstChild != nil {
			text.WriteString("# " + n.FirstChild.Data + "\n\n")
			break
		}
	}
	writeText(&text, doc, false)
	return tidy(text.String()), nil
}

// writeText writes the text below a node. The parser limits the depth.
func writeText(text *strings.Builder, n *html.Node, verbatim bool) {
	switch {
	case n.Type == html.TextNode && verbatim:
		text.WriteString(n.Data)
	case n.Type == html.TextNode:
		text.WriteString(spaces(n.Data))
	case n.Type == html.ElementNode && unread[n.DataAtom]:
		return
	case blocks[n.DataAtom]:
		text.WriteByte('\n')
	}
	if n.DataAtom == atom.Li {
		text.WriteString("- ")
	}
	for c := range n.ChildNodes() {
		writeText(text, c, verbatim || n.DataAtom == atom.Pre)
	}
	switch {
	case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
		text.WriteByte('\t')
	case n.DataAtom == atom.A:
		if to := link(n); to != "" {
			text.WriteString(" (" + to + ")")
		}
	case blocks[n.DataAtom] && n.DataAtom != atom.Br:
		text.WriteByte('\n')
	}
}

// link is the target of a link to another page.
func link(n *html.Node) string {
	for _, a := range n.Attr {
		if a.Key == "href" && (strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "https://")) {
			return a.Val
		}
	}
	return ""
}

func spaces(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	switch {
	case words == "":
		return strings.Repeat(" ", min(len(text), 1))
	case strings.TrimLeft(text, " \t\r\n") != text:
		words = " " + words
	}
	if strings.TrimRight(text, " \t\r\n") != text {
		words += " "
	}
	return words
}

// tidy removes trailing spaces and repeated empty lines.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if strings.TrimSpace(line) == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
