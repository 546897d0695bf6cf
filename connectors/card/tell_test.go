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
	today := permissions.Request{CreatedAt: away.Until.Add(-time.Hour)}
	traveller := kim
	traveller.Location = time.FixedZone("CET", 3600)
	for want, p := range map[string]connectors.Prompt{
		`f\u{202E}ay is away until Mon 30 Nov.`:                                           {To: traveller},
		`f\u{202E}ay is away until Sun 29 Nov 23:00.`:                                     {To: kim},
		`f\u{202E}ay is away until 23:00.`:                                                {To: kim, Request: today},
		`You are away until Sun 29 Nov 23:00, but too few others may decide this.`:        {To: self, Needed: true},
		`f\u{202E}ay is away until Sun 29 Nov 23:00, but too few others may decide this.`: {To: self, Group: "-1", Needed: true},
	} {
		p.Away = []permissions.Absence{away}
		if got := Others(p, i18n.English); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}

// TestWhyNobodyCouldBeAskedIsTranslated: what is ours of the stored reasons, of which there may be several, and no name.
func TestWhyNobodyCouldBeAskedIsTranslated(t *testing.T) {
	for text, want := range map[string]string{
		"fay has blocked the bot": "fay hat den Bot blockiert",
		"fay has no inbox open; fay has blocked the bot since 14:02 UTC; fay has to press Start; sam is a bot": //
		"fay hat keinen Posteingang offen; " +
			"fay hat den Bot seit 14:02 UTC blockiert; fay muss auf Start drücken; sam ist ein Bot",
		"sam never pressed Start; sam has to open the bot and press Start": "sam hat nie auf Start gedrückt; " +
			"sam muss den Bot öffnen und auf Start drücken",
		"the bot was removed from the group": "der Bot wurde aus der Gruppe entfernt",
		"fay's telegram is not switched on":  "fay: telegram ist nicht eingeschaltet",
		"sam's number is not on WhatsApp":    "die Nummer von sam ist nicht bei WhatsApp",
		"fay never pressed Start; sam has no inbox open; kim is a bot": "fay hat nie auf Start gedrückt; sam hat keinen Posteingang offen; " +
			"kim ist ein Bot",
		"too few of the people who were asked may still answer; locked: fay, sam": "zu wenige der Gefragten dürfen noch antworten; " +
			"gesperrt: fay, sam",
		"fay is locked until: daycared unlock fay": "fay ist gesperrt bis: daycared unlock fay",
		"the wire was cut; fay is a bot":           "the wire was cut; fay is a bot",
		"fay's telegram account is suspended since the store was restored: confirm it with daycared reinstate fay/telegram": //
		"Das Konto von fay " +
			"bei telegram ist ausgesetzt, seit die Datenbank wiederhergestellt wurde: bestätigen mit daycared reinstate fay/telegram",
		"fay's telegram account has changed its keys: enrol it again with daycared pair fay --via telegram": "Das Konto von fay bei telegram " +
			"hat neue Schlüssel: neu verbinden mit daycared pair fay --via telegram",
		"coder is stopped until: daycared resume coder":       "coder ist angehalten bis: daycared resume coder",
		"everything is stopped by sam until: daycared resume": "von sam ist alles angehalten bis: daycared resume",
		"fay is a bottle": "fay is a bottle",
		" is a bot":       " is a bot",
	} {
		r := permissions.Request{Kind: permissions.KindPermission, State: permissions.Undeliverable, Failure: text}
		if got := Settled(r, Options{Language: "de"}); got != "⚠ Nicht zustellbar: "+Visible(want) {
			t.Errorf("%q: %s", text, got)
		}
		if got := Settled(r, Options{}); got != "⚠ Could not be delivered: "+Visible(text) {
			t.Errorf("%q in English: %s", text, got)
		}
	}
}

// TestMasksAreTranslated, and an agent cannot write what looks like one in any language.
func TestMasksAreTranslated(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	r := permissions.Request{
		Kind: permissions.KindTool, Tool: "fetch", Input: []byte(`{"token":"` + token + `"}`), State: permissions.Pending,
		Reason: "‹Geheimnis, 40 Zeichen, sha256 0a1b2c› ‹secret, 40 characters, sha256 0a1b2c›",
	}
	for in, want := range map[i18n.Language]string{
		"": "‹secret, 40 characters, sha256 ", "de": "‹Geheimnis, 40 Zeichen, sha256 ",
	} {
		got := Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, Options{Language: in})
		if strings.Count(got, want) != 1 || strings.Contains(got, token) || strings.Count(got, "\\u{2039}") != 2 {
			t.Errorf("in %q there is no %s, or another one:\n%s", in, want, got)
		}
	}
}

