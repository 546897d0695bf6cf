package acts

import (
	"path"
	"slices"
	"strings"
)

// addFiles adds the risks of the files that a program writes or removes, and of those whose names say that they hold credentials.
func (f *finder) addFiles(name string, a Act) {
	args := a.Words[1:]
	operands, recursive := operandsOf(args)
	for _, word := range writtenFiles(name, args, operands) {
		f.addFile(a, word, true)
	}
	recursive = recursive || slices.ContainsFunc(operands, func(word string) bool { return strings.Contains(word, "**") })
	if recursive && slices.Contains([]string{"rm", "srm", "trash"}, name) {
		f.found[Destroys] = f.found[Destroys] || slices.ContainsFunc(operands, func(word string) bool { return !f.isScratch(a, word) })
	}
	if slices.Contains([]string{"echo", "printf", "git", "gh", "go", "test", "[", "find", "ls"}, name) {
		return
	}
	if slices.Contains([]string{"grep", "egrep", "fgrep", "rg"}, name) { // the pattern
		operands = operands[min(1, len(operands)):]
	}
	for _, word := range operands {
		if !strings.ContainsAny(word, " \n") {
			f.addFile(a, word, false)
		}
	}
	for _, word := range args { // -d @file, --post-file=file, -F name=@file;type=…
		for i, c := range word {
			if file, _, _ := strings.Cut(word[i+1:], ";"); (c == '@' || c == '=') && isSecret(file) {
				f.found[Secrets] = true
			}
		}
	}
}

// operandsOf returns the words that are no options, and whether an option says that folders are meant with all that is in them.
func operandsOf(args []string) (operands []string, recursive bool) {
	for i, word := range args {
		switch {
		case word == "--":
			return append(operands, args[i+1:]...), recursive
		case strings.HasPrefix(word, "-") && len(word) > 1:
			recursive = recursive || optionFits("-r", word) || optionFits("-R", word) || optionFits("--recursive", word)
		default:
			operands = append(operands, word)
		}
	}
	return operands, recursive
}

// writtenFiles returns the files that a program writes or removes.
func writtenFiles(name string, args, operands []string) (files []string) {
	switch name {
	case "rm", "srm", "trash", "rmdir", "unlink", "touch", "mkdir", "truncate", "tee", "mv", "shred", "mkfifo":
		return operands
	case "chmod", "chown", "chgrp":
		return operands[min(1, len(operands)):]
	case "cp", "ln", "install", "rsync", "scp":
		return append(nonEmpty(valueOfOption(args, "-t", "--target-directory")), operands[max(0, len(operands)-1):]...)
	case "sed", "perl":
		if slices.ContainsFunc(args, func(w string) bool {
			return strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place") || name == "perl" && optionFits("-i", w)
		}) {
			return filesEditedInPlace(args)
		}
	case "dd":
		for _, word := range args {
			if file, is := strings.CutPrefix(word, "of="); is {
				files = append(files, file)
			}
		}
	case "curl":
		return nonEmpty(valueOfOption(args, "-o", "--output"), valueOfOption(args, "", "--output-dir"))
	case "wget":
		return nonEmpty(valueOfOption(args, "-O", "--output-document"), valueOfOption(args, "-P", "--directory-prefix"))
	case "go", "gcc", "cc", "g++", "clang", "clang++", "rustc", "sort":
		return nonEmpty(valueOfOption(args, "-o", "--output"))
	case "tar":
		return nonEmpty(valueOfOption(args, "-C", "--directory"))
	case "unzip":
		return nonEmpty(valueOfOption(args, "-d", ""))
	}
	return files
}

// filesEditedInPlace returns the files that sed or perl edits in place: the operands, except the script and the values of -e and -f.
func filesEditedInPlace(args []string) (files []string) {
	script := false
	for i, word := range args {
		switch {
		case i > 0 && (optionFits("-e", args[i-1]) || optionFits("-f", args[i-1]) || args[i-1] == "--expression"):
			script = true
		case word == "" || strings.HasPrefix(word, "-"):
		default:
			files = append(files, word)
		}
	}
	if !script {
		files = files[min(1, len(files)):]
	}
	return files
}

func nonEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// valueOfOption returns the value of an option, in the same word or the next.
func valueOfOption(args []string, short, long string) string {
	for i, word := range args {
		switch value, is := strings.CutPrefix(word, long+"="); {
		case is && long != "":
			return value
		case (word == short && short != "" || word == long && long != "") && i+1 < len(args):
			return args[i+1]
		case short != "" && len(word) > 2 && strings.HasPrefix(word, short) && !strings.HasPrefix(word, "--"):
			return word[2:]
		}
	}
	return ""
}

// addFile adds the risks of reading or writing a file.
func (f *finder) addFile(a Act, name string, writes bool) {
	if isSecret(name) {
		f.found[Secrets] = true
	}
	if !writes || harmlessDevice(name) {
		return
	}
	if strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/dev/shm/") {
		f.found[Destroys] = true
	}
	if f.isOutside(a, name) {
		f.found[Outside] = true
	}
	places, _ := f.locationsOf(a, name)
	if isSetting(name) || slices.ContainsFunc(places, isSetting) {
		f.found[Rights] = true
	}
}

func harmlessDevice(name string) bool {
	return strings.HasPrefix(name, "/dev/fd/") ||
		slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "-", ""}, name)
}

// locationsOf returns the absolute, clean names that a word may stand for; known is false if it may be anywhere.
func (f *finder) locationsOf(a Act, name string) (all []string, known bool) {
	if hasUnknownPlace(name) || len(name) > 1 && name[1] == ':' && !strings.HasPrefix(name, "/") {
		return nil, false
	}
	for _, folder := range a.at {
		switch {
		case strings.HasPrefix(name, "/"):
		case hasUnknownPlace(folder):
			return nil, false
		case !strings.HasPrefix(folder, "/"): // an unknown one
			folder = path.Join(f.workspace(), folder)
		}
		all = append(all, path.Clean(Under(folder, name)))
	}
	return all, true
}

func (f *finder) workspace() string {
	if f.root == "" {
		return "/folder" // an unknown one
	}
	return path.Clean(f.root)
}

// isOutside reports whether a name may be outside the workspace and the folders of temporary files. An unknown workspace may be anywhere
// but in the system's folders.
func (f *finder) isOutside(a Act, name string) bool {
	places, known := f.locationsOf(a, name)
	return !known || f.root == "" && strings.HasPrefix(path.Clean(name), "..") || slices.ContainsFunc(places, func(at string) bool {
		inside := at == f.workspace() || strings.HasPrefix(at, f.workspace()+"/")
		return !inside && !isTemporary(at+"/x") && (f.root != "" || at == "/" || slices.Contains(systemFolders, strings.Split(at, "/")[1]))
	})
}

var systemFolders = strings.Fields("etc usr bin sbin lib lib64 boot dev proc sys System Library")

func isTemporary(at string) bool {
	return slices.ContainsFunc([]string{"/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/dev/shm/"}, func(in string) bool {
		rest, is := strings.CutPrefix(at, in)
		return is && strings.Trim(rest, "*?") != ""
	})
}

// isScratch reports whether a name is a build folder of the workspace, within one, or temporary, wherever it is relative to.
func (f *finder) isScratch(a Act, name string) bool {
	places, known := f.locationsOf(a, name)
	return known && !slices.ContainsFunc(places, func(at string) bool {
		rest, inside := strings.CutPrefix(at, f.workspace()+"/")
		if !inside { // a workspace may be in a folder of temporary files itself
			return !isTemporary(at) || strings.HasPrefix(f.workspace()+"/", strings.TrimRight(at, "*?")+"/")
		}
		return !slices.ContainsFunc(strings.Split(rest, "/"), func(part string) bool { return matchesAny(scratch, part) })
	})
}

