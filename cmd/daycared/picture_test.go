package main

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf16"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

// redraw rewrites the documentation's pictures: go test ./cmd/daycared -run TestScripts/picture -pictures
var redraw = flag.Bool("pictures", false, "write the pictures of docs/ anew")

// pictured compares the selected card with a picture of the documentation: pictured FILE, relative to the root of this
// repository.
func pictured(ts *testscript.TestScript, c *chats, args []string) {
	drawn, file := drawCard(c.now), "../../"+args[0]
	if *redraw {
		ts.Check(os.WriteFile(file, drawn, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	ts.Check(err)
	if !bytes.Equal(drawn, want) {
		ts.Fatalf("%s is not what daycared sends; draw it anew with -pictures and look at it. It should be:\n%s", args[0], drawn)
	}
}

// everyTime lists what differs between runs, and its replacement in a picture.
var everyTime = []struct {
	what *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`(?m)^\w{5} · until [\w :]+$`), "K7F3Q · until 15:18"},
	{regexp.MustCompile(`(?m)^\S+ · /.*`), "vps · /home/fay/site"},
	{regexp.MustCompile(`uid \d+ wants`), "uid 1000 wants"},
}

// drawCard draws a message of the bot as an SVG.
func drawCard(m telegramtest.Message) []byte {
	const width, left, right, line = 560, 24, 536, 26
	formats := map[int]string{} // of rows
	at, units := 0, utf16.Encode([]rune(m.Text))
	for i, row := range strings.Split(m.Text, "\n") {
		for _, e := range m.Entities {
			if e.Offset <= at && at < e.Offset+e.Length && at < len(units) {
				formats[i] = e.Type
			}
		}
		at += len(utf16.Encode([]rune(row))) + 1
	}
	text := m.Text
	for _, e := range everyTime {
		text = e.what.ReplaceAllString(text, e.is)
	}
	rows := strings.Split(text, "\n")
	bubble := 24 + line*len(rows)
	height := 24 + bubble + 44*len(m.Keyboard) + 20
	label := "A card in Telegram: " + strings.Join(rows, "; ")
	var b bytes.Buffer
	escaped := func(text string) string {
		var out strings.Builder
		_ = xml.EscapeText(&out, []byte(text)) // a Builder cannot fail
		return out.String()
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="sans-serif" font-size="15" role="img" aria-label="%[3]s">`+"\n",
		width, height, escaped(label))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#c9d8c5"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<rect x="%d" y="24" width="%d" height="%d" rx="12" fill="#ffffff"/>`+"\n", left, right-left, bubble)
	for i, row := range rows {
		x, style := 42, ""
		switch formats[i] {
		case "bold":
			style = ` font-weight="bold"`
		case "pre", "blockquote", "expandable_blockquote":
			x = 54
			fmt.Fprintf(&b, `<rect x="42" y="%d" width="476" height="%d" fill="#eaf1f8"/>`+
				`<rect x="42" y="%[1]d" width="4" height="%[2]d" fill="#2a6fb0"/>`+"\n", 36+line*i, line)
			if formats[i] == "pre" {
				style = ` font-family="ui-monospace, Menlo, Consolas, monospace"`
			}
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#1a1a1a" xml:space="preserve"%s>%s</text>`+"\n", x, 54+line*i, style, escaped(row))
	}
	for i, row := range m.Keyboard {
		wide := (right - left - 8*(len(row)-1)) / len(row)
		for k, button := range row {
			color := map[string]string{"success": "#3f9b4f", "danger": "#c0483f", "": "#6d8799"}[button.Style]
			x, y := left+k*(wide+8), 24+bubble+8+44*i
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="36" rx="8" fill="%s"/>`+
				`<text x="%d" y="%d" text-anchor="middle" fill="#fff" font-family="sans-serif">%s</text>`+"\n",
				x, y, wide, color, x+wide/2, y+23, escaped(button.Text))
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
