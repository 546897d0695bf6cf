package permissions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func quote(b *strings.Builder, v any) { fmt.Fprintf(b, "%q;", fmt.Sprintf("%q", v)) }

func TestCanonicalJSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", ``, `null`},
		{"null", `null`, `null`},
		{"space", " {\n\t\"a\" : [ 1 , true ] } \r\n", `{"a":[1,true]}`},
		{"members in order", `{"b":1,"a":{"d":2,"c":3}}`, `{"a":{"c":3,"d":2},"b":1}`},
		{"order of arrays stays", `[3,1,2]`, `[3,1,2]`},
		{"escapes", `"\u0061\/\u003c\u00e9"`, `"a/<é"`},
		{"needed escapes stay", `"\u0000\"\\\n"`, `"\u0000\"\\\n"`},
		{"escaped names meet their order", `{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		{"big integer", `12345678901234567890123`, `12345678901234567890123`},
		{"more digits than a float holds", `0.12345678901234567890`, `0.12345678901234567890`},
		{"float as written", `[1.0,1,1e2,100,-0]`, `[1.0,1,1e2,100,-0]`},
		{"names that differ in case", `{"a":1,"A":2}`, `{"A":2,"a":1}`},
	} {
		t.Run("C4/"+c.name, func(t *testing.T) {
			got, err := CanonicalJSON([]byte(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
			}
		})
	}
	for _, c := range []struct{ name, in string }{
		{"duplicate member", `{"a":1,"a":1}`},
		{"duplicate member further in", `[{"x":{"a":1,"b":2,"a":3}}]`},
		{"duplicate member by an escape", `{"a":1,"\u0061":2}`},
		{"bad UTF-8", "\"\xff\""},
		{"too deep", strings.Repeat("[", 9500) + strings.Repeat("]", 9500)},
		{"too deep of both kinds", strings.Repeat(`[{"a":`, 4750) + "1" + strings.Repeat("}]", 4750)},
		{"bad UTF-8 in a name", "{\"\xff\":1}"},
		{"lone surrogate", `"\ud800"`},
		{"data after the end", `{} {}`},
		{"data after a number", `1 2`},
		{"comma at the end", `[1,]`},
		{"byte order mark", "\ufeff{}"},
		{"comment", `{/* no */}`},
		{"single quotes", `{'a':1}`},
		{"bare word", `{a:1}`},
		{"not a number", `NaN`},
		{"leading zero", `01`},
		{"half a value", `{"a":`},
		{"only space", ` `},
		{"control character", "\"a\nb\""},
		{"far too deep", strings.Repeat("[", 20000) + strings.Repeat("]", 20000)},
	} {
		t.Run("C4/"+c.name, func(t *testing.T) {
			got, err := CanonicalJSON([]byte(c.in))
			if err == nil || !strings.HasPrefix(err.Error(), "the input is not strict JSON") {
				t.Errorf("%s: taken as %s, %v", c.name, got, err)
			}
		})
	}
}

func TestCanonicalJSONLeavesItsInputAlone(t *testing.T) {
	in := []byte(`{ "b":1, "a":2 }`)
	if _, err := CanonicalJSON(in); err != nil || string(in) != `{ "b":1, "a":2 }` {
		t.Errorf("the input is now %s, %v", in, err)
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, in := range []string{
		``, `null`, `{"b":[1,2.50,{"c":"\u0061"}],"a":-0}`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud83d\ude00"`,
		`12345678901234567890`, `1E400`, ` [ ] `, `{"":{}}`, `"\u2028"`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := CanonicalJSON(in)
		if err != nil {
			return
		}
		twice, err := CanonicalJSON(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q and then %q, %v", in, once, twice, err)
		}
		if len(in) > 0 && !reflect.DeepEqual(meaning(t, in), meaning(t, once)) {
			t.Fatalf("%q does not mean %q", once, in)
		}
	})
}

// meaning is how the standard library parses it, with numbers as written.
func meaning(t *testing.T, text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q is no JSON: %v", text, err)
	}
	return v
}
