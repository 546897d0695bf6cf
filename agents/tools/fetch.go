package tools

import (
	"bytes"
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

	"golang.org/x/net/html/charset"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/schema"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// fetchURL fetches a page. Whatever a name resolves to, the address is looked at when it is connected to.
type fetchURL struct {
	resolver *net.Resolver // nil: the system's
}

type fetching struct {
	URL   string `json:"url" need:"yes" size:"1.." say:"http or https, without a name and password"`
	Pause bool   `json:"pause" default:"false" say:"show people the result, and go on when they say so"`
}

// What a fetch may take.
const (
	fetchTime    = 30 * time.Second
	maxFetched   = 5 << 20
	maxRedirects = 5
)

func (fetchURL) Spec() models.Tool {
	return models.Tool{Name: "fetch_url", Schema: schema.Of[fetching](), Description: "Fetch a page by GET, as text; of HTML, what is " +
		"to be read. Text alone, at most 5 MiB and 30 seconds; no private addresses. People are asked for the network."}
}

func (fetchURL) Plan(_ context.Context, p Place, input json.RawMessage) (Plan, error) {
	in, err := decode[fetching]("fetch_url", input)
	if err != nil {
		return Plan{}, err
	}
	if _, err := in.parse(); err != nil {
		return Plan{}, err
	}
	return Plan{Needs: p.missing(permissions.Network)}, nil
}

func (in fetching) parse() (*url.URL, error) {
	u, err := url.Parse(in.URL)
	if err != nil {
		return nil, errors.New("that is no URL") // an error of url.Parse holds the whole of it
	}
	return u, fetchable(u)
}

// fetchable refuses what is fetched in another way, or with a secret that would be in what is logged.
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

func (t fetchURL) Run(ctx context.Context, p Place, input json.RawMessage, _ Plan) Outcome {
	in, err := decode[fetching]("fetch_url", input)
	if err != nil {
		return failed(err)
	}
	u, err := in.parse()
	if err == nil {
		err = p.mustHold([]permissions.Tag{permissions.Network})
	}
	if err != nil {
		return failed(err)
	}
	ctx, stop := context.WithTimeout(ctx, fetchTime)
	defer stop()
	o, err := t.fetch(ctx, u, p.AllowPrivate)
	if err != nil {
		return failed(fmt.Errorf("fetch %s: %w", u.Host, unfetched(ctx, err)))
	}
	if in.Pause {
		o.Pause = o.Text
	}
	return o
}

// unfetched is an error of the client in plain words, and without the URL, which may hold a secret.
func unfetched(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it did not answer in %d s", fetchTime/time.Second)
	}
	return wire.Plain(err)
}

func (t fetchURL) fetch(ctx context.Context, u *url.URL, allowed []netip.Prefix) (o Outcome, err error) {
	end, status, text, err := fetched(ctx, t.client(allowed), u)
	if err != nil {
		return o, err
	}
	var whole ends
	_, _ = io.WriteString(&whole, text)
	o.Text = fmt.Sprintf("%s\n%d %s\n\n%s", where(end), status, http.StatusText(status), whole.cut(maxTold))
	o.Error = status >= http.StatusBadRequest
	o.Artifacts = []agents.Artifact{whole.artifact(agents.ArtifactStdout)}
	return o, nil
}

// anywhere are all addresses.
var anywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// fetched is what is to be read at an address, or where that leads in the end.
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

// where is what was fetched in the end, without what may be a secret in it.
func where(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// client connects to public addresses, whatever names and redirects say, and by no proxy.
func (t fetchURL) client(allowed []netip.Prefix) *http.Client {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second, Resolver: t.resolver,
		Control: func(_, address string, _ syscall.RawConn) error { // every address, as it is connected to
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
			return fetchable(req.URL)
		},
	}
}

// asText makes text of what was fetched, or refuses it.
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

// special are the ranges that are nobody's public address, besides those that net/netip knows, from the registries of
// special-purpose addresses (RFC 6890). What holds an IPv4 address in a way of its own (6to4, Teredo, compatible, local
// NAT64) is refused as a whole.
var special = wire.Each([]string{
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
}, netip.MustParsePrefix)

// nat64 is where networks without IPv4 have all of it (RFC 6052): the last 32 bits are the address that is meant.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// reachable refuses an address that is not public, unless it is among those that the operator allows.
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
