package telegram

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// TestGermanCards: heading, last row and buttons are German, the agent's words are not touched, and the data of the buttons is that of an
// English card, so that it answers whatever the language is by then.
func TestGermanCards(t *testing.T) {
	p := prompt(t, permissions.KindTool, func(r *permissions.Request) { r.Reason = "to run a command" })
	english := show(p, noon)
	p.To.Language = "de"
	german := show(p, noon)
	first, _, _ := strings.Cut(german.Text, "\n")
	if !strings.Contains(first, " möchte ") || !strings.Contains(german.Text, " · bis ") ||
		!strings.Contains(german.Text, "to run a command") {
		t.Errorf("the German card is\n%s", german.Text)
	}
	var labels []string
	for i, row := range german.Keyboard.Rows {
		for j, key := range row {
			labels = append(labels, key.Text)
			if same := english.Keyboard.Rows[i][j]; same.Data != key.Data || same.Style != key.Style {
				t.Errorf("%+v is %+v in English", key, same)
			}
		}
	}
	if all := strings.Join(labels, " | "); !strings.HasPrefix(all, "✅ Einmal erlauben | ⛔ Ablehnen | ✏️ Mit Begründung") {
		t.Errorf("the buttons are %s", all)
	}
	for _, key := range keysMore(p).Rows {
		if strings.Contains(key[0].Text, "Allow") || strings.Contains(key[0].Text, "Back") {
			t.Errorf("a button is %q", key[0].Text)
		}
	}
	if code := codeOfCard(german.Text); code != p.Code {
		t.Errorf("a reply to the German card names %q; want %q", code, p.Code)
	}
}

// TestTheLanguageOfTheApp: without a configured language a person's app decides, as it said last, also for cards after a restart, and a
// configured one is above it.
func TestTheLanguageOfTheApp(t *testing.T) {
	s := newEnv(t)
	fay := s.server.Person(telegramtest.User{ID: ids["fay"], FirstName: "fay", LanguageCode: "de-AT"})
	fay.Writes("/whoami")
	s.told("fay", "Hier als fay bekannt.")
	if p, err := s.Person(identity(ids["fay"])); err != nil || p.Language != "de" {
		t.Errorf("fay reads %q, %v; want de", p.Language, err)
	}
	s.stop()
	s.open()
	s.ask(network("after a restart"))
	s.card("fay", "möchte Netzwerkzugriff\nafter a restart")
	sam := identity(ids["sam"])
	sam.Language = "xx"
	if p, err := s.Person(sam); err != nil || p.Language != "" || i18n.Language("").Text("once") != "once" {
		t.Errorf("sam reads %q, %v; want what has no language of ours", p.Language, err)
	}
}
