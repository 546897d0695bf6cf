// Command gallery draws the messages that the scripts of cmd/daycared keep (make gallery): a page with all of them, and
// with Chromium a picture of each at the width of a phone, light and dark.
//
//	gallery [-only REGEXP] FOLDER    reads FOLDER/*.json, writes FOLDER/index.html and FOLDER/NAME.png, NAME-dark.png
package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// message is what a person sees, as the scripts write it.
type message struct {
	Channel, Name, Text string
	Entities            []entity
	Keyboard            [][]button
	File                string
	FileType            string `json:"file_type"`
}

// entity is Telegram's: offset and length count UTF-16 code units.
type entity struct {
	Type, Language, URL string
	Offset, Length      int
}

type button struct{ Text, Style string }

//go:embed page.html
var page string

func main() {
	only := flag.String("only", "", "take pictures only of names that match this regular expression")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := draw(flag.Arg(0), *only); err != nil {
		fmt.Fprintln(os.Stderr, "gallery:", err)
		os.Exit(1)
	}
}

func draw(dir, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return errors.New("chromium is missing; on Debian: apt-get install chromium fonts-noto-core fonts-noto-color-emoji")
	}
	all, err := read(dir)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "index.html")) //nolint:gosec // a file of the developer's
	if err != nil {
		return err
	}
	err = template.Must(template.New("page").Parse(page)).Execute(out, all)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	full, err := filepath.Abs(out.Name())
	if err != nil {
		return err
	}
	where := "file://" + full
	text, err := run(chromium, where, "--dump-dom", "--window-size=2000,600")
	if err != nil {
		return err
	}
	heights := map[string]int{}
	for _, found := range tall.FindAllSubmatch(text, -1) {
		heights[string(found[1])], _ = strconv.Atoi(string(found[2]))
	}
	all = slices.DeleteFunc(all, func(m shown) bool { return !wanted.MatchString(m.ID) })
	for some := range slices.Chunk(all, abreast) {
		for _, theme := range []string{"", "-dark"} {
			if err := picture(chromium, where, dir, theme, some, heights); err != nil {
				return err
			}
		}
	}
	return nil
}

// abreast is how many messages are drawn side by side at a time; scale is that of a phone, in pixels.
const (
	abreast = 10
	gap     = 16
	scale   = 1.5
)

// picture draws messages side by side, and writes a file of each.
func picture(chromium, where, dir, theme string, some []shown, heights map[string]int) error {
	width, height, names := 0, 0, cmp.Or(theme, "-light")
	for _, m := range some {
		width, height, names = width+m.Width+gap, max(height, heights[m.ID]), names+","+m.ID
	}
	file := filepath.Join(dir, "abreast.png")
	defer os.Remove(file)
	size := fmt.Sprintf("--window-size=%d,%d", width, height)
	if _, err := run(chromium, where+"?"+names, size, "--screenshot="+file); err != nil {
		return err
	}
	in, err := os.Open(file) //nolint:gosec // a file of the developer's
	if err != nil {
		return err
	}
	from, err := png.Decode(in)
	if err := errors.Join(err, in.Close()); err != nil {
		return err
	}
	left := 0
	for _, m := range some {
		at := image.Rect(left, 0, left+m.Width, heights[m.ID])
		at.Min, at.Max = at.Min.Mul(3).Div(2), at.Max.Mul(3).Div(2) // by scale
		if err := shrink(from, at, filepath.Join(dir, m.ID+theme+".png")); err != nil {
			return err
		}
		left += m.Width + gap
	}
	return nil
}

// read reads the messages of a folder.
func read(dir string) ([]shown, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no messages", dir)
	}
	all := make([]shown, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the developer's
		if err != nil {
			return nil, err
		}
		var m message
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, show(m))
	}
	return all, nil
}

// tall matches a figure and its height, which the page's script writes.
var tall = regexp.MustCompile(`<figure id="([^"]+)"[^>]*data-height="(\d+)"`)

