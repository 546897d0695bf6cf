package card

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
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
