package acts

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The files that a patch names.

// patchedFiles returns the files of a patch in Codex's format that only adds, updates and moves.
func patchedFiles(patch string) (files []string, ok bool) {
	for line := range strings.Lines(patch) {
		head, name, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case !strings.HasPrefix(head, "*** ") || slices.Contains([]string{"*** Begin Patch", "*** End Patch", "*** End of File"}, head):
		case head != "*** Add File" && head != "*** Update File" && head != "*** Move to" || name == "" || filepath.IsAbs(name):
			return nil, false
		default:
			files = append(files, name)
		}
	}
	return files, len(files) > 0
}

// filesInPatch returns the files that a patch names: one for apply_patch, or of diff or git. What stands before a name is read as by
// the most lenient of those that apply patches.
func filesInPatch(text string) (files []string) {
	for _, name := range namesInPatch(text) {
		if of, rest, below := strings.Cut(name, "/"); below && rest != "" && (of == "a" || of == "b") {
			name = rest
		}
		files = append(files, name)
	}
	return files
}

// gitHeads begin lines of a patch that name a file.
var gitHeads = []string{"+++ ", "Index:", "rename from ", "rename to ", "copy from ", "copy to "}

func namesInPatch(text string) (names []string) {
	add := func(name string) {
		name = strings.TrimFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
		if plain, err := strconv.Unquote(name); err == nil && name[0] == '"' {
			name = plain
		}
		if name != "" && name != "/dev/null" {
			names = append(names, name)
		}
	}
	const indent = " \t>X" // as patch skips it
	lines, ours := strings.Split(text, "\n"), strings.Contains(text, "*** Begin Patch")
	for i, line := range lines {
		line = strings.TrimLeft(line, indent)
		follows := func(head string) bool {
			return i+1 < len(lines) && strings.HasPrefix(strings.TrimLeft(lines[i+1], indent), head)
		}
		head := slices.IndexFunc(gitHeads, func(head string) bool { return strings.HasPrefix(line, head) })
		name, _, _ := strings.Cut(line, "\t")
		switch {
		case ours && strings.HasPrefix(line, "***"):
			_, name, _ = strings.Cut(line, ":")
			add(name)
		case strings.HasPrefix(line, "*** ") && follows("--- "), strings.HasPrefix(line, "--- ") && follows("+++ "):
			add(name[len("*** "):])
		case head >= 0:
			add(strings.TrimPrefix(name, gitHeads[head]))
		case strings.HasPrefix(line, "diff --git "):
			for _, part := range strings.Fields(line)[2:] {
				add(part)
			}
		}
	}
	return names
}

// AppliesPatch reports whether a, a program, is one that changes the files which a patch names.
func (a Act) AppliesPatch() bool {
	name := path.Base(a.Words[0])
	return slices.Contains([]string{"apply_patch", "applypatch", "patch"}, name) ||
		name == "git" && (slices.Contains(a.Words, "apply") || slices.Contains(a.Words, "am"))
}

// Patches returns the files that a program which applies patches is given one for, as its input or a word.
func (a Act) Patches() (files []string) {
	if !a.AppliesPatch() {
		return nil
	}
	text := a.Stdin + "\n" + strings.Join(a.Words[1:], "\n")
	files = filesInPatch(text)
	for _, word := range a.Words[1:] {
		strip, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(word, "-p"), "--strip="))
		for _, name := range namesInPatch(text) {
			if parts := strings.Split(name, "/"); err == nil && strip >= 0 && strip < len(parts) {
				files = append(files, strings.Join(parts[strip:], "/"))
			}
		}
	}
	return files
}