func run(chromium, url string, args ...string) ([]byte, error) {
	ctx, done := context.WithTimeout(context.Background(), 2*time.Minute)
	defer done()
	args = append(args, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--force-device-scale-factor="+fmt.Sprint(scale), url)
	out, err := exec.CommandContext(ctx, chromium, args...).Output() //nolint:gosec // the browser
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return out, nil
}

// shrink writes a part of a picture with the 64 colours that it has most of.
func shrink(from image.Image, size image.Rectangle, file string) error {
	count := map[color.Color]int{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[from.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	to := image.NewPaletted(size, colors[:min(64, len(colors))])
	nearest := map[color.Color]uint8{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			c := from.At(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(to.Palette.Index(c))
				nearest[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	out, err := os.Create(file) //nolint:gosec // a file of the developer's
	if err != nil {
		return err
	}
	return errors.Join((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(out, to), out.Close())
}

// shown is a message as the page has it.
type shown struct {
	ID, Channel string
	Width       int // pixels
	Body        template.HTML
	File        string
	Keyboard    [][]button
}

func show(m message) shown {
	s := shown{ID: m.Channel + "-" + m.Name, Channel: m.Channel, Width: 390, Keyboard: m.Keyboard}
	if m.File != "" {
		s.File = m.File + " · " + m.FileType
	}
	switch m.Channel {
	case "telegram":
		s.Body = telegram(m.Text, m.Entities)
	case "whatsapp":
		s.Body = whatsapp(m.Text)
	default:
		s.Width, s.Body = 640, terminal(m.Text)
	}
	return s
}

// telegram draws a text with its entities, which nest.
func telegram(text string, entities []entity) template.HTML {
	tags := map[string]string{
		"bold": "b", "italic": "i", "underline": "u", "strikethrough": "s", "code": "code", "pre": "pre",
		"blockquote": "blockquote", "expandable_blockquote": "blockquote",
	}
	units := utf16.Encode([]rune(text))
	var b strings.Builder
	var open []entity // the innermost last
	rest := entities
	for at := 0; at <= len(units); at++ {
		for len(open) > 0 && open[len(open)-1].Offset+open[len(open)-1].Length <= at {
			e := open[len(open)-1]
			open = open[:len(open)-1]
			b.WriteString("</" + tags[e.Type] + ">")
			if block := tags[e.Type]; (block == "pre" || block == "blockquote") && at < len(units) && units[at] == '\n' {
				at++ // it ends the row of a block
			}
		}
		for len(rest) > 0 && rest[0].Offset <= at {
			e := rest[0]
			rest = rest[1:]
			if tags[e.Type] == "" {
				continue
			}
			b.WriteString("<" + tags[e.Type])
			if e.Type == "expandable_blockquote" {
				b.WriteString(` class="folded"`)
			}
			if e.Type == "pre" && e.Language != "" {
				b.WriteString(` data-language="` + html.EscapeString(e.Language) + `"`)
			}
			b.WriteString(">")
			open = append(open, e)
		}
		if at < len(units) {
			next := at + 1
			if utf16.IsSurrogate(rune(units[at])) && next < len(units) {
				next++
			}
			b.WriteString(html.EscapeString(string(utf16.Decode(units[at:next]))))
			at = next - 1
		}
	}
	return template.HTML(b.String())
}

var (
	fence  = regexp.MustCompile("(?s)```(.+?)```")
	inline = regexp.MustCompile("`([^`\n]+)`")
	bold   = regexp.MustCompile(`(^|[\s(])\*([^*\s](?:[^*\n]*[^*\s])?)\*($|[\s.,:;!?)])`)
	quoted = regexp.MustCompile(`(?m)(?:^&gt; .*\n?)+`)
)

// whatsapp draws a text as the apps do: fences, code, bold and quotes.
func whatsapp(text string) template.HTML {
	var kept []string // what has been drawn already
	keep := func(drawn string) string {
		kept = append(kept, drawn)
		return "\x00" + string(rune('\U000F0000'+len(kept)-1))
	}
	t := fence.ReplaceAllStringFunc(html.EscapeString(text), func(m string) string {
		return keep("<pre>" + strings.Trim(m, "`") + "</pre>")
	})
	t = inline.ReplaceAllStringFunc(t, func(m string) string { return keep("<code>" + strings.Trim(m, "`") + "</code>") })
	t = bold.ReplaceAllString(t, "$1<b>$2</b>$3")
	t = quoted.ReplaceAllStringFunc(t, func(m string) string {
		rows := strings.Split(strings.TrimSuffix(m, "\n"), "\n")
		for i, row := range rows {
			rows[i] = strings.TrimPrefix(row, "&gt; ")
		}
		return "<blockquote>" + strings.Join(rows, "\n") + "</blockquote>"
	})
	for i := len(kept) - 1; i >= 0; i-- {
		t = strings.ReplaceAll(t, "\x00"+string(rune('\U000F0000'+i)), kept[i])
	}
	return template.HTML(strings.ReplaceAll(t, "</pre>\n", "</pre>"))
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// terminal draws a text with the codes of a terminal; those that move the cursor are left out.
func terminal(text string) template.HTML {
	text = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-ln-z]|\x1b[]][^\a]*\a|\r|\a").ReplaceAllString(text, "")
	var b strings.Builder
	open := 0
	for text != "" {
		at := sgr.FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(html.EscapeString(text))
			break
		}
		b.WriteString(html.EscapeString(text[:at[0]]))
		for _, code := range strings.Split(text[at[2]:at[3]], ";") {
			if code == "" || code == "0" {
				b.WriteString(strings.Repeat("</span>", open))
				open = 0
				continue
			}
			b.WriteString(`<span class="sgr` + code + `">`)
			open++
		}
		text = text[at[1]:]
	}
	b.WriteString(strings.Repeat("</span>", open))
	return template.HTML("<pre>" + strings.TrimSpace(b.String()) + "</pre>")
}
