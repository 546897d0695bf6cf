package tools

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// unread are elements without readable text.
var unread = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Head: true, atom.Svg: true,
	atom.Iframe: true, atom.Object: true, atom.Select: true,
}

// blocks are elements on their own lines.
var blocks = map[atom.Atom]bool{
	atom.P: true, atom.Div: true, atom.Br: true, atom.Li: true, atom.Tr: true, atom.Section: true, atom.Article: true,
	atom.Header: true, atom.Footer: true, atom.Nav: true, atom.Main: true, atom.Blockquote: true, atom.Pre: true, atom.Table: true,
	atom.Ul: true, atom.Ol: true, atom.Dl: true, atom.Dt: true, atom.Dd: true, atom.Hr: true, atom.Form: true, atom.Figure: true,
	atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.H5: true, atom.H6: true,
}

// pageText is the readable text of a page: title and body, in lines.
func pageText(page []byte) (string, error) {
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return "", fmt.Errorf("read the page: %w", err)
	}
	var text strings.Builder
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.FirstChild != nil {
			text.WriteString("# " + n.FirstChild.Data + "\n\n")
			break
		}
	}
	writeText(&text, doc, false)
	return tidy(text.String()), nil
}

// writeText writes the text below a node. The parser limits the depth.
func writeText(text *strings.Builder, n *html.Node, verbatim bool) {
	switch {
	case n.Type == html.TextNode && verbatim:
		text.WriteString(n.Data)
	case n.Type == html.TextNode:
		text.WriteString(spaces(n.Data))
	case n.Type == html.ElementNode && unread[n.DataAtom]:
		return
	case blocks[n.DataAtom]:
		text.WriteByte('\n')
	}
	if n.DataAtom == atom.Li {
		text.WriteString("- ")
	}
	for c := range n.ChildNodes() {
		writeText(text, c, verbatim || n.DataAtom == atom.Pre)
	}
	switch {
	case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
		text.WriteByte('\t')
	case n.DataAtom == atom.A:
		if to := link(n); to != "" {
			text.WriteString(" (" + to + ")")
		}
	case blocks[n.DataAtom] && n.DataAtom != atom.Br:
		text.WriteByte('\n')
	}
}

// link is the target of a link to another page.
func link(n *html.Node) string {
	for _, a := range n.Attr {
		if a.Key == "href" && (strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "https://")) {
			return a.Val
		}
	}
	return ""
}

func spaces(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	switch {
	case words == "":
		return strings.Repeat(" ", min(len(text), 1))
	case strings.TrimLeft(text, " \t\r\n") != text:
		words = " " + words
	}
	if strings.TrimRight(text, " \t\r\n") != text {
		words += " "
	}
	return words
}

// tidy removes trailing spaces and repeated empty lines.
func tidy(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if strings.TrimSpace(line) == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
