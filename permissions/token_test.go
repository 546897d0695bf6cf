package permissions

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestASecretIsKnownByItsHashAndDoesNotPrint(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	ha, ok := a.Hash()
	hb, _ := b.Hash()
	if !ok || ha == hb || !strings.HasPrefix(string(a), "dcd_a_") || len(a) != len("dcd_a_")+43 {
		t.Fatalf("two secrets of %d characters", len(a))
	}
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", a)
	fmt.Fprintf(&out, "%v %s %#v %+v", a, a, a, struct{ S Secret }{a})
	if strings.Contains(out.String(), string(a)[6:]) {
		t.Errorf("it prints: %s", out.String())
	}
	for _, odd := range []Secret{"", "dcd_a_", a[6:], a + "A", a[:len(a)-1], "dcd_b_" + a[6:], Secret(strings.ToUpper(string(a)))} {
		t.Run("G2/"+string(odd), func(t *testing.T) {
			if _, ok := odd.Hash(); ok {
				t.Errorf("%q counts as a secret", string(odd))
			}
		})
	}
}

func TestATokenIsValidForItsTime(t *testing.T) {
	for _, c := range []struct {
		name  string
		token Token
		at    time.Time
		want  bool
	}{
		{"without an end", Token{CreatedAt: noon}, dusk, true},
		{"before it was made", Token{CreatedAt: dusk}, noon, false},
		{"before its end", Token{CreatedAt: noon, ExpiresAt: dusk}, dusk.Add(-1), true},
		{"at its end", Token{CreatedAt: noon, ExpiresAt: dusk}, dusk, false},
		{"revoked", Token{CreatedAt: noon, RevokedAt: noon}, dusk, false},
	} {
		t.Run("G2/"+c.name, func(t *testing.T) {
			if got := c.token.Valid(c.at); got != c.want {
				t.Errorf("%s: %v", c.name, got)
			}
		})
	}
	if c := (Token{Name: "deploy"}).Caller(1000); c.Name != "token:deploy" || c.ProvenName() != "deploy" || !c.CameFrom(1000) {
		t.Errorf("asks as %+v", c)
	}
}

func TestTheNameOfAToken(t *testing.T) {
	for _, name := range []string{"deploy", "deploy-1", "ci.main_2", "09AZaz", strings.Repeat("a", 64)} {
		if err := CheckTokenName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "a:b", "a b", "ä", "*", "uid/1", "a@b", "[a]", "`a", "a{", strings.Repeat("a", 65)} {
		if CheckTokenName(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestWhoSeesWhatHappens(t *testing.T) {
	mine := Event{Asked: []string{"fay"}}
	mine.Request = "1"
	if !mine.VisibleTo("fay") || mine.VisibleTo("sam") || !(Event{}).VisibleTo("sam") {
		t.Error("a person sees what was put to them, and what is everybody's")
	}
	inSession := func(request ID, detail map[string]string) Event {
		return Event{Asked: []string{"fay"}, Entry: Entry{Record: Record{Request: request, Detail: detail}}}.WithSession()
	}
	sams := map[string]string{"session": "s-1", "person": "sam"}
	for _, h := range []Event{inSession("1", sams), inSession("", sams)} {
		if h.VisibleTo("fay") || !h.VisibleTo("sam") || h.Session != "s-1" {
			t.Errorf("what a session does is seen by its person: %+v", h)
		}
	}
	if inSession("", map[string]string{"session": "s-1"}).VisibleTo("sam") || inSession("1", nil).Session != "" {
		t.Error("what is nobody's session is everybody's")
	}
	if !DialogRequested.HasRequestText() || RequestSettled.HasRequestText() {
		t.Error("which events are told in words")
	}
	seen := map[Type]bool{}
	for _, kind := range EventTypes() {
		if seen[kind] || kind == DecisionRefused || kind == TokenCreated {
			t.Errorf("%s is told twice, or is nobody's event", kind)
		}
		seen[kind] = true
	}
}

func TestNoTwoCopiesHaveTheSameButton(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		b := NewButton()
		if len(b) != 22 || seen[b] {
			t.Fatalf("%q of %d", b, len(seen))
		}
		seen[b] = true
	}
}
