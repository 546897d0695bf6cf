package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rsc.io/qr"
	"rsc.io/qr/coding"
)

// TestAQRCodeIsDrawnWhole decodes the drawing, module by module.
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

// readQR decodes a drawing. It tries all masks.
func readQR(rows []string) (string, error) {
	size := len([]rune(rows[0])) - 2*quietZone
	black := func(x, y int) bool {
		sign := []rune(rows[(y+quietZone)/2])[x+quietZone]
		return sign == ' ' || ((y+quietZone)%2 == 0 && sign == '▄') || ((y+quietZone)%2 == 1 && sign == '▀')
	}
	for mask := range coding.Mask(8) {
		plan, err := coding.NewPlan(coding.Version((size-17)/4), coding.L, mask)
		if err != nil {
			return "", fmt.Errorf("a QR code of %d modules: %w", size, err)
		}
		if text, ok := masked(plan, black); ok {
			return text, nil
		}
	}
	return "", errors.New("no mask fits the QR code")
}

// masked decodes a QR code with this plan; not ok means another mask. It reads only byte mode, and corrects no errors.
func masked(plan *coding.Plan, black func(x, y int) bool) (text string, ok bool) {
	bits := make([]bool, 8*(plan.DataBytes+plan.CheckBytes))
	for y, row := range plan.Pixel {
		for x, pixel := range row {
			is, planned := black(x, y), pixel&coding.Black != 0
			switch pixel.Role() {
			case coding.Data, coding.Check:
				bits[pixel.Offset()] = is != planned
			default:
				if is != planned {
					return "", false
				}
			}
		}
	}
	number := func(n int) (v int) {
		for _, bit := range bits[:n] {
			v <<= 1
			if bit {
				v |= 1
			}
		}
		bits = bits[n:]
		return v
	}
	if number(4) != 4 {
		return "", false
	}
	length := 8
	if plan.Version >= 10 {
		length = 16
	}
	read := make([]byte, number(length))
	for i := range read {
		read[i] = byte(number(8))
	}
	return string(read), true
}

// drawings are the QR codes in the output, each as rows.
func drawings(said string) (all [][]string) {
	var rows []string
	said = said[:strings.LastIndexByte(said, '\n')+1] // the last row may be incomplete
	for row := range strings.SplitSeq(said, "\n") {
		width := len([]rune(row))
		if row == "" || strings.Trim(row, "█▀▄ ") != "" || !strings.ContainsAny(row, "█▀▄") {
			rows = nil
			continue
		}
		if len(rows) > 0 && len([]rune(rows[0])) != width {
			rows = nil
		}
		if rows = append(rows, row); len(rows) == (width+1)/2 {
			all, rows = append(all, slices.Clone(rows)), nil
		}
	}
	return all
}

func TestAQRCodeSaysWhatItShould(t *testing.T) {
	for _, text := range []string{"https://t.me/daycared_bot?start=Y8gG2myx4CYY2XcHRqPZMg", strings.Repeat("2@ref,Noise+/=", 18)} {
		all := drawings("scan this:\n\n" + qrCode(text, 100) + "\nand no other\n")
		if len(all) != 1 {
			t.Fatalf("%d drawings", len(all))
		}
		if got, err := readQR(all[0]); got != text || err != nil {
			t.Errorf("it says %q, %v", got, err)
		}
	}
}
