package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// gallery is the folder to which the scripts write what people see, for tools/gallery to draw: make gallery.
var gallery = flag.String("gallery", "", "write the messages of the scripts to this folder")

// galleryMessage is what a person sees of daycared, as tools/gallery reads it.
type galleryMessage struct {
	Channel  string                  `json:"channel"` // telegram, whatsapp or terminal
	Name     string                  `json:"name"`    // of the picture
	Text     string                  `json:"text"`    // with the codes of a terminal, or WhatsApp's marks
	Entities []telegramtest.Entity   `json:"entities,omitempty"`
	Keyboard [][]telegramtest.Button `json:"keyboard,omitempty"`
	File     string                  `json:"file,omitempty"`
	FileType string                  `json:"file_type,omitempty"`
}

// galleryCommands are the commands of scripts that keep what is seen:
//
//	draws NAME telegram|whatsapp     the message of the bot, or of daycared, that is meant
//	draws NAME terminal ACTOR        what an actor printed since it was last drawn; as - it is not kept
//	drawn N                          at least so many were drawn, each under a name of its own
func galleryCommands() scriptCommands {
	return scriptCommands{"draws": draws, "drawn": drawn}
}

type galleryKey struct{}

// galleryKept is what a script has drawn.
type galleryKept struct {
	names map[string]bool
	read  map[string]int // bytes of each actor's output
}

func drawn(ts *testscript.TestScript, neg bool, args []string) {
	kept, _ := ts.Value(galleryKey{}).(*galleryKept)
	if neg || len(args) != 1 {
		ts.Fatalf("usage: drawn N")
	}
	least, err := strconv.Atoi(args[0])
	ts.Check(err)
	if len(kept.names) < least {
		ts.Fatalf("%d were drawn, not %d", len(kept.names), least)
	}
}

func draws(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || (args[1] == "terminal") != (len(args) == 3) {
		ts.Fatalf("usage: draws NAME telegram|whatsapp, or draws NAME terminal ACTOR")
	}
	kept, _ := ts.Value(galleryKey{}).(*galleryKept)
	if kept.names[args[0]] {
		ts.Fatalf("%s was drawn before", args[0])
	}
	kept.names[args[0]] = true
	m := galleryMessage{Channel: args[1], Name: args[0]}
	switch m.Channel {
	case "telegram":
		now := chatsOf(ts).now
		m.Text, m.Entities, m.Keyboard = now.Text, now.Entities, now.Keyboard
		if now.Document != nil {
			m.File, m.FileType = now.Document.Name, now.Document.MIME
		}
	case "whatsapp":
		mobiles, _ := ts.Value(mobilesKey{}).(*mobiles)
		m.Text = mobiles.now.Text
		if mobiles.now.Document != nil {
			m.File, m.FileType = mobiles.now.Document.Name, mobiles.now.Document.MIME
		}
	case "terminal":
		a, known := cast(ts)[args[2]]
		if !known {
			ts.Fatalf("nobody is called %s", args[2])
		}
		a.mu.Lock()
		m.Text = string(a.said[kept.read[args[2]]:])
		kept.read[args[2]] = len(a.said)
		a.mu.Unlock()
	default:
		ts.Fatalf("there is no channel %q", m.Channel)
	}
	if m.Text == "" && m.File == "" {
		ts.Fatalf("nothing is seen")
	}
	if delete(kept.names, "-"); *gallery == "" || m.Name == "-" {
		return
	}
	m.replace(ts.Getenv("WORK"), "/home/fay")
	text, err := json.MarshalIndent(m, "", "\t")
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(*gallery, m.Channel+"-"+m.Name+".json"), text, 0o600))
}

// replace puts a short path for the script's folder, which is long and differs between runs.
func (m *galleryMessage) replace(path, by string) {
	for {
		at := strings.Index(m.Text, path)
		if at < 0 {
			return
		}
		start, shorter := len(utf16.Encode([]rune(m.Text[:at]))), len(path)-len(by)
		for i := range m.Entities {
			switch e := &m.Entities[i]; {
			case e.Offset > start:
				e.Offset -= shorter
			case e.Offset+e.Length > start:
				e.Length -= shorter
			}
		}
		m.Text = m.Text[:at] + by + m.Text[at+len(path):]
	}
}
