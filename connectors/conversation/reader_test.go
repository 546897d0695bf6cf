package conversation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// forgetfulDesk stores nothing, and nothing waits there.
type forgetfulDesk struct {
	Desk
	why error
}

func (d forgetfulDesk) OnMessage(context.Context, connectors.Message) error { return d.why }

func (d forgetfulDesk) OnPermission(context.Context, connectors.Decision) (permissions.Request, error) {
	return permissions.Request{}, d.why
}

func (d forgetfulDesk) Pending(context.Context, connectors.Identity, permissions.ID, int) ([]permissions.Standing, error) {
	return nil, nil
}

func (d forgetfulDesk) StopAll(context.Context, connectors.Identity) (int, error) { return 0, d.why }

func (d forgetfulDesk) Agents(context.Context, connectors.Identity) ([]permissions.Presence, error) {
	return nil, permissions.NoAgent()
}

func (d forgetfulDesk) Order(context.Context, connectors.Identity, permissions.Order, string) (string, error) {
	return "", permissions.NoAgent()
}

func (d forgetfulDesk) Grants(context.Context, connectors.Identity) ([]permissions.Grant, error) {
	return nil, nil
}

func (d forgetfulDesk) StoppedBy() string { return "" }

func over(why error) *Reader {
	return New(Options{
		Desk: forgetfulDesk{why: why}, Now: time.Now, Help: "Press a button.",
		Account: func(connectors.Identity) string { return "Your number is 7." },
	})
}

func wrote(text string) Message {
	return Message{Message: connectors.Message{Text: text, Key: "1"}, Who: connectors.Person{Name: "fay"}, At: time.Now()}
}

// What cannot be stored is no answer: the message has to come again, whatever it was.
func TestAMessageThatIsNotStoredComesAgain(t *testing.T) {
	disk := errors.New("the disk is full")
	for _, text := range []string{"hello", "yes K7F3Q", "/stop all"} {
		if did, err := over(disk).Read(t.Context(), wrote(text)); !errors.Is(err, disk) || len(did.Say) > 0 {
			t.Errorf("%s: %+v, %v", text, did, err)
		}
	}
	broken := permissions.Broken("free some space")
	if did, err := over(broken).Read(t.Context(), wrote("hello")); !errors.Is(err, broken) {
		t.Errorf("%+v, %v", did, err)
	}
}

func TestWhatIsSaid(t *testing.T) {
	for _, c := range []struct {
		why        error
		text, want string
	}{
		{permissions.NoAgent(), "hello", "nobody reads this."},
		{permissions.Unheard("helper"), "hello", "was not taken"},
		{permissions.Unknown("K7F3Q"), "yes K7F3Q", `There is no request K7F3Q.`},
		{permissions.NotYours(), "/stop all", "not yours"},
		{nil, " /stop all\n", "0 requests were cancelled"},
		{nil, "/whoami", "You are fay here. Your number is 7."},
		{nil, "/help@a_bot", "Press a button."},
		{nil, "/" + strings.Repeat("x", 99), "There is no command /" + strings.Repeat("x", 38) + "…. Press a button."},
		{nil, "/revoke", "Say which"},
		{nil, "/\u202e", `There is no command /\u{202E}.`},
	} {
		did, err := over(c.why).Read(t.Context(), wrote(c.text))
		if err != nil || len(did.Say) != 1 || !strings.Contains(did.Say[0], c.want) {
			t.Errorf("%s: %q, %v; want %q", c.text, did.Say, err, c.want)
		}
	}
}

// Ten codes of nothing mute the answers of their author for a minute, and nobody else's.
func TestGuessing(t *testing.T) {
	r := over(permissions.Unknown("x"))
	for range 10 {
		if _, err := r.Read(t.Context(), wrote("yes K7F3Q")); err != nil {
			t.Fatal(err)
		}
	}
	if did, err := r.Read(t.Context(), wrote("yes K7F3R")); err != nil || !strings.Contains(did.Say[0], "too many wrong codes") {
		t.Errorf("%q, %v", did.Say, err)
	}
	if left := r.Muted(connectors.Person{Name: "sam"}); left != 0 {
		t.Errorf("sam is muted for %s", left)
	}
}

func TestHowMuchStillWaits(t *testing.T) {
	for n, want := range map[int]string{0: "nobody reads this. /help says", 1: "One request still waits", 3: "3 requests still wait"} {
		if words := nobodyBound(n); !strings.Contains(words, want) {
			t.Errorf("%d: %q", n, words)
		}
	}
}

// Every command is known as one, and does something; what only begins as one is none.
func TestCommands(t *testing.T) {
	for _, name := range commands {
		if !IsCommand(" " + strings.ToUpper(name) + " x\n") {
			t.Errorf("%s is no command", name)
		}
		did, err := over(nil).Read(t.Context(), wrote(name))
		if err != nil || len(did.Say) != 1 || strings.Contains(did.Say[0], "There is no command") {
			t.Errorf("%s: %q, %v", name, did.Say, err)
		}
	}
	for _, other := range []string{"/", "/stops", "/srv/www", "stop", "", "// stop"} {
		if IsCommand(other) {
			t.Errorf("%q is a command", other)
		}
	}
}
