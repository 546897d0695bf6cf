package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// value is a figure in as few digits as tell it.
func (f figure) value() string {
	if f.sum {
		return fmt.Sprintf("%s of %s", thousands(f.middle), thousands(f.many))
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", f.middle, f.least, f.most)
}

// wanted is what the figure has to be.
func (f figure) wanted() string {
	switch {
	case f.atLeast:
		return "≥ " + strconv.FormatFloat(f.limit, 'g', -1, 64)
	case f.limit == 0:
		return "0"
	}
	return "≤ " + strconv.FormatFloat(f.limit, 'g', -1, 64)
}

func (f figure) verdict() string {
	if f.met() {
		return "met"
	}
	return "**not met**"
}

// thousands writes a whole number as people read it.
func thousands(v float64) string {
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// text writes a table for a terminal.
func text(to io.Writer, all []figure) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tmeasured\tagainst\tratio\tgoal\t")
	for _, f := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", f.id, f.what, f.against, f.value(), f.wanted(), strings.Trim(f.verdict(), "*"))
	}
	return w.Flush()
}

// about says on what was measured.
func about(machine map[string]string) string {
	return fmt.Sprintf("Measured on %s cores (%s, %s/%s), %s, %s.",
		machine["cores"], machine["cpu"], machine["goos"], machine["goarch"], machine["disk"], machine["go"])
}

// section is what stands between the marks of docs/performance.md.
func section(machine map[string]string, all []figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nMedian (least–most).\n\n", about(machine))
	b.WriteString("![Each figure beside its goal](performance.svg)\n\n")
	b.WriteString("| | measured | against | ratio | goal | |\n|---|---|---|---|---|---|\n")
	for _, f := range all {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", f.id, f.what, f.against, f.value(), f.wanted(), f.verdict())
	}
	return b.String()
}

// The marks in docs/performance.md between which the section stands. What is around them is written by hand.
const (
	beginMark = "<!-- figures: written by make figures -->\n"
	endMark   = "<!-- figures end -->\n"
)

var errMarks = errors.New("docs/performance.md does not have both marks, each once, in order")

// replace puts a section between the marks.
func replace(page []byte, section string) ([]byte, error) {
	before, rest, begins := bytes.Cut(page, []byte(beginMark))
	_, after, ends := bytes.Cut(rest, []byte(endMark))
	if !begins || !ends || bytes.Contains(rest, []byte(beginMark)) || bytes.Contains(after, []byte(endMark)) {
		return nil, errMarks
	}
	return fmt.Appendf(nil, "%s%s%s%s%s", before, beginMark, section, endMark, after), nil
}