// IsScratch is [finder.isScratch] for an absolute name. root is the workspace.
func IsScratch(root, name string) bool {
	return (&finder{root: root}).isScratch(Act{at: []string{"/"}}, name)
}

// scratchOnly reports whether what a row finds happens only in build folders.
func (f *finder) scratchOnly(row riskRow, name string, a Act) bool {
	if row.risk != Destroys || name != "find" && name != "rimraf" && name != "truncate" && name != "git" && name != "dd" {
		return false
	}
	args := a.Words[1:]
	switch name {
	case "git":
		has := func(patterns ...string) bool {
			return slices.ContainsFunc(args, func(w string) bool {
				return slices.ContainsFunc(patterns, func(p string) bool { return optionFits(p, w) })
			})
		}
		return slices.Contains(args, "clean") && has("-n", "--dry-run") ||
			(slices.Contains(args, "--cached") || slices.Contains(args, "--staged")) && !has("-W", "--worktree")
	case "dd", "truncate": // files touches their files
		return true
	}
	some := false
	for _, word := range args {
		if strings.HasPrefix(word, "-") {
			break
		}
		some = true
		if !f.isScratch(a, word) {
			return false
		}
	}
	return some
}

// isSecret reports whether a name is that of a file that holds credentials.
func isSecret(name string) bool {
	lower := strings.ToLower(path.Clean(name))
	if slices.Contains([]string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers"}, lower) {
		return true
	}
	parts := strings.Split(lower, "/")
	base := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		if slices.Contains([]string{".ssh", ".aws", ".gnupg", ".azure", ".password-store"}, part) {
			return !slices.Contains([]string{"known_hosts", "config"}, base)
		}
	}
	if slices.Contains([]string{".ssh", ".aws", ".gnupg", ".password-store"}, base) {
		return true
	}
	if slices.ContainsFunc(secretPaths, func(end string) bool { return strings.HasSuffix(lower, end) }) ||
		strings.HasPrefix(lower, "/proc/") && base == "environ" {
		return true
	}
	example := slices.ContainsFunc([]string{"example", "sample", "template", "dist", "pub", "schema"}, func(s string) bool {
		return strings.HasSuffix(base, "."+s)
	})
	if strings.ContainsAny(base, "*?[") && !strings.ContainsAny(base[:1], "*?[") { // a pattern of names that a shell expands
		return slices.ContainsFunc([]string{".env", ".netrc", ".npmrc", ".git-credentials", "credentials", "id_rsa", "id_ed25519"},
			func(secret string) bool { return match(base, secret) })
	}
	return !example && matchesAny(secretNames, base)
}

// isSetting reports whether a file says what an agent may do or runs, or what git runs. A name may be that of the folder around it.
func isSetting(name string) bool {
	lower := strings.ToLower(path.Clean("/" + name))
	parts := strings.Split(lower, "/")
	base := parts[len(parts)-1]
	for i, part := range parts[:len(parts)-1] {
		rest := parts[i+1:]
		switch part {
		case ".claude", ".gemini", ".codex", ".cursor", ".copilot", ".opencode", ".vscode":
			if matchesAny([]string{"hooks", "plugin", "plugins", "extensions"}, rest[0]) || len(rest) == 1 && matchesAny(settingNames, base) {
				return true
			}
		case ".git":
			if slices.Contains(rest, "hooks") || strings.HasPrefix(base, "config") {
				return true
			}
		case ".github":
			if rest[0] == "hooks" {
				return true
			}
		}
	}
	return slices.Contains([]string{".git", ".mcp.json", ".claude.json", "opencode.json", "opencode.jsonc"}, base)
}

var settingNames = strings.Fields("settings*.json config.toml config.json hooks.json mcp*.json permissions.json opencode.json* tasks.json")
