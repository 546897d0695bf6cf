package reply

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// The advice for one call of a high-risk step allows that call, and not the others with it.
func TestHighRiskAdviceIsForTheCallNamed(t *testing.T) {
	r := permissions.Request{
		Kind: permissions.KindTool, HighRisk: true, Options: []permissions.Option{{ID: "allow_once"}, {ID: "deny"}},
		Calls: []permissions.Call{{N: 1, Tool: "write_file"}, {N: 2, Tool: "run_command"}},
	}
	a := Parse("y #1", r, "K7F3Q", i18n.English)
	if a.Meaning != Unclear || !strings.Contains(a.Say, "yes K7F3Q #1 ") {
		t.Errorf("%+v", a)
	}
	if a := Parse("yes K7F3Q #1", r, "K7F3Q", i18n.English); a.Meaning != Decides || a.Call != 1 || !a.Really {
		t.Errorf("%+v", a)
	}
}
