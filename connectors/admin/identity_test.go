package admin

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/connectors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyTheDaemonsAccountWithTheKeyIsTheOperator(t *testing.T) {
	own := os.Geteuid()
	for _, c := range []struct {
		key      Key
		uid      int
		presents string
		operator bool
	}{
		{"k3y", own, "Bearer k3y", true},
		{"k3y", 0, "Bearer k3y", true},
		{"k3y", own + 1, "Bearer k3y", false},
		{"k3y", own, "", false},
		{"k3y", own, "Bearer ", false},
		{"k3y", own, "Bearer k3z", false},
		{"k3y", own, "Bearer k3", false},
		{"k3y", own, "Bearer k3yy", false},
		{"k3y", own, "k3y", false},
		{"k3y", own, "bearer k3y", false},
		{"k3y", own, "Basic k3y", false},
		{"k3y", -1, "Bearer k3y", false},
		{"", own, "Bearer ", false},
		{"", own, "", false},
		{"", 0, "Bearer ", false},
	} {
		got := newGate(c.key).identity(c.uid, c.presents, "")
		want := connectors.Identity{Via: "web", UID: c.uid, Operator: c.operator}
		if got != want {
			t.Errorf("key %q, uid %d, %q: %+v", string(c.key), c.uid, c.presents, got)
		}
	}
}

// The key goes to its owner alone; without one, a service's account is the daemon's where only that can have put the socket.
func TestWhomAClientKnows(t *testing.T) {
	key, other := filepath.Join(t.TempDir(), "admin.key"), os.Geteuid()+1
	c := NewClient("/etc/s", key)
	if !c.knows(other, "/etc/s") || c.knows(other, filepath.Join(os.TempDir(), "none", "s")) {
		t.Error("without a key, it goes by who can have put the socket there")
	}
	if err := os.WriteFile(key, []byte("k3y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.knows(other, "/etc/s") || !c.knows(os.Geteuid(), "/etc/s") {
		t.Error("a key goes to somebody else than its owner")
	}
}

// A decision is said to come from the command line only if a command of ours made it.
func TestViaIsTheCommandLineAnInboxOrHTTP(t *testing.T) {
	for header, want := range map[string]string{"": "web", "terminal": "terminal", "telegram": "web", "web": "web", "cli": "cli"} {
		if got := newGate("").identity(1, "", header).Via; got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

func TestTheKeyDoesNotPrint(t *testing.T) {
	t.Run("G3/the operator's key", func(t *testing.T) {
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", Key("k3y"))
		if text := fmt.Sprintf("%v %+v %#v %s ", Key("k3y"), Options{Key: "k3y"}, Options{Key: "k3y"}, Key("k3y")) +
			log.String(); strings.Contains(text, "k3y") {
			t.Error(text)
		}
	})
}

func TestTheZoneIsThePersonsOrTheMachines(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for zone, want := range map[*time.Location]*time.Location{berlin: berlin, time.UTC: time.UTC, time.Local: time.Local, nil: time.Local} {
		if got := (Me{Timezone: zoneName(zone)}).Location(); got.String() != want.String() {
			t.Errorf("%s is told as %s", want, got)
		}
	}
	strange := "Atlantis/City"
	if got := (Me{Timezone: &strange}).Location(); got != time.Local {
		t.Errorf("a zone that is not known here is %s", got)
	}
}
