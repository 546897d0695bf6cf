package admin

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// What a decider posts means one thing, or is refused with what would be right.
func TestDecisionBodiesThatMeanTwoThings(t *testing.T) {
	for _, c := range []struct {
		name string
		body decision
		says string
	}{
		{"an answer and three wrong tries", decision{Answer: permissions.Deny, Defaulted: true}, "not both"},
		{"neither", decision{}, "needs an answer"},
		{"a digest of nothing", decision{Answer: permissions.Deny, Digest: permissions.Digest{}.String()}, "leave it out"},
		{"a digest cut short", decision{Answer: permissions.Deny, Digest: "sha256:00"}, "hexadecimal"},
	} {
		if _, err := c.body.of("01ARZ3NDEKTSV4RRFFQ69G5FAV"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
