package card

import (
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

func TestWhatANoticeSays(t *testing.T) {
	waiting := []connectors.Prompt{{Code: "K7F3Q", Request: permissions.Request{
		Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network},
	}}}
	for _, c := range []struct {
		n    connectors.Notice
		want string
	}{
		{connectors.Notice{About: permissions.AboutWaiting, Waiting: waiting}, "1 request waits for your answer:\nK7F3Q"},
		{connectors.Notice{About: permissions.AboutWaiting}, ""},
		{connectors.Notice{About: permissions.AboutEnded}, "⌛ Ended: "},
		{connectors.Notice{About: permissions.AboutRevoked}, "✖ Taken back: "},
		{connectors.Notice{About: permissions.AboutStopped, By: "f\u202eay"}, `⛔ Everything was stopped by f\u{202E}ay; nothing`},
		{connectors.Notice{About: "weather"}, ""},
	} {
		got := strings.Join(Notice(c.n, Options{}), "\n")
		if !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s says %q", c.n.About, got)
		}
	}
}

// TestACardSaysWhoIsAway: until when, in the reader's time zone, and whether the others are too few.
func TestACardSaysWhoIsAway(t *testing.T) {
	const name = "f\u202eay"
	away := permissions.Absence{Person: name, Until: time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC)}
	kim, self := connectors.Person{Name: "kim"}, connectors.Person{Name: name}
	traveller := kim
	traveller.Location = time.FixedZone("CET", 3600)
	for want, p := range map[string]connectors.Prompt{
		`f\u{202E}ay is away until Mon 30 Nov.`:                                           {To: traveller},
		`f\u{202E}ay is away until Sun 29 Nov 23:00.`:                                     {To: kim},
		`You are away until Sun 29 Nov 23:00, but too few others may decide this.`:        {To: self, Needed: true},
		`f\u{202E}ay is away until Sun 29 Nov 23:00, but too few others may decide this.`: {To: self, Group: "-1", Needed: true},
	} {
		p.Away = []permissions.Absence{away}
		if got := Others(p, i18n.English); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}
