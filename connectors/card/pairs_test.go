package card_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

const (
	pairs    = 400_000
	perBase  = 50 // requests that differ from one in one small thing
	pairSeed = 20261121
)

// TestNoTwoRequestsRenderAlike compares the cards of 400,000 pairs of requests that differ in one small thing, as
// somebody sees them: without space at the ends of rows (of two ways to write one letter, [card.Visible] keeps only one).
// The digest on the card is always the same, so the difference is in what else it says.
func TestNoTwoRequestsRenderAlike(t *testing.T) {
	t.Logf("seed %d", pairSeed)
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // cards are short-lived
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	failed := make(chan string, workers)
	begun := time.Now()
	for w := range workers {
		group.Go(func() {
			g := pairing{rand.New(rand.NewPCG(pairSeed, uint64(w)))}
			for range pairs / perBase / workers {
				if bad := g.compare(); bad != "" {
					failed <- bad
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	for bad := range failed {
		t.Error(bad)
	}
	t.Logf("%d pairs in %s", pairs, time.Since(begun))
}

type pairing struct{ *rand.Rand }

// compare renders one request and as many that are nearly it.
func (g pairing) compare() string {
	base := g.request()
	width := []int{0, 24 + g.IntN(16), 60}[g.IntN(3)]
	look, digest := seen(base, width), identity(base)
	for n := 0; n < perBase; {
		other, what := copied(base), ""
		what = g.mutate(&other)
		if identity(other) == digest {
			continue
		}
		n++
		if seen(other, width) == look {
			return fmt.Sprintf("%s was changed, and it looks the same at %d:\n%s\n%#v\n%#v", what, width, look, base, other)
		}
	}
	return ""
}

// seen is what a person sees of a card.
func seen(r permissions.Request, width int) string {
	text := card.Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, card.Options{Width: width, Now: now})
	if strings.Contains(text, " \n") {
		rows := strings.Split(text, "\n")
		for i, row := range rows {
			rows[i] = strings.TrimRight(row, " ")
		}
		text = strings.Join(rows, "\n")
	}
	return text
}

// kin is what makes a request the one that it is, beyond what its digest covers.
type kin struct {
	permissions.Digest
	highRisk, waited bool
	quorum           int
}

func identity(r permissions.Request) kin {
	return kin{permissions.ComputeDigest(r), r.HighRisk, r.LeftAt.IsZero(), r.Quorum}
}

func copied(r permissions.Request) permissions.Request {
	r.Tags, r.Calls, r.EnvNames, r.Choices = slices.Clone(r.Tags), slices.Clone(r.Calls), slices.Clone(r.EnvNames), slices.Clone(r.Choices)
	return r
}

var pieces = []string{
	"a", "b", "x y", " ", "  ", "         ", "\n", "\t", "\r", "\u00a0", "\u200b", "\u202e", "\u0301", "e\u0301", "é", "漢", "ab/c", "-", ".",
	",", `"`, `'`, `\`, `\u{202E}`, "⟨9 spaces⟩", "⟨1 space⟩", "‹secret, 40 characters, sha256 1a2b3c›", "┃ ", "│ ", "┊ ", "✅", "#1", "1  ",
	"\nit says      │ x", "until", ", affecting ", " with ", "· values ", "\u1112\u1161", "K", "\u212a", "\ufeff", "\U000e0041", "\ufffd",
	"word word ",
}

func (g pairing) text() (text string) {
	for range g.IntN(4) {
		text += pieces[g.IntN(len(pieces))]
	}
	return text
}

func (g pairing) texts(most int) (all []string) {
	for range g.IntN(most) {
		all = append(all, g.text())
	}
	return all
}

func (g pairing) raw() json.RawMessage {
	raw, err := permissions.CanonicalJSON(object([][]string{
		{"command", g.text()}, {"content", g.text(), "path", g.text()}, {g.text(), g.text()},
	}[g.IntN(3)]...))
	if err != nil {
		panic(err)
	}
	return raw
}

func (g pairing) tool() string {
	return []string{"run_command", "bash", "sh", "write_file", "x y", "a", "b", `q"`, "é"}[g.IntN(9)]
}

func (g pairing) tag() permissions.Tag {
	path := "/" + []string{"a", "b", "a b", "a/b", "漢", "é", "\u202e"}[g.IntN(7)]
	return []permissions.Tag{
		permissions.Network, permissions.Workspace, permissions.Events, tag("@read:" + path), tag("@write:" + path),
	}[g.IntN(5)]
}

func (g pairing) tags() (all []permissions.Tag) {
	for range g.IntN(4) {
		if t := g.tag(); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

func (g pairing) call(n int) permissions.Call {
	return permissions.Call{N: n, Tool: g.tool(), Input: g.raw(), AffectedPath: g.text()}
}

// request is one of any kind, with something in every field.
func (g pairing) request() permissions.Request {
	r := request([]permissions.Kind{
		permissions.KindPermission, permissions.KindTool, permissions.KindPause, permissions.KindClarification,
	}[g.IntN(4)], nil)
	r.Agent, r.Claimed, r.Host, r.Cwd, r.Reason, r.Details = g.text(), true, g.text(), g.text(), g.text(), g.text()
	r.Message, r.EnvNames, r.EnvHash, r.HighRisk, r.Quorum = g.text(), g.texts(4), g.text(), g.IntN(2) == 0, 1+g.IntN(3)
	switch r.Kind {
	case permissions.KindPermission:
		r.Tags = append(g.tags(), tag("@read:/always"))
	case permissions.KindTool:
		r.Tags = g.tags()
		if g.IntN(2) == 0 {
			c := g.call(1)
			r.Tool, r.Input, r.AffectedPath = c.Tool, c.Input, c.AffectedPath
			break
		}
		for n := range 1 + g.IntN(3) {
			r.Calls = append(r.Calls, g.call(n+1))
		}
	case permissions.KindPause:
		r.Mode, r.Message = permissions.ModeContinue, "m"+r.Message
	case permissions.KindClarification:
		r.Message, r.Choices = "m"+r.Message, append(g.texts(4), "always")
	}
	return r
}

// mutate changes one small thing and says which.
func (g pairing) mutate(r *permissions.Request) string {
	texts := map[int]*string{0: &r.Agent, 1: &r.Host, 2: &r.Cwd, 3: &r.Reason, 4: &r.Message, 5: &r.Details, 6: &r.EnvHash}
	names := []string{"agent", "host", "folder", "reason", "message", "details", "hash"}
	a, b := g.IntN(len(names)), g.IntN(len(names))
	switch g.IntN(8) {
	case 0, 1, 2:
		*texts[a] = g.edited(*texts[a])
		return names[a]
	case 3: // the boundary between two fields moves
		s := *texts[a]
		if _, size := utf8.DecodeLastRuneInString(s); a != b && size > 0 {
			*texts[a], *texts[b] = s[:len(s)-size], s[len(s)-size:]+*texts[b]
		}
		return names[a] + " to " + names[b]
	case 4:
		return g.list(&r.EnvNames, "variables")
	case 5:
		if r.Kind == permissions.KindClarification {
			return g.list(&r.Choices, "options")
		}
		if r.Kind == permissions.KindPause {
			r.Mode = permissions.ModeConfirm
			return "mode"
		}
		return g.mutateTags(r)
	case 6:
		if r.Kind == permissions.KindTool {
			return g.mutateCalls(r)
		}
	}
	switch g.IntN(4) {
	case 0:
		r.HighRisk = !r.HighRisk
		return "high risk"
	case 1:
		r.Quorum = 1 + r.Quorum%3
		return "quorum"
	case 2:
		r.LeftAt = now
		return "nobody waits"
	}
	r.Claimed = r.Agent == "" // of nobody's name it makes no difference
	return "claimed"
}

// edited is s with one small thing changed.
func (g pairing) edited(s string) string {
	runes := []rune(s)
	at := g.IntN(len(runes) + 1)
	piece := []rune(pieces[g.IntN(len(pieces))])
	switch g.IntN(4) {
	case 0:
		if at < len(runes) {
			return string(slices.Delete(runes, at, at+1))
		}
	case 1:
		if at+1 < len(runes) {
			runes[at], runes[at+1] = runes[at+1], runes[at]
			return string(runes)
		}
	case 2:
		if at < len(runes) {
			return string(slices.Replace(runes, at, at+1, piece...))
		}
	}
	return string(slices.Insert(runes, at, piece...))
}

// list changes one of several texts, or their order, or where one of them ends.
func (g pairing) list(all *[]string, name string) string {
	list := *all
	at := g.IntN(len(list) + 1)
	last := at+1 >= len(list)
	switch how := g.IntN(3); {
	case at == len(list):
		list = append(list, g.text())
	case how == 0 && !last:
		list[at], list[at+1] = list[at+1], list[at]
	case how == 1 && !last:
		list[at] += []string{" ", `" "`}[g.IntN(2)] + list[at+1]
		list = slices.Delete(list, at+1, at+2)
	default:
		list[at] = g.edited(list[at])
	}
	*all = list
	return name
}

func (g pairing) mutateTags(r *permissions.Request) string {
	at := g.IntN(len(r.Tags) + 1)
	switch {
	case at == len(r.Tags):
		if t := g.tag(); !slices.Contains(r.Tags, t) {
			r.Tags = append(r.Tags, t)
		}
	case at+1 < len(r.Tags):
		r.Tags[at], r.Tags[at+1] = r.Tags[at+1], r.Tags[at]
	case len(r.Tags) > 1:
		r.Tags = r.Tags[:at]
	}
	return "tags"
}

func (g pairing) mutateCalls(r *permissions.Request) string {
	if len(r.Calls) == 0 {
		switch g.IntN(3) {
		case 0:
			r.Tool = g.tool()
		case 1:
			r.Input = g.raw()
		default:
			r.AffectedPath = g.edited(r.AffectedPath)
		}
		return "call"
	}
	c := &r.Calls[g.IntN(len(r.Calls))]
	switch g.IntN(5) {
	case 0:
		c.Tool = g.tool()
	case 1:
		c.Input = g.raw()
	case 2:
		c.AffectedPath = g.edited(c.AffectedPath)
	case 3:
		last := len(r.Calls) - 1
		r.Calls[0], r.Calls[last] = r.Calls[last], r.Calls[0]
		r.Calls[0].N, r.Calls[last].N = 1, last+1
	default:
		r.Calls = append(r.Calls, g.call(len(r.Calls)+1))
	}
	return "calls"
}
