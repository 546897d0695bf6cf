package config

import (
	"testing"
	"time"
)

func TestWhen(t *testing.T) {
	for _, test := range []struct {
		text string
		want When
	}{
		{"1%", When{Percent: 1}}, {"50%", When{Percent: 50}}, {"99%", When{Percent: 99}},
		{"10m", When{After: 10 * time.Minute}}, {"90s", When{After: 90 * time.Second}},
	} {
		w, err := parseWhen(test.text)
		if err != nil || w != test.want {
			t.Errorf("%s is read as %v, %v", test.text, w, err)
		}
		if got := test.want.String(); test.text != "90s" && got != test.text {
			t.Errorf("%s is written as %s", test.text, got)
		}
	}
}
