package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// TestAMigrationNeverChanges: a store never repeats a step, so a step must not change. Add new files here.
func TestAMigrationNeverChanges(t *testing.T) {
	digests := map[string]string{
		"00001_requests.sql":     "982fc369f38b96a0611c5f23f11490df93644a595556621854a2a15961de3478",
		"00002_restoring.sql":    "f60274394b0b393982c4205d5ff1ee33e7aaaa5df07f56b659b10929d4721eb0",
		"00003_earlier.sql":      "32199c2dc7818832697117d598659771331a7ff5683e5ec8708b8dedb7d1b089",
		"00004_workspace.sql":    "936c02eac6e27e78e81b39354cf25a56448ce755101dac7bca12c457b1249ef5",
		"00005_seals.sql":        "75afe3ba1130679e02e4343f2c81a2d4c8505c10bb4cba61e8f8aada1c9e58c9",
		"00006_dated.sql":        "6b75e62a85eb8c9457f0e87892cd9363f0dfe25febe2b40338710caee42f201a",
		"00007_settled.sql":      "ba85a4fcd722b63746dd2e28a0fa41ef32a2a0e326cb450427d19ff33a919519",
		"00008_locks.sql":        "fe7c5593d368c7365f5969d740bf467af346d2a6602be9f91345067c5919a422",
		"00009_shut.sql":         "f25c10075764b1c22831745ae7cff8747b5201ba6153cb45d9c0dc8997c27761",
		"00010_account.sql":      "f1ee426556d14ad9ce4a40493cc24858b30b52859505109eaa01274a56a077cc",
		"00011_gates.sql":        "ed9ce2378509821c1aa1f3fb570566cb7c3909cfa3af12a73de15240f7fc2d55",
		"00012_front_ends.sql":   "a15b822ac25b12b491164cd2dfed1fdadd9cc91a3606042e2341d5d2863954e6",
		"00013_interactions.sql": "8071a4c7cc9cbb4cd4a496b2ee00329e7c4389430942d8b8540cd1342adf2558",
		"00014_owner.sql":        "1942e71ea757ee89794652d56dde7a9f008ef25fb726ad5e461c960f015fbdd8",
		"00015_person.sql":       "0c606c898a8887f3b6a5abf323bc18f75eeef5e161ae7d0561f2ec7036918d68",
		"00016_waits.sql":        "36cbed1585b43661b8a0b1f58f6ec2bd0774fba016c27e5c07760a1b213820bd",
		"00017_beyond.sql":       "71d8b53e9998797e6ea2de1398f90d475a0398174daf77c4a684b99de7266299",
		"00018_told.sql":         "83550d0749b4a73db766b9b3ba30530e85b1e30e206b827e2c167449e9df1ca1",
		"00019_sealed.sql":       "310741833d75f5e1b2616ea71f9aa077392a4d1b777c2c91a1fe45fd28e1c1dd",
		"00020_started.sql":      "f943a7ba809e843c70b97232537262ad17ce568649c27a8eee6f8218959d3425",
		"00021_ended.sql":        "d2085f7a22986da2a01cda3be45d5b48517e8b363c53e60f8b5a55dc86e20343",
		"00022_was.sql":          "f0521801435aa86e6290d95ef312f9dcf3691292f5d52c1b73bd7b5e5636e49c",
		"00023_away.sql":         "3217d54976a92d78ecaf75c6f3978fc8c499959d5c57a6078183ba3d6a1cb655",
		"00024_ruled.sql":        "1d8fca90f251c82bacc228789ad74d7a6cb23111914cdf17b121c80d8aeadf04",
		"00025_burst.sql":        "ea29ccfa2e840d5ad9046535b2ceb277b51de6756186f5eac1b9f0bb9498558a",
		"00028_before.sql":       "4b038556e4af263db10919ed30601efcb6932ed73164cdf4e8d084d74223b55d",
		"00029_rules.sql":        "768b90a47e6424879cc341b2f1e8892a731e55c2863e470b079ae9cdcf1481ba",
		"00030_agents.sql":       "a963001f975a0aad6e4f8085e6b45d8c3283538def6546c87e434b103924709f",
		"00031_proposed.sql":     "613a12bce4c12779f36ec4f987a266aaf0716108d6dcd069ab9eb7fa4584c13d",
		"00032_refused.sql":      "aa027d3e735df1af79230f7c3cb483bc6ebe2636bccb75b25acd344d93676185",
		"00034_due.sql":          "bfa57edee72704d5828792c30a836a48a676c8609506e09778123af3c6789996",
		"00035_told.sql":         "e0e81a89fc91858a99328f3495d6ca62fb7a5c2714213144197b0be04f44188f",
		"00036_languages.sql":    "e584e8294c77879a383dead1ec3f2cc804979fc9c238b436ce7d4cf3951c4978",
		"00037_entries.sql":      "b6ee5461db93336435ba9eea586926cef8be1af5cf4d3b4ba9283e566fb41821",
		"00038_asked.sql":        "8d06d6a48ba0f30811133a351bea11299f61599192ad17ba20f3b7c7b9a2baa6",
		"00039_short.sql":        "342daf83aefa28176b944dadc72689e398639842fcc6528fb4d39d8a084f2649",
		"00040_numbered.sql":     "6e39e825ccd526f9f4827e631052c1edeac0772a2f88bf7443c7d7cac88b5c5e",
	}
	files, err := migrations.ReadDir("migrations")
	if err != nil || len(files) != len(digests) {
		t.Fatalf("%d files, and %d digests; %v", len(files), len(digests), err)
	}
	for _, f := range files {
		text, err := migrations.ReadFile("migrations/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); digests[f.Name()] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has another digest, %x: what is to change goes into a new file", f.Name(), sum)
		}
	}
}