// TestCallsOfAStepSayWhatTheyAreAbout: the number, the verb and the object stand in front of each, whosever tool it is; the input
// below has all of it.
func TestCallsOfAStepSayWhatTheyAreAbout(t *testing.T) {
	r := permissions.Request{Kind: permissions.KindTool, State: permissions.Pending, Calls: []permissions.Call{
		{N: 1, Tool: "mcp__jira__create_issue", Input: []byte(`{"body":"b","project":"SHOP","title":"Total is wrong"}`)},
		{N: 2, Tool: "fetch_url", Input: []byte(`{"url":"https://example.com/a"}`)},
		{N: 3, Tool: "run_command", Input: []byte(`{"command":"npm test"}`)},
		{N: 4, Tool: "mcp__x__odd", Input: []byte(`{"n":7}`)},
		{N: 5, Tool: "mcp__x__forge", Input: []byte(`{"title":"a` + "`" + `\n#9 Use safe"}`)},
	}}
	for in, want := range map[i18n.Language][]string{
		"": {
			"\n#1 Use mcp__jira__create_issue: \"Total is wrong\"\n", "\n#2 Use fetch_url: https://example.com/a\n", "\n#3 Run a command\n",
			"\n#4 Use mcp__x__odd\n", "\n#5 Use mcp__x__forge\n", "\n  title: Total is wrong\n", "\n  url: https://example.com/a\n",
		},
		"de": {"\n#1 mcp__jira__create_issue verwenden: \"Total is wrong\"\n", "\n#3 Einen Befehl ausführen\n", "\n#4 mcp__x__odd verwenden\n"},
	} {
		got := Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, Options{Language: in})
		for _, row := range want {
			if !strings.Contains(got, row) {
				t.Errorf("%q has no row %q:\n%s", in, row, got)
			}
		}
	}
}

// TestThePlanOfAnACPAgentIsOnItsCard: as its words, and what else the call has as the action.
func TestThePlanOfAnACPAgentIsOnItsCard(t *testing.T) {
	r := permissions.Request{
		Kind: permissions.KindTool, State: permissions.Pending, Tool: "acp_switch_mode", Reason: "Ready to code?",
		Input: []byte(`{"plan":"1. Look\n2. Write\nAllow once"}`), Details: "The agent offers: \"Yes\" (allow_once)",
	}
	got := Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, Options{})
	for _, row := range []string{" has a plan\n", "\nThe plan:\n│ 1. Look\n│ 2. Write\n│ Allow once\n", "\nDetails:\n│ The agent offers:"} {
		if !strings.Contains(got, row) {
			t.Errorf("there is no %q:\n%s", row, got)
		}
	}
	if strings.Contains(got, "plan:  ") || strings.Contains(got, "\n  plan") {
		t.Errorf("the plan is there twice:\n%s", got)
	}
	r.Input = []byte(`{"mode":"bypassPermissions","plan":"1. Look"}`)
	if got = Card(connectors.Prompt{Request: r, Code: "K7F3Q"}, Options{}); !strings.Contains(got, "\n  mode: bypassPermissions\n") {
		t.Errorf("the mode is left out:\n%s", got)
	}
}

// TestWhatAnAgentDidBeforeIsSaidInTheReadersLanguage, but for what is the agent's own.
func TestWhatAnAgentDidBeforeIsSaidInTheReadersLanguage(t *testing.T) {
	p := connectors.Prompt{
		Code: "K7F3Q",
		Request: permissions.Request{
			Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, State: permissions.Pending,
		},
		Recent: permissions.RecentActivity{Allowed: 2, Denied: 1, Last: []permissions.Request{
			{Kind: permissions.KindTool, Tool: "run_command", Input: []byte(`{"command":"npm test"}`), State: permissions.Approved},
			{Kind: permissions.KindPermission, Tags: []permissions.Tag{permissions.Network}, State: permissions.Denied},
			{Kind: permissions.KindTool, Tool: "ExitPlanMode", Input: []byte(`{}`), State: permissions.Approved},
		}},
	}
	for in, want := range map[i18n.Language]string{
		"":   "npm test, ⛔ network access, use ExitPlanMode",
		"de": "npm test, ⛔ Netzwerkzugriff, ExitPlanMode verwenden",
	} {
		if got := Card(p, Options{Language: in}); !strings.Contains(strings.ReplaceAll(got, `"`, ""), want) {
			t.Errorf("in %q there is no %s:\n%s", in, want, got)
		}
	}
}
