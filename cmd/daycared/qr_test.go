package main

import (
	"strings"
	"testing"

	"rsc.io/qr"
)

// TestAQRCodeIsDrawnWhole reads the drawing back, module by module.
func TestAQRCodeIsDrawnWhole(t *testing.T) {
	const text = "https://t.me/daycared_bot?start=Y8gG2myx4CYY2XcHRqPZMg"
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSuffix(qrCode(text, 80), "\n"), "\n")
	if want := (code.Size + 2*quietZone + 1) / 2; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for y := -quietZone; y < code.Size+quietZone; y++ {
		row := []rune(rows[(y+quietZone)/2])
		for x := -quietZone; x < code.Size+quietZone; x++ {
			sign := row[x+quietZone]
			light := sign == '█' || ((y+quietZone)%2 == 0 && sign == '▀') || ((y+quietZone)%2 == 1 && sign == '▄')
			if light == code.Black(x, y) {
				t.Fatalf("the module at %d, %d is drawn wrong", x, y)
			}
		}
	}
	if qrCode(text, code.Size) != "" {
		t.Error("it is drawn where it does not fit")
	}
}
