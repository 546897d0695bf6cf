package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors/admin"
)

// An account is confirmed by its whole id; on some channels that is a number with its plus.
func TestPairConfirmsTheWholeID(t *testing.T) {
	guest := admin.Guest{Address: "+491511234567", Name: "Fay"}
	for sure, want := range map[string]bool{"+491511234567": true, "491511234567": false, "+4915112345678": false, "+": false} {
		var out bytes.Buffer
		yes, err := dialogue{out: &out}.confirmGuest(t.Context(), guest, "fay", sure)
		if err != nil || yes != want || !strings.HasPrefix(out.String(), "Somebody came:\n  id         +491511234567\n") {
			t.Errorf("--yes-if-id %s: %t, %v:\n%s", sure, yes, err, &out)
		}
	}
}
