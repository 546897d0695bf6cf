package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryDependencyIsPinned: each required module has one version, a sum in the go.sum beside it, and is not replaced.
func TestEveryDependencyIsPinned(t *testing.T) {
	required := regexp.MustCompile(`(?m)^(?:require )?\s*([a-z]\S*\.\S+) (v\d+\.\d+\.\d+\S*)`)
	for _, file := range []string{"go.mod", "tools/lint.mod", "tools/vuln.mod"} {
		var held [2]string
		for i, name := range []string{file, strings.TrimSuffix(file, ".mod") + ".sum"} {
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			held[i] = "\n" + string(text)
		}
		name := "H3/" + strings.ReplaceAll(file, "/", ".")
		t.Run(name+" has its sums", func(t *testing.T) {
			found := required.FindAllStringSubmatch(held[0], -1)
			if len(found) == 0 {
				t.Fatal("it requires nothing")
			}
			for _, m := range found {
				if !strings.Contains(held[1], "\n"+m[1]+" "+m[2]+"/go.mod h1:") {
					t.Errorf("%s %s has no sum", m[1], m[2])
				}
			}
		})
		t.Run(name+" replaces nothing", func(t *testing.T) {
			if strings.Contains(held[0], "=>") {
				t.Error("a module is replaced by another")
			}
		})
	}
}
