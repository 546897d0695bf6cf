package permissions

import (
	"crypto/hmac"
	"crypto/sha256"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCodesAreABijection(t *testing.T) {
	all := 1
	for range CodeLength {
		all *= len(codeAlphabet)
	}
	if all != CodeCount {
		t.Fatalf("%d codes can be written, and there are to be %d", all, CodeCount)
	}
	coder := Coder{Key: [32]byte{1, 2, 3}}
	seen := map[string]int64{}
	var sample []int64
	for n := range int64(20000) {
		sample = append(sample, n, CodeCount-1-n)
	}
	for n := int64(20011); n < CodeCount-20011; n += 4999 {
		sample = append(sample, n)
	}
	for _, n := range sample {
		code := coder.Encode(n)
		if len(code) != CodeLength || strings.Trim(code, codeAlphabet) != "" {
			t.Fatalf("%d is %q", n, code)
		}
		if other, taken := seen[code]; taken {
			t.Fatalf("%d and %d are both %s", n, other, code)
		}
		seen[code] = n
		if got, ok := coder.Decode(code); !ok || got != n {
			t.Fatalf("%d is %s is %d, %v", n, code, got, ok)
		}
	}
}

// The walk of one number meets the first that is too large for a code and continues from there, in both directions.
func TestTheWalkOverTheFirstNumberWithoutACode(t *testing.T) {
	coder := Coder{Key: [32]byte{1, 2, 3}}
	mac := hmac.New(sha256.New, coder.Key[:])
	n := uint32(CodeCount)
	for n >= CodeCount {
		n = swap(permute(mac, swap(n), [4]byte{3, 2, 1, 0}))
	}
	code := coder.Encode(int64(n))
	if got, ok := coder.Decode(code); !ok || got != int64(n) {
		t.Errorf("%d is %s is %d, %v", n, code, got, ok)
	}
}

func TestEveryCodeNamesANumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var coder Coder
		copy(coder.Key[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		code := rapid.StringOfN(rapid.RuneFrom([]rune(codeAlphabet)), CodeLength, CodeLength, -1).Draw(t, "code")
		n, ok := coder.Decode(code)
		if !ok || n < 0 || n >= CodeCount || coder.Encode(n) != code {
			t.Errorf("%s is %d, %v, which is %s", code, n, ok, coder.Encode(n))
		}
		if lower, ok := coder.Decode(strings.ToLower(code)); !ok || lower != n {
			t.Errorf("%s in lower case is %d, %v", code, lower, ok)
		}
		if again := coder.Encode(n + CodeCount); again != code {
			t.Errorf("%d and the same after all codes are %s and %s", n, code, again)
		}
	})
}

func TestNoCode(t *testing.T) {
	for _, text := range []string{
		"", "2345", "234567", "2345O", "23450", "2345I", "23451", "2345L", "2345l", "2 345", "-2345", "2345\x00",
		"ſABC", // five bytes; its upper case is SABC
		"ßABC", "éABC",
	} {
		if n, ok := (Coder{}).Decode(text); ok || n != 0 {
			t.Errorf("%q is %d, %v", text, n, ok)
		}
	}
}

func TestCodesDependOnTheKeyAndDoNotCount(t *testing.T) {
	a, b := Coder{}, Coder{Key: [32]byte{31: 1}}
	same, near := 0, 0
	for n := range int64(1000) {
		if a.Encode(n) == b.Encode(n) {
			same++
		}
		if a.Encode(n)[:3] == a.Encode(n + 1)[:3] {
			near++
		}
	}
	if same > 1 || near > 10 {
		t.Errorf("of 1000 codes %d are the same under another key, and %d are near the next", same, near)
	}
	if slices.Contains([]byte(codeAlphabet), 'L') || len(codeAlphabet) != 31 {
		t.Error("the alphabet is not the 31 unambiguous characters")
	}
}

func FuzzDecodeCode(f *testing.F) {
	for _, code := range []string{"22222", "K7F3Q", "k7f3q", "ZZZZZ", "ſABC", "", "\xff\xff\xff\xff\xff", "2345O"} {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code string) {
		n, ok := Coder{}.Decode(code)
		if !ok {
			return
		}
		if got := (Coder{}).Encode(n); n < 0 || n >= CodeCount || !strings.EqualFold(got, code) || len(code) != CodeLength {
			t.Fatalf("%q is %d, which is %q", code, n, got)
		}
	})
}

// TestANumberBelowZeroHasACode too, so that an invented one blocks nothing.
func TestANumberBelowZeroHasACode(t *testing.T) {
	for _, n := range []int64{-1, -CodeCount, -CodeCount - 1, math.MinInt64} {
		if code := (Coder{}).Encode(n); len(code) != CodeLength {
			t.Errorf("the code of %d is %q", n, code)
		}
	}
}
