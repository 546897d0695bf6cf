package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSize is the largest configuration file, in bytes. Beyond it, it is some other file.
const maxSize = 1 << 20

// document reads data as one YAML document; nil is an empty one. What is no YAML goes to the report.
func document(r *report, data []byte) *yaml.Node {
	if len(data) > maxSize {
		r.line(1, "", "the file is larger than 1 MiB; a configuration is not, so this is probably another file")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if n, ok := unreadable(data); ok {
		r.line(n, "", "the file is not plain text in UTF-8; save it as UTF-8, without control characters")
		return nil
	}
	var doc, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		misspelt(r, data, err)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		r.line(second.Line, "", "a second document begins here; write everything into one, without ---")
	} else if !errors.Is(err, io.EOF) {
		misspelt(r, data, err)
	}
	return doc.Content[0]
}

// unreadable is the first line that holds what YAML does not allow anywhere: broken UTF-8 or a control character.
func unreadable(data []byte) (line int, found bool) {
	line = 1
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		switch {
		case c == '\n':
			line++
		case c == utf8.RuneError && size == 1, c < ' ' && c != '\t' && c != '\r', c == 0x7f, c == 0xfffe, c == 0xffff:
			return line, true
		}
		data = data[size:]
	}
	return 0, false
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?(.*)$`)
	fromParser = regexp.MustCompile(`did not find expected (?:key|'-'|','|node content|<)`)
	badAlias   = regexp.MustCompile(`[\[,:-]\s*\*`)
	badAt      = regexp.MustCompile(`[\[,{:-]\s*@`)
	username   = regexp.MustCompile(`telegram\s*:\s*(@[^\s,}]*)`)
)

// misspelt reports an error of the YAML parser, with what is right for the mistakes that people make.
func misspelt(r *report, data []byte, err error) {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		m = []string{"", "", err.Error()}
	}
	n, _ := strconv.Atoi(m[1])
	if fromParser.MatchString(m[2]) {
		n++ // the parser counts lines from 0, its scanner from 1
	}
	lines := strings.Split(string(data), "\n")
	n = min(max(n, 1), len(lines))
	for i, l := range lines[n-1 : min(n+1, len(lines))] {
		if indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]; strings.Contains(indent, "\t") {
			r.line(n+i, "", "the line is indented with a tab; write spaces")
			return
		}
	}
	here := lines[n-1]
	switch {
	case username.MatchString(here):
		_, e := parseTelegram(username.FindStringSubmatch(here)[1])
		r.line(n, "", "people.telegram: %v", e)
	case strings.Contains(m[2], "cannot start any token") && badAt.MatchString(here):
		r.line(n, "", `what begins with @ has to be quoted; write it as "@network"`)
	case strings.Contains(m[2], "alphabetic or numeric") && badAlias.MatchString(here):
		r.line(n, "", `what begins with * has to be quoted; write it as "*"`)
	case strings.HasPrefix(m[2], "unknown anchor"):
		r.line(aliasLine(lines, m[2]), "", "*name repeats what &name marked, which is not done here; write it out, "+
			"or in quotes")
	default:
		r.line(n, "", "this is not YAML: %s; look at the indentation, colons, brackets and quotes from here on", m[2])
	}
}

// aliasLine is the line of an alias to nothing, of which the parser tells only the name.
func aliasLine(lines []string, message string) int {
	_, name, _ := strings.Cut(message, "'")
	name, _, _ = strings.Cut(name, "'")
	for i, l := range lines {
		if strings.Contains(l, "*"+name) {
			return i + 1
		}
	}
	return 1
}
