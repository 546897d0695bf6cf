package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// FuzzBearer sends arbitrary Authorization headers, with a valid secret in place of $T. They authenticate only if they are the
// scheme, one space and the secret, once; otherwise the call never falls back to the account or an anonymous caller.
func FuzzBearer(f *testing.F) {
	for _, header := range []string{
		"", "Bearer $T", "bearer $T", "BEARER $T", "Bearer  $T", " Bearer $T", "Bearer $T ", "Bearer\t$T", "Bearer $T\n", "Bearer $T,Bearer $T",
		"Basic $T", "$T", "Bearer", "Bearer ", "Bearer dcd_a_", "Bearer $TA", "Bearer dcd_m_$T", "Bearer $T\x00", "Bearer \"$T\"", "Béarer $T",
	} {
		f.Add(header, "", false, false)
		f.Add(header, "Bearer $T", true, true)
	}
	env := wiretest.NewEnv(f)
	secret, _, err := env.CreateToken(context.Background(), connectors.Identity{Operator: true}, "deploy", "", time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header, second string, remote, anonymous bool) {
		fill := func(header string) string { return strings.ReplaceAll(header, "$T", string(secret)) }
		g := gate{requests: env, remote: remote, anonymous: func() bool { return anonymous }}
		for _, presented := range [][]string{{fill(header)}, {fill(header), fill(second)}, {fill(second), fill(header)}} {
			caller, err := g.prove(context.Background(), presented, false)
			one := len(presented) == 1 && len(header) >= len("Bearer ") && strings.EqualFold(header[:len("Bearer ")], "Bearer ") &&
				fill(header)[len("Bearer "):] == string(secret)
			if one != (err == nil) || one != (caller.Name == "token:deploy") || !one && caller != (permissions.Caller{}) {
				t.Fatalf("%q proves %+v, %v", presented, caller, err)
			}
			if err != nil && strings.Contains(err.Error(), string(secret)) {
				t.Fatalf("the error tells the secret: %v", err)
			}
		}
	})
}
