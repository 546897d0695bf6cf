package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/permissions"
)

// grants are one of each kind.
func grants() map[string]permissions.Grant {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	digest := permissions.ComputeDigest(permissions.Request{Reason: "x"})
	return map[string]permissions.Grant{
		`{"id":"01J1","caller":"uid:1000","session":null,"permissions":["@network","@write:/srv/www"],"tool":null,` +
			`"call":null,"until":"2026-11-21T12:15:00Z","request":"01J0","by":"fay","created_at":"2026-11-21T12:00:00Z",` +
			`"revoked_at":null,"used":3,"suspended_at":null}`: {
			ID: "01J1", Caller: "uid:1000", Tags: []permissions.Tag{permissions.Network, write},
			Until: noon.Add(15 * time.Minute), Request: "01J0", By: "fay", CreatedAt: noon, Used: 3,
		},
		`{"id":"01J2","caller":"token:deploy","session":"s1","permissions":[],"tool":"run_command","call":"` +
			digest.String() + `","until":null,"request":"01J0","by":"sam","created_at":"2026-11-21T12:00:00Z",` +
			`"revoked_at":"2026-11-21T12:00:01Z","used":0,"suspended_at":"2026-11-21T12:00:02Z"}`: {
			ID: "01J2", Caller: "token:deploy", Session: "s1", Tool: "run_command", Call: digest, Request: "01J0", By: "sam",
			CreatedAt: noon, RevokedAt: noon.Add(time.Second), SuspendedAt: noon.Add(2 * time.Second),
		},
	}
}

func TestAGrantCrossesTheSocketWhole(t *testing.T) {
	for want, g := range grants() {
		text, err := Encode(FromGrant(g))
		if err != nil || string(text) != want {
			t.Errorf("%s, %v\nwant %s", text, err, want)
		}
		var w Grant
		if err := Decode(text, &w); err != nil {
			t.Fatal(err)
		}
		got, err := w.Permissions()
		diff := cmp.Diff(g, got, cmpopts.EquateComparable(permissions.Tag{}), cmpopts.EquateEmpty())
		if err != nil || diff != "" {
			t.Errorf("%v (-sent +read):\n%s", err, diff)
		}
	}
}

func TestAGrantWithoutMeaningIsRefused(t *testing.T) {
	odd := "sha256:00"
	for _, w := range []Grant{{ID: "01J", Tags: []string{"network"}}, {ID: "01J", Call: &odd}} {
		if _, err := w.Permissions(); err == nil || !strings.HasPrefix(err.Error(), "read grant 01J: ") {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
