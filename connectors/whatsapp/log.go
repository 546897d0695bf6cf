package whatsapp

import (
	"fmt"
	"log/slog"

	signal "go.mau.fi/libsignal/logger"
	waLog "go.mau.fi/whatsmeow/util/log"
)

// quiet takes what the library says. All of it is for those who look for a fault: what matters is said by events, and
// the library's lines hold whose message it is, which is left out.
type quiet struct{ log *slog.Logger }

var _ waLog.Logger = quiet{}

func (q quiet) Errorf(format string, args ...any) { q.say("error", format, args) }
func (q quiet) Warnf(format string, args ...any)  { q.say("warn", format, args) }
func (q quiet) Infof(format string, args ...any)  { q.say("info", format, args) }
func (q quiet) Debugf(string, ...any)             {} // whole stanzas

// Sub is the same for a part of the library.
func (q quiet) Sub(module string) waLog.Logger { return quiet{q.log.With("module", module)} }

func (q quiet) say(level, format string, args []any) {
	q.log.Debug("whatsapp library", "level", level, "said", addresses.ReplaceAllLiteralString(fmt.Sprintf(format, args...), "…"))
}

// mute is what the Signal library writes to, which would print to the terminal.
type mute struct{}

func (mute) Debug(string, string)   {}
func (mute) Info(string, string)    {}
func (mute) Warning(string, string) {}
func (mute) Error(string, string)   {}
func (mute) Configure(string)       {}

func init() {
	signal.Logger = mute{}
}
