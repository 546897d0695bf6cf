package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The measures of the picture, in its own units. A bar is as long as its figure by its goal, which is at the same place
// for all of them.
const (
	pictureWidth = 900
	rowHeight    = 34
	headHeight   = 44
	barLeft      = 580
	goalAt       = 200 // from the left of the bars
	longest      = 290 // bars that would be longer are cut, and say so
)

const style = `<style>
.t{fill:#1a1a1a}.s{fill:#5b6770}.g{stroke:#5b6770}.w{stroke:#1a1a1a}.y{fill:#3f9b4f}.n{fill:#c0483f}
@media (prefers-color-scheme:dark){.t{fill:#e8edf0}.s{fill:#9fadb6}.g{stroke:#9fadb6}.w{stroke:#e8edf0}}
</style>
`

// load is how much of its goal a figure takes: up to 1 it is met.
func (f figure) load(v float64) float64 {
	switch {
	case f.atLeast && v == 0:
		return math.Inf(1)
	case f.atLeast:
		return f.limit / v
	case f.limit == 0:
		return v // nothing at all, or too much
	}
	return v / f.limit
}

// picture draws one bar for each figure, and where it would have to end.
func picture(all []figure) string {
	var b strings.Builder
	height := headHeight + rowHeight*len(all) + 16
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="%s">`+"\n",
		pictureWidth, height, pictureWidth, height, html.EscapeString(label(all)))
	b.WriteString(style)
	fmt.Fprintf(&b, `<text x="%d" y="20" class="s" text-anchor="middle">goal</text>`+"\n", barLeft+goalAt)
	fmt.Fprintf(&b, `<text x="%d" y="20" class="s">◂ better</text>`+"\n", barLeft)
	for i, f := range all {
		row(&b, f, headHeight+i*rowHeight)
	}
	fmt.Fprintf(&b, `<line x1="%d" y1="28" x2="%d" y2="%d" class="g" stroke-width="1.5" stroke-dasharray="4 3"/>`+"\n</svg>\n",
		barLeft+goalAt, barLeft+goalAt, height-12)
	return b.String()
}

// row draws one figure with its top at y: the bar, and a thin line from the least to the most.
func row(b *strings.Builder, f figure, y int) {
	class := "n"
	if f.met() {
		class = "y"
	}
	fmt.Fprintf(b, `<text x="16" y="%d" class="t"><tspan font-weight="600">%s</tspan> %s</text>`+"\n", y+10, f.id, html.EscapeString(f.what))
	fmt.Fprintf(b, `<text x="16" y="%d" class="s" font-size="11">to %s: %s, goal %s</text>`+"\n",
		y+24, html.EscapeString(f.against), html.EscapeString(f.value()), html.EscapeString(f.wanted()))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="16" rx="3" class="%s"/>`+"\n",
		barLeft, y+2, max(length(f.load(f.middle)), 2), class)
	from, to := length(f.load(f.least)), length(f.load(f.most))
	if from != to {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" class="w" stroke-width="1.5"/>`+"\n",
			barLeft+from, y+10, barLeft+to, y+10)
	}
	if f.load(f.middle)*goalAt > longest {
		fmt.Fprintf(b, `<text x="%d" y="%d" class="t">▸</text>`+"\n", barLeft+longest+4, y+15)
	}
}

func length(load float64) float64 { return min(load*goalAt, longest) }

func label(all []figure) string {
	met := 0
	for _, f := range all {
		if f.met() {
			met++
		}
	}
	return fmt.Sprintf("%d of %d figures are within their goals", met, len(all))
}
