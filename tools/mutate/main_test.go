package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const code = `package a

const limit = 2 * 3 // its value is known: it is not changed

func Sum(numbers []int) (sum int) {
	for i := 0; i < len(numbers); i++ {
		sum = sum + numbers[i]
	}
	if sum > limit {
		return -sum
	}
	return sum
}

var first = sign(-1)

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

func First() int { return first }

func Unmet(n int) bool { return n > 3 }

func Same(x any) bool { return x == nil || (x != limit) != (x == limit) }
`

const tests = `package a_test

import ("os"; "os/exec"; "testing"; "example.com/a")

// TestAgain sees what is wrong in a program that it starts, which is itself.
func TestAgain(t *testing.T) {
	if os.Getenv("AGAIN") != "" {
		if a.Sum([]int{4, 4}) != -8 {
			os.Exit(3)
		}
		os.Exit(0)
	}
	again := exec.Command(os.Args[0], "-test.run=TestAgain")
	again.Env = append(os.Environ(), "AGAIN=1")
	if err := again.Run(); err != nil {
		t.Fatal(err)
	}
}

// TestElsewhere meets no mutant but that of the variable, and would kill each other one that it were run with.
func TestElsewhere(t *testing.T) {
	if os.Getenv("MUTANT") != "" {
		t.Fatal("it is run with a mutant that it does not meet")
	}
}

func TestFirst(t *testing.T) {
	if a.First() != -1 {
		t.Fatal("wrong")
	}
}

func TestSum(t *testing.T) {
	if a.Sum([]int{1, 2}) != 3 || !a.Same(nil) {
		t.Fatal("wrong")
	}
}
`

// TestEachChangeIsJudgedByTheTests: what the tests of a package see is killed, what they do not see lives; variables and
// programs that a test starts count, and a test that does not meet a mutant is not run with it.
func TestEachChangeIsJudgedByTheTests(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module example.com/a\n\ngo 1.26\n", "a.go": code, "a_test.go": tests} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	var out bytes.Buffer
	if err := mutate(t.Context(), &out, ".", ".", 20*time.Second); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(got)
	want := []string{
		"KILLED\tARITHMETIC_BASE\ta.go:7:13",
		"KILLED\tCONDITIONALS_BOUNDARY\ta.go:6:16",
		"KILLED\tCONDITIONALS_NEGATION\ta.go:18:7",
		"KILLED\tCONDITIONALS_NEGATION\ta.go:6:16",
		"KILLED\tCONDITIONALS_NEGATION\ta.go:9:9",
		"KILLED\tINCREMENT_DECREMENT\ta.go:6:33",
		"KILLED\tINVERT_NEGATIVES\ta.go:10:10",
		"LIVED\tCONDITIONALS_BOUNDARY\ta.go:18:7",
		"LIVED\tCONDITIONALS_BOUNDARY\ta.go:26:35",
		"LIVED\tCONDITIONALS_BOUNDARY\ta.go:9:9",
		"LIVED\tCONDITIONALS_NEGATION\ta.go:26:35",
		"LIVED\tCONDITIONALS_NEGATION\ta.go:28:34",
		"LIVED\tCONDITIONALS_NEGATION\ta.go:28:47",
		"LIVED\tCONDITIONALS_NEGATION\ta.go:28:57",
		"LIVED\tCONDITIONALS_NEGATION\ta.go:28:63",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