// TestTheSumIsOfTheSchema: with a wrong sum every start would take twice as long.
func TestTheSumIsOfTheSchema(t *testing.T) {
	all, err := parts(t.Context(), newStore(t).writer)
	if got := sum(all); err != nil || got != schemaSum {
		t.Errorf("schemaSum is to be %q, %v", got, err)
	}
}

// leftBehind is the closed store of a daemon with one pending request.
func leftBehind(t *testing.T) (path string, waits permissions.Request) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "daycared.db")
	s, err := Open(t.Context(), options(path))
	if err != nil {
		t.Fatal(err)
	}
	waits = insert(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, waits
}

// TestAnotherSchemaIsRefused: a store with another schema would be ready, but fail at the first question.
func TestAnotherSchemaIsRefused(t *testing.T) {
	for _, c := range []struct{ name, statement, says, logs string }{
		{"a column less", "ALTER TABLE requests DROP COLUMN hook", "its table requests differs", "hook TEXT NOT NULL"},
		{"another type of entries", "UPDATE types SET number = 105 WHERE name = 'GRANT_REVOKED'", "2 parts differ", "GRANT_REVOKED"},
		{"another name of the chain", "UPDATE chains SET name = 'A'", "its first row of chains differs", "found=false"},
		{"the chain's name at no entry", "UPDATE chains SET number = 2", "its first row of chains differs", "found=false"},
		{"an index less", "DROP INDEX requests_denied", "it has no index requests_denied of requests", "(caller, action, decided_at)"},
		{"a trigger", "CREATE TRIGGER x AFTER UPDATE ON grants BEGIN UPDATE grants SET suspended_at = 0; END",
			"its trigger x of grants is not daycared's", "suspended_at = 0"},
		{"much", "DROP VIEW executions; DROP VIEW aic_interactions; DROP INDEX requests_kept; DROP TABLE cursors; DROP TABLE moved",
			"5 parts differ; it has no index requests_kept of requests", "it"},
		{"words of ours alone", "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = replace(sql, '-- empty: nobody', '--  nobody') " +
			"WHERE name = 'meta'; PRAGMA writable_schema = off", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, waits := leftBehind(t)
			if err := change(t.Context(), path, statements(c.statement)); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			o := options(path)
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			s, err := Open(t.Context(), o)
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.Apply(t.Context(), waits.ID, fayAllows()); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			unwell(t, "open", err, c.says, "answer what waits", "daycared restore FILE")
			for _, words := range []string{"found=", "want=", c.logs} {
				if !strings.Contains(log.String(), words) {
					t.Errorf("the log is without %q:\n%s", words, &log)
				}
			}
		})
	}
}

// TestReadinessIsWhatAskingNeeds removes every column and table in turn: if anything fails without it, the store is not
// ready until it is back.
func TestReadinessIsWhatAskingNeeds(t *testing.T) {
	s := newStore(t)
	columns := func(table string) []string {
		all, err := collect(t.Context(), s.writer, "a column", func(name *string) []any { return []any{name} },
			"SELECT name FROM pragma_table_info($1)", table)
		if err != nil || len(all) == 0 {
			t.Fatalf("the columns of %s: %v, %v", table, all, err)
		}
		return all
	}
	quarter := permissions.For(15 * time.Minute)
	needs := 0
	without := func(what, away, back string) {
		o := newAsk()
		o.Request.Options = permissions.Offer(o.Request, []permissions.Scope{quarter}, quarter)
		o.Copies = []permissions.Copy{{Person: "fay", Connector: "admin"}}
		waits, _, err := s.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, s.writer, away)
		ready := s.Health(t.Context())
		_, ask := s.Pending(t.Context(), "fay", "", 1)
		if _, _, err := s.Open(t.Context(), newAsk()); err != nil {
			ask = err
		}
		keyed := newAsk()
		keyed.Request.Key = string(keyed.Request.ID)
		if _, _, err := s.Open(t.Context(), keyed); err != nil {
			ask = err
		}
		said := fayAllows()
		said.Vote.Answer, said.Vote.Key = permissions.Allow(quarter), string(waits.ID)
		_, decide := s.Apply(t.Context(), waits.ID, said)
		if decide == nil {
			_, decide = s.Apply(t.Context(), waits.ID, permissions.Use{At: time.Now()})
		}
		if _, err := s.Grants(t.Context(), waits.Caller.Name, time.Now()); err != nil {
			decide = err
		}
		if ready == nil && (ask != nil || decide != nil) {
			t.Errorf("without %s it is ready, and asking: %v, deciding: %v", what, ask, decide)
		}
		if ready != nil {
			needs++
			unwell(t, what, ready, "does not work (", "daycared restore FILE")
		}
		exec(t, s.writer, back)
		if err := s.Health(t.Context()); err != nil {
			t.Errorf("with %s again: %v", what, err)
		}
	}
	for _, table := range []string{"meta", "requests", "request_votes", "request_copies", "grants", "uses", "entries", "chains", "notices"} {
		for _, column := range columns(table) {
			without(table+"."+column, fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO gone", table, column),
				fmt.Sprintf("ALTER TABLE %s RENAME COLUMN gone TO %s", table, column))
		}
		without(table, fmt.Sprintf("ALTER TABLE %s RENAME TO gone", table), fmt.Sprintf("ALTER TABLE gone RENAME TO %s", table))
	}
	if needs < 100 {
		t.Errorf("only %d are needed", needs)
	}
}
