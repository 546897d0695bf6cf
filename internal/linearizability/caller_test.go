package linearizability_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// caller makes calls to one socket.
type caller struct {
	http  *http.Client
	clock clock
	lossy bool   // its daemon may die, or be without its store: then nobody knows what a call did
	key   string // file of the key of an admin.sock
}

func newCaller(t *testing.T, socket string, c clock) *caller {
	t.Helper()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: 256, DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{http: &http.Client{Transport: transport}, clock: c}
}

// forever is the end of a call whose end nobody saw.
const forever = math.MaxInt64

// call is one call with its result.
type call struct {
	from, to int64
	unsent   bool // nobody was there
	reply    reply
	shown    shown // path of a request
}

// shown is a request as the servers return it, as far as the model goes.
type shown struct {
	ID        string    `json:"id"`
	Code      string    `json:"code"`
	State     string    `json:"state"`
	DecidedBy string    `json:"decided_by"`
	UsedAt    time.Time `json:"used_at"`
	VoidAt    time.Time `json:"void_at"`
	Deadline  time.Time `json:"deadline"`
	Votes     []struct {
		By     string `json:"by"`
		Answer string `json:"answer"`
	} `json:"votes"`
}

func (s shown) row() row {
	r := row{state: s.State, by: s.DecidedBy, used: !s.UsedAt.IsZero(), void: !s.VoidAt.IsZero()}
	if r.void { // shown as cancelled
		r.state = approved
	}
	for _, v := range s.Votes {
		r.votes = join(r.votes, v.By+map[string]string{"allow_once": "+", "deny": "-"}[v.Answer])
	}
	return r
}

// problem is a refusal.
type problem struct {
	Code    string `json:"code"`
	Detail  string `json:"detail"`
	Request *shown `json:"request"`
}

// do makes one call. It ends without a reply after patience; 0 is forever.
func (c *caller) do(ctx context.Context, method, path string, header map[string]string, body any, patience time.Duration) call {
	if patience > 0 {
		limited, done := context.WithTimeout(ctx, patience)
		defer done()
		ctx = limited
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	if key, err := os.ReadFile(c.key); err == nil {
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	}
	made := call{from: c.clock.read(), to: forever, reply: reply{word: lost}}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() == nil && !c.lossy {
			made.reply.word = word(err.Error()) // nobody has given up
		}
		dial := new(net.OpError)
		made.unsent = errors.As(err, &dial) && dial.Op == "dial"
		return made
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return made
	}
	if c.lossy && response.StatusCode >= http.StatusInternalServerError {
		return made
	}
	made.to = c.clock.read()
	made.reply, made.shown = understand(response.StatusCode, answer)
	return made
}

// words maps refusal codes to the model's.
var words = map[string]word{
	"unknown": unknown, "not-yours": notYours, "stopped": stopped, "not-usable": noUse, "settled": settled,
	"limit": refused, "rest": refused, "ask-again": lost,
}

// ended maps a settled request's sentence to its end.
var ended = regexp.MustCompile(`^Too late: (?:already )?([a-z]+)(?: by ([a-z0-9]+))?(, and taken back)? at `)

// understand parses a reply. What no daemon should say becomes a word that the model lacks.
func understand(status int, text []byte) (reply, shown) {
	if status == http.StatusOK {
		var s shown
		if err := json.Unmarshal(text, &s); err != nil {
			return reply{word: word(err.Error())}, s
		}
		return reply{word: told, row: s.row()}, s
	}
	var p problem
	if err := json.Unmarshal(text, &p); err != nil || words[p.Code] == "" {
		return reply{word: word(text)}, shown{}
	}
	said, seen := reply{word: words[p.Code]}, shown{}
	if p.Request != nil {
		seen, said.row = *p.Request, p.Request.row()
	}
	if said.word != settled {
		return said, seen
	}
	if strings.HasPrefix(p.Detail, "Too late: the time is over.") {
		said.word = late
		return said, seen
	}
	end := ended.FindStringSubmatch(p.Detail)
	if end == nil {
		return reply{word: word("the sentence " + p.Detail), row: said.row}, seen
	}
	is := row{state: end[1], by: end[2], void: end[3] != ""}
	switch {
	case p.Request == nil:
		said.row, said.brief = is, true
	case is.state != said.row.state, is.by != "" && is.by != said.row.by, is.void != said.row.void:
		said.word = word("the sentence " + p.Detail)
	}
	return said, seen
}
