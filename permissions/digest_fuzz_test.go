package permissions

import (
	"strings"
	"testing"
)

// FuzzDigest: two requests have the same digest exactly if they agree in everything it covers. Each is built by cutting
// a text into fields, so that bytes move from one field to the next.
func FuzzDigest(f *testing.F) {
	for _, pair := range [][2]string{
		{"", ""}, {"a", "a"}, {"ab|", "a|b"}, {"||a", "|a|"}, {"a\x00|b", "a|\x00b"},
		{"\x00\x00\x00\x00\x00\x00\x00\x01a|", "a|"}, {"|||||||||||||||a;b", "|||||||||||||||ab"},
		{"|||||||||||||||;", "|||||||||||||||"}, {"||||||||||||||||;a", "||||||||||||||||a"},
		{"|||||||||||||||||a,b,c", "|||||||||||||||||a,bc,"}, {"|||||||||||||||||a,b,c;d", "|||||||||||||||||a,b,c;d,,"},
		{"\xff", "\ufffd"}, {"é", "e\u0301"},
	} {
		f.Add(pair[0], pair[1], true, true)
		f.Add(pair[0], pair[1], false, true)
	}
	f.Fuzz(func(t *testing.T, one, two string, oneClaims, twoClaims bool) {
		a, b := cutUp(one, oneClaims), cutUp(two, twoClaims)
		if same := plain(a) == plain(b); same != (ComputeDigest(a) == ComputeDigest(b)) {
			t.Errorf("the same: %v, digests %s and %s\n%+v\n%+v", same, ComputeDigest(a), ComputeDigest(b), a, b)
		}
		for i, c := range a.Calls {
			for j, d := range b.Calls {
				same := a.Host == b.Host && a.Cwd == b.Cwd && a.EnvHash == b.EnvHash && quoted(a.EnvNames) == quoted(b.EnvNames) &&
					c.Tool == d.Tool && string(c.Input) == string(d.Input) && c.AffectedPath == d.AffectedPath &&
					detailsOf(a) == detailsOf(b)
				if same != (CallDigest(a, c) == CallDigest(b, d)) {
					t.Errorf("calls %d and %d: the same: %v\n%+v\n%+v", i, j, same, a, b)
				}
			}
		}
	})
}

// detailsOf is what else belongs to a call.
func detailsOf(r Request) [2]string {
	if r.Caller.IsOurs() {
		return [2]string{}
	}
	return [2]string{r.Details, r.Message}
}

func quoted(texts []string) string {
	var b strings.Builder
	quote(&b, texts)
	return b.String()
}

// cutUp builds a request from a text: | ends a field, ; an element of one, and a comma a part of a call.
func cutUp(text string, claimed bool) Request {
	fields := strings.SplitN(text, "|", 18)
	next := func() (field string) {
		if len(fields) > 0 {
			field, fields = fields[0], fields[1:]
		}
		return field
	}
	list := func() []string {
		if field := next(); field != "" {
			return strings.Split(field, ";")
		}
		return nil
	}
	r := Request{
		Version: DigestVersion, Claimed: claimed, Widest: Once,
		Caller: Caller{Name: next()}, Session: next(), Kind: Kind(next()), Mode: Mode(next()), Tool: next(), Input: []byte(next()),
		AffectedPath: next(), Host: next(), Cwd: next(), EnvHash: next(), Agent: next(), Message: next(), Details: next(),
		Reason: next(), Folder: next(),
	}
	for _, text := range list() {
		if t, err := ParseTag(text); err == nil {
			r.Tags = append(r.Tags, t)
		}
	}
	r.EnvNames, r.Choices = list(), list()
	for i, text := range list() {
		parts := append(strings.SplitN(text, ",", 3), "", "")
		r.Calls = append(r.Calls, Call{N: i + 1, Tool: parts[0], Input: []byte(parts[1]), AffectedPath: parts[2]})
	}
	return r
}
