package main

import (
	"fmt"
	"strings"

	"golang.org/x/term"
	"rsc.io/qr"
)

// quietZone is how many modules of light a QR code has around it; the standard has four, and readers do with two.
const quietZone = 2

// qrCode draws a text as a QR code, two modules to a character, for light letters on a dark ground. It is empty where
// there is no room for it.
func qrCode(text string, columns int) string {
	code, err := qr.Encode(text, qr.L)
	if err != nil || code.Size+2*quietZone > columns {
		return ""
	}
	light := func(x, y int) bool { return y < code.Size+quietZone && !code.Black(x, y) } // beyond its edge nothing is black
	var b strings.Builder
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		for x := -quietZone; x < code.Size+quietZone; x++ {
			switch up, down := light(x, y), light(x, y+1); {
			case up && down:
				b.WriteRune('█')
			case up:
				b.WriteRune('▀')
			case down:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// link shows an address, and as a QR code where that fits.
func (d dialogue) link(address string) {
	d.say("\n  %s\n", address)
	columns, _, err := term.GetSize(int(d.in.Fd()))
	if err != nil {
		return
	}
	if code := qrCode(address, columns); code != "" {
		fmt.Fprintln(d.out, code)
	}
}
